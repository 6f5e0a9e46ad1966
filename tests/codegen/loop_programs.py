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
DTYPES = ("int32", "int32", "int8", "uint8", "int16")
Loops = list[tuple[str, int]]


@st.composite
def loop_programs(draw: Any) -> PrimFunc:
    """A function of three integer buffers of `SIZE` elements; a view of the first may have elements
    of another type."""
    dtype = draw(st.sampled_from(DTYPES))
    lines = ["@T.prim_func", "def main("]
    lines += [f'    {name}: T.Buffer(({SIZE},), "{dtype}"),' for name in BUFFERS]
    lines += ["):"]
    buffers = BUFFERS
    if draw(st.integers(0, 3)) == 0:
        buffers = (*BUFFERS, "A_bytes")
        lines.append(f'    A_bytes = T.decl_buffer(({SIZE},), "int8", data=A.data)')
    for number in range(draw(st.integers(1, 2))):
        _Nest(draw, lines, buffers, dtype, number).write(1, [])
    func = from_source("\n".join(lines) + "\n")
    assert isinstance(func, PrimFunc)
    return func


class _Nest:
    """A loop nest being drawn. It may have a buffer of its own, filled in each outer iteration."""

    def __init__(
        self, draw: Any, lines: list[str], buffers: tuple[str, ...], dtype: str, number: int
    ) -> None:
        self.draw = draw
        self.lines = lines
        self.own = f"Y{number}" if draw(st.booleans()) else ""
        self.buffers = (*buffers, self.own, self.own) if self.own else buffers
        if self.own:
            lines.append(f'    {self.own} = T.alloc_buffer(({SIZE},), "{dtype}")')

    def write(self, depth: int, loops: Loops) -> None:
        """A loop, or a statement inside the loops so far."""
        pad = "    " * depth
        if len(loops) < 3 and (not loops or self.draw(st.booleans())):
            # One long loop counts further than a byte.
            extents = (1, 2, 3, 4, 5) if loops else (1, 2, 3, 4, 5, 150)
            name, extent = f"i{len(self.lines)}", self.draw(st.sampled_from(extents))
            kind = self.draw(st.sampled_from(("range", "T.unroll")))
            self.lines.append(f"{pad}for {name} in {kind}({extent}):")
            if self.own and not loops:
                self.lines.append(f"{pad}    for z in range({SIZE}):")
                self.lines.append(f"{pad}        {self.own}[z] = z * {name}")
            for _ in range(self.draw(st.integers(1, 2))):
                self.write(depth + 1, [*loops, (name, extent)])
        else:
            self.statement(pad, loops)

    def statement(self, pad: str, loops: Loops) -> None:
        draw = self.draw
        # What a condition reads is mostly what its branch overwrites.
        place = self.element(loops)
        condition = self.condition(loops, place)
        if draw(st.integers(0, 3)) == 0:
            self.lines.append(f"{pad}if {condition}:")
            for _ in range(draw(st.integers(1, 2))):
                self.store(f"{pad}    ", loops, condition, draw(st.sampled_from((place, ""))))
            if draw(st.booleans()):
                self.lines.append(f"{pad}else:")
                self.store(f"{pad}    ", loops, condition)
        else:
            self.store(pad, loops, condition)

    def store(self, pad: str, loops: Loops, condition: str, target: str = "") -> None:
        """An assignment. Its value may depend on `condition`, as an `if` around it may, too."""
        draw = self.draw
        target, value = target or self.element(loops), self.value(loops)
        if draw(st.booleans()):
            forms = ("{0} + {1}", "T.max({0}, {1})", "{0} * 3 - {1}")
            choices = (
                f"T.if_then_else({condition}, {{0}}, {{1}})",
                "T.if_then_else({0} != 0, {1} // {0}, 7)",
                "T.if_then_else({0} > 0, T.truncmod({1}, {0}), {1})",
            )
            value = draw(st.sampled_from((*forms, *choices))).format(target, value)
        self.lines.append(f"{pad}{target} = {value}")

    def condition(self, loops: Loops, place: str) -> str:
        """A comparison of loop variables, or of the memory at `place`."""
        if self.draw(st.booleans()):
            return f"{place} < {self.draw(st.integers(-3, 6))}"
        factors = [f"{name} * {self.draw(st.integers(1, 3))}" for name, _ in loops]
        return f"{' + '.join(factors)} < {self.draw(st.integers(1, 9))}"

    def element(self, loops: Loops) -> str:
        return f"{self.draw(st.sampled_from(self.buffers))}[{self.index(loops)}]"

    def value(self, loops: Loops) -> str:
        draw, terms = self.draw, []
        for _ in range(draw(st.integers(1, 2))):
            load = self.element(loops)
            far = f"{draw(st.sampled_from(self.buffers))}[T.abs({load}) % {SIZE}]"
            number = str(draw(st.integers(-5, 5)))
            terms.append(draw(st.sampled_from((load, load, far, number, f"({self.index(loops)})"))))
        return draw(st.sampled_from((" + ", " * ", " - "))).join(terms)

    def index(self, loops: Loops) -> str:
        """An index in bounds: a sum of loop variables with factors, a quotient or a remainder."""
        draw = self.draw
        text, top = str(draw(st.integers(0, 2))), 2
        for name, extent in loops:
            factor = draw(st.sampled_from((0, 0, 1, 1, 2, 5)))
            if factor and top + factor * (extent - 1) < SIZE:
                text, top = f"{text} + {name} * {factor}", top + factor * (extent - 1)
        forms = ("{0}", "{0}", "{0}", "({0}) // 2", "({0}) % 5", "{1} - ({0})")
        return draw(st.sampled_from(forms)).format(text, top)
