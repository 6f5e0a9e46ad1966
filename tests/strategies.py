"""Property tests: how many examples they try, and random programs: small, valid TensorIR functions.

`scripts()` draws the text, `prim_funcs()` and `modules()` what the parser makes of it. A program is
a chain of stages on small buffers; each stage is one block: elementwise, a sum of products, a
stencil, a transposition, a reduction, padding, or a split loop with a predicate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from mlcweb.ir import IRModule
from mlcweb.script import parse
from mlcweb.tir import PrimFunc

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12)
FLOAT_TYPES = ("float32", "float64")
DTYPES = (*FLOAT_TYPES, "int32", "int64")
LOOP_KINDS = ("T.serial", "T.serial", "T.serial", "T.parallel", "T.unroll", "T.vectorized")


def examples(quick: int, thorough: int | None = None) -> settings:
    """How many examples a property test tries: `quick` in `make test`; `thorough`, by default four
    times as many, in `make test-all`, whose hypothesis profile has that name."""
    is_quick = settings.get_current_profile_name() != "thorough"
    return settings(max_examples=quick if is_quick else thorough or 4 * quick)


@dataclass
class Array:
    """A buffer of the program being drawn."""

    name: str
    shape: tuple[int, ...]


@dataclass
class Program:
    """The program being drawn: its parameters, allocations, and the lines of its stages."""

    dtype: str
    inputs: list[Array] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def constant(self, value: float) -> str:
        return f"T.{self.dtype}({value})"

    def new_input(self, shape: tuple[int, ...]) -> Array:
        self.inputs.append(Array(f"X{len(self.inputs)}", shape))
        return self.inputs[-1]

    def new_array(self, shape: tuple[int, ...]) -> Array:
        self.arrays.append(Array(f"Y{len(self.arrays)}", shape))
        return self.arrays[-1]

    def stage(
        self,
        draw: Any,
        output: Array,
        value: str,
        *,
        reduced: tuple[int, ...] = (),
        init: str | None = None,
        target: str = "",
    ) -> None:
        """Append a loop nest with one block. `value` uses the axes v0, v1, …; those of `reduced`
        follow the spatial ones."""
        extents = (*output.shape, *reduced)
        depth = self._loops(draw, extents, len(output.shape))
        indent = "    " * depth
        index = target or ", ".join(f"v{n}" for n in range(len(output.shape)))
        if init is not None:
            self.lines.append(f"{indent}    with T.init():")
            self.lines.append(f"{indent}        {output.name}[{index}] = {init}")
        self.lines.append(f"{indent}    {output.name}[{index}] = {value}")

    def _loops(self, draw: Any, extents: tuple[int, ...], spatial: int) -> int:
        split = draw(st.integers(-3, spatial - 1))
        depth, bindings, predicate = 0, [], None
        for axis, extent in enumerate(extents):
            kind = draw(st.sampled_from(LOOP_KINDS)) if axis < spatial else "T.serial"
            if axis == split and extent > 1:
                inner = draw(st.integers(2, extent))
                outer = -(-extent // inner)
                self._line(depth, f"for i{axis}_0 in {kind}({outer}):")
                self._line(depth + 1, f"for i{axis}_1 in range({inner}):")
                bindings.append(f"i{axis}_0 * {inner} + i{axis}_1")
                predicate = f"{bindings[-1]} < {extent}" if outer * inner > extent else None
                depth += 2
            else:
                self._line(depth, f"for i{axis} in {kind}({extent}):")
                bindings.append(f"i{axis}")
                depth += 1
        self._line(depth, f'with T.block("B{len(self.lines)}"):')
        for axis, (extent, binding) in enumerate(zip(extents, bindings, strict=True)):
            call = "spatial" if axis < spatial else "reduce"
            self._line(depth + 1, f"v{axis} = T.axis.{call}({extent}, {binding})")
        if predicate is not None:
            self._line(depth + 1, f"T.where({predicate})")
        return depth

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def text(self) -> str:
        output = self.arrays[-1]
        parameters = ", ".join(
            f'{array.name}: T.Buffer({array.shape!r}, "{self.dtype}")'
            for array in (*self.inputs, output)
        )
        allocations = [
            f'{array.name} = T.alloc_buffer({array.shape!r}, "{self.dtype}")'
            for array in self.arrays[:-1]
        ]
        body = ['T.func_attr({"tir.noalias": True})', *allocations, *self.lines]
        lines = "\n".join("    " + line for line in body)
        return f"@T.prim_func\ndef main({parameters}):\n{lines}\n"


def _axes(count: int) -> str:
    return ", ".join(f"v{n}" for n in range(count))


def _elementwise(draw: Any, program: Program, source: Array) -> None:
    read = f"{source.name}[{_axes(len(source.shape))}]"
    forms = ["{x} + {c}", "{x} * {c}", "T.max({x}, {c})", "{c} - {x}", "T.min({x}, {x} * {c})"]
    if program.dtype in FLOAT_TYPES:
        forms += ["T.tanh({x})", "{x} / {c}", "T.if_then_else({x} < {c}, {x}, {c})"]
    form = draw(st.sampled_from(forms))
    constant = program.constant(draw(st.integers(1, 5)))
    program.stage(draw, program.new_array(source.shape), form.format(x=read, c=constant))


def _combine(draw: Any, program: Program, source: Array) -> None:
    """Two arrays of one shape; the second one an earlier array where there is one."""
    others = [a for a in (*program.inputs, *program.arrays) if a.shape == source.shape]
    other = draw(st.sampled_from(others)) if others else program.new_input(source.shape)
    axes = _axes(len(source.shape))
    operator = draw(st.sampled_from(["+", "-", "*"]))
    value = f"{source.name}[{axes}] {operator} {other.name}[{axes}]"
    program.stage(draw, program.new_array(source.shape), value)


def _transpose(draw: Any, program: Program, source: Array) -> None:
    order = draw(st.permutations(range(len(source.shape))))
    output = program.new_array(tuple(source.shape[n] for n in order))
    reads = ", ".join(f"v{order.index(n)}" for n in range(len(order)))
    program.stage(draw, output, f"{source.name}[{reads}]")


def _stencil(draw: Any, program: Program, source: Array) -> None:
    reach = draw(st.integers(1, min(2, source.shape[-1] - 1)))
    output = program.new_array((*source.shape[:-1], source.shape[-1] - reach))
    last = len(source.shape) - 1
    before = "".join(f"v{n}, " for n in range(last))
    name = source.name
    program.stage(draw, output, f"{name}[{before}v{last}] + {name}[{before}v{last} + {reach}]")


def _pad(draw: Any, program: Program, source: Array) -> None:
    pad, extent, last = draw(st.integers(1, 2)), source.shape[-1], len(source.shape) - 1
    output = program.new_array((*source.shape[:-1], extent + 2 * pad))
    before = "".join(f"v{n}, " for n in range(last))
    inside = f"{pad} <= v{last} and v{last} < {extent + pad}"
    read = f"{source.name}[{before}v{last} - {pad}]"
    value = f"T.if_then_else({inside}, {read}, {program.constant(0)})"
    program.stage(draw, output, value)


def _reduce(draw: Any, program: Program, source: Array) -> None:
    """Sum or maximum over the last dimension."""
    output = program.new_array(source.shape[:-1])
    axes = _axes(len(output.shape))
    here, read = f"{output.name}[{axes}]", f"{source.name}[{_axes(len(source.shape))}]"
    value = draw(st.sampled_from([f"{here} + {read}", f"T.max({here}, {read})"]))
    init = program.constant(0 if "+" in value else -100)
    program.stage(draw, output, value, reduced=source.shape[-1:], init=init)


def _matmul(draw: Any, program: Program, source: Array) -> None:
    rows, inner = source.shape
    other = program.new_input((inner, draw(st.sampled_from(EXTENTS))))
    output = program.new_array((rows, other.shape[1]))
    product = f"{source.name}[v0, v2] * {other.name}[v2, v1]"
    value = f"{output.name}[v0, v1] + {product}"
    program.stage(draw, output, value, reduced=(inner,), init=program.constant(0))


@st.composite
def scripts(draw: Any, max_stages: int = 4, dtypes: tuple[str, ...] = DTYPES) -> str:
    """The text of a function `main` with one output, its last parameter."""
    program = Program(draw(st.sampled_from(dtypes)))
    rank = draw(st.integers(1, 3))
    extents = EXTENTS if rank < 3 else EXTENTS[:6]
    source = program.new_input(tuple(draw(st.sampled_from(extents)) for _ in range(rank)))
    for _ in range(draw(st.integers(1, max_stages))):
        stages = [_elementwise, _combine]
        if len(source.shape) > 1:
            stages += [_transpose, _reduce]
        if len(source.shape) == 2:
            stages.append(_matmul)
        if source.shape[-1] > 1:
            stages.append(_stencil)
        if source.shape[-1] < 8:
            stages.append(_pad)
        draw(st.sampled_from(stages))(draw, program, source)
        source = program.arrays[-1]
    return program.text()


def prim_funcs(**options: Any) -> st.SearchStrategy[PrimFunc]:
    """Random functions `main`; the last parameter is the output."""
    return scripts(**options).map(parse)  # type: ignore[return-value]


def modules(**options: Any) -> st.SearchStrategy[IRModule]:
    """Random modules with one function, `main`."""
    return prim_funcs(**options).map(lambda function: IRModule({"main": function}))
