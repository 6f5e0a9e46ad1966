"""Random loop nests without blocks, whose statements depend on each other in every way: they try
what may be reordered. Integers make every order that matters show.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mlcweb.script import from_source
from mlcweb.tir import PrimFunc

SIZE = 24
BUFFERS = ("A", "B", "C")


@st.composite
def loop_programs(draw: Any) -> PrimFunc:
    """A function of three int32 buffers of `SIZE` elements."""
    lines = ["@T.prim_func", "def main("]
    lines += [f'    {name}: T.Buffer(({SIZE},), "int32"),' for name in BUFFERS]
    lines += ["):"]
    for _ in range(draw(st.integers(1, 2))):
        _nest(draw, lines, 1, [])
    return from_source("\n".join(lines) + "\n")


def _nest(draw: Any, lines: list[str], depth: int, loops: list[tuple[str, int]]) -> None:
    """A loop, or a few statements inside the loops so far."""
    pad = "    " * depth
    deeper = len(loops) < 3 and (not loops or draw(st.booleans()))
    if deeper:
        name, extent = f"i{depth}_{len(lines)}", draw(st.sampled_from((1, 2, 3, 4, 5)))
        lines.append(f"{pad}for {name} in {draw(st.sampled_from(('range', 'T.unroll')))}({extent}):")
        for _ in range(draw(st.integers(1, 2))):
            _nest(draw, lines, depth + 1, [*loops, (name, extent)])
        return
    if draw(st.integers(0, 3)) == 0:
        factors = [f"{name} * {draw(st.integers(1, 3))}" for name, _ in loops]
        lines.append(f"{pad}if {' + '.join(factors)} < {draw(st.integers(1, 9))}:")
        pad += "    "
    target = f"{draw(st.sampled_from(BUFFERS))}[{_index(draw, loops)}]"
    value = _value(draw, loops)
    if draw(st.booleans()):
        value = draw(st.sampled_from(("{0} + {1}", "T.max({0}, {1})", "{0} * 3 - {1}"))).format(
            target, value
        )
    lines.append(f"{pad}{target} = {value}")


def _value(draw: Any, loops: list[tuple[str, int]]) -> str:
    terms = []
    for _ in range(draw(st.integers(1, 2))):
        load = f"{draw(st.sampled_from(BUFFERS))}[{_index(draw, loops)}]"
        choices = (load, load, str(draw(st.integers(-5, 5))), f"({_index(draw, loops)})")
        terms.append(draw(st.sampled_from(choices)))
    return draw(st.sampled_from((" + ", " * ", " - "))).join(terms)


def _index(draw: Any, loops: list[tuple[str, int]]) -> str:
    """An index in bounds: a sum of loop variables with factors, a quotient or a remainder."""
    text, top = str(draw(st.integers(0, 2))), 2
    for name, extent in loops:
        factor = draw(st.sampled_from((0, 0, 1, 1, 2, 5)))
        if factor and top + factor * (extent - 1) < SIZE:
            text, top = f"{text} + {name} * {factor}", top + factor * (extent - 1)
    form = draw(st.sampled_from(("{0}", "{0}", "{0}", "({0}) // 2", "({0}) % 5", "{1} - ({0})")))
    return form.format(text, top)
