"""Smaller programs of the same shape: short enough to be run access by access.

Sizes above a limit are replaced throughout (128 by 16, say). A program that a schedule made is made
again from the smaller original, with the tile sizes of its steps scaled along; loops, their order
and their kinds stay the same, or the smaller program is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children, on, walk
from mlcweb.lower.specialize import specialize
from mlcweb.playground.compared import Derivation
from mlcweb.schedule import Schedule, Trace
from mlcweb.schedule.errors import REPLAY_ERRORS
from mlcweb.schedule.instruction import Instruction, map_inputs
from mlcweb.tir import PrimFunc
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, constant_value
from mlcweb.tir.buffer import Buffer, MatchBufferRegion, Range, constant_shape
from mlcweb.tir.expr import BufferLoad, IntImm, PrimExpr, Var
from mlcweb.tir.fresh_copy import FreshCopy

BATCHES = (2, 4)
"""Sizes that batches are given, the best first."""

TILINGS = ("SamplePerfectTile", "SamplePartitionedTile")


class NotShrinkable(TVMError):
    """A program has no smaller one that means the same; the message says why."""


@dataclass(frozen=True, slots=True)
class Small:
    """A smaller module; `sizes` says what became of which size, and `replayed` whether the steps
    of a schedule were repeated to get it."""

    module: IRModule
    sizes: Mapping[str, int] = field(default_factory=dict)
    replayed: bool = False


def smaller(module: IRModule, name: str, most: int, derivation: Derivation | None) -> Small:
    """A module whose sizes are at most `most`, with the same loops.

    Batches, sizes that only lead buffers of three and more dimensions, become smaller still.

    Raises:
        NotShrinkable: sizes are written into its indices, or its steps do not suit smaller sizes.
    """
    refusal: NotShrinkable | None = None
    for batch in dict.fromkeys((*BATCHES, most)):
        try:
            return _smaller(module, name, most, min(batch, most), derivation)
        except NotShrinkable as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _smaller(
    module: IRModule, name: str, most: int, batch: int, derivation: Derivation | None
) -> Small:
    if derivation is None:
        func, sizes = shrunk(module[name], most, batch)
        return Small(IRModule({**_functions(module), name: func}), sizes)
    sizes = {}
    functions = _functions(derivation.original)
    for each, func in functions.items():
        if isinstance(func, PrimFunc):
            functions[each], shrunk_sizes = shrunk(func, most, batch)
            sizes |= shrunk_sizes
    if not sizes:
        return Small(module)
    try:
        scheduled = _replay(derivation.trace, derivation.original, IRModule(functions))
    except REPLAY_ERRORS as error:
        first = str(error).strip().split("\n")[0]
        raise NotShrinkable(f"its schedule does not work on sizes up to {most}: {first}") from error
    if nest(scheduled[name]) != nest(module[name]):
        raise NotShrinkable(f"its schedule makes other loops of sizes up to {most}")
    return Small(scheduled, sizes, replayed=True)


def shrunk(func: PrimFunc, most: int, batch: int) -> tuple[PrimFunc, dict[str, int]]:
    """A function with smaller sizes, and which size became which; symbolic sizes become `most`.

    Raises:
        NotShrinkable: numbers above `most` stand in indices or conditions, which may mean sizes.
    """
    symbols = {
        var: most
        for buffer in func.parameter_buffers
        for extent in buffer.shape
        for var in walk(extent)
        if isinstance(var, Var)
    }
    if symbols:
        func = specialize(func, symbols)
    sizes = smaller_sizes(func, most, batch)
    if sizes:
        limit = min(most, *sizes)
        for part in (part for index in _indices(func) for part in walk(index)):
            if isinstance(part, IntImm) and abs(part.value) > limit:
                raise NotShrinkable(f"the number {part.value} stands in an index or a condition")
        func = _Shrinking(sizes).function(func)
    names = {var.name: size for var, size in symbols.items()}
    return func, names | {str(old): sizes[old] for old in sorted(sizes, reverse=True)}


def smaller_sizes(func: PrimFunc, most: int, batch: int) -> dict[int, int]:
    """What sizes above `most` become, and then batches, too.

    A size a little above another one, as that of a padded image, stays as much above it.
    """
    shapes = _shapes(func)
    inner = {size for shape in shapes for size in shape[0 if len(shape) < 3 else 1 :]}
    leading = {shape[0] for shape in shapes if len(shape) > 2} - inner
    large = sorted(size for size in _sizes(func) if size > most and size not in leading)
    if not large and not any(size > most for size in leading):
        return {}
    sizes: dict[int, int] = {}
    for size in large:
        below = next((b for b in sizes if 0 < size - b <= most // 2), None)
        sizes[size] = smaller_size(size, most) if below is None else sizes[below] + size - below
    return sizes | {size: smaller_size(size, batch) for size in leading if size > batch}


def _shapes(func: PrimFunc) -> list[tuple[int, ...]]:
    """The constant shapes of the buffers of a function."""
    touched = {
        node.buffer for node in walk(func.body) if isinstance(node, S.BufferStore | BufferLoad)
    }
    shapes = (constant_shape(buffer) for buffer in {*func.parameter_buffers, *touched})
    return [shape for shape in shapes if shape is not None]


def _sizes(func: PrimFunc) -> set[int]:
    """The sizes of buffers and of loops."""
    loops = {
        node.extent.value
        for node in walk(func.body)
        if isinstance(node, S.For) and isinstance(node.extent, IntImm)
    }
    return loops.union(*_shapes(func))


def smaller_size(size: int, most: int) -> int:
    """The largest divisor of a size that is at most `most`, if it is not much less; else `most`."""
    if size <= most:
        return size
    divisor = next(number for number in range(most, 0, -1) if size % number == 0)
    return divisor if 2 * divisor >= most else most


def scaled(factors: Sequence[int], product: int) -> list[int]:
    """Factors made smaller, the outer ones first, until they multiply to `product`; those above 1
    stay above 1 where that is possible. `product` divides that of the factors."""
    result = list(factors)
    ratio = prod(result) // product
    for least in (2, 1):
        for position, factor in enumerate(result):
            common = gcd(factor, ratio)
            while common > 1 and factor // common < least:
                common //= next(d for d in range(2, common + 1) if common % d == 0)
            result[position] //= common
            ratio //= common
    return result


def access_count(func: PrimFunc) -> int:
    """How often the stores of a function, and the loads in their values, run at most."""

    def count(node: Node, iterations: int) -> int:
        if isinstance(node, S.For) and isinstance(node.extent, IntImm):
            iterations *= node.extent.value
        own = iterations if isinstance(node, S.BufferStore | BufferLoad) else 0
        return own + sum(count(child, iterations) for child in children(node))

    return count(func.body, 1)


def nest(func: PrimFunc) -> list[Any]:
    """The loops and blocks of a function in their order, without sizes: what has to stay."""
    skeleton: list[Any] = []
    for node in walk(func.body):
        if isinstance(node, S.For):
            trivial = isinstance(node.extent, IntImm) and node.extent.value == 1
            skeleton.append((node.kind, trivial))
        elif isinstance(node, S.BlockRealize):
            always = isinstance(node.predicate, IntImm)
            skeleton.append((node.block.name_hint, always))
        elif isinstance(node, S.BufferStore):
            skeleton.append(node.buffer.name)
    return skeleton


class _Shrinking(FreshCopy):
    """Replaces extents of loops, buffers, iterators and regions."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        super().__init__()
        self.sizes = sizes

    def size(self, extent: PrimExpr) -> PrimExpr:
        if not isinstance(extent, IntImm):
            return self.rewrite(extent)
        return const(self.sizes.get(extent.value, extent.value), extent.dtype)

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._buffers:
            if buffer.strides:
                raise NotShrinkable(f'"{buffer.name}" has strides of its own')
            shape = tuple(self.size(extent) for extent in buffer.shape)
            offset = self.rewrite(buffer.elem_offset)
            data = self.variable(buffer.data)
            self._buffers[buffer] = replace(buffer, data=data, shape=shape, elem_offset=offset)
        return self._buffers[buffer]

    @on(S.For)
    def loop(self, node: S.For) -> S.For:
        extent = self.size(node.extent)
        new = self.rewrite_children(node)
        return replace(new, loop_var=self.variable(node.loop_var), extent=extent)

    @on(Range)
    def range(self, node: Range) -> Range:
        return replace(node, min=self.rewrite(node.min), extent=self.size(node.extent))


def _indices(func: PrimFunc) -> Iterator[PrimExpr]:
    """The expressions that decide which elements are touched."""
    for node in walk(func.body):
        if isinstance(node, S.BufferStore | BufferLoad):
            yield from node.indices
        elif isinstance(node, S.BlockRealize):
            yield from (*node.iter_values, node.predicate)
        elif isinstance(node, S.IfThenElse | S.While):
            yield node.condition
        elif isinstance(node, S.For):
            yield node.min
        elif isinstance(node, MatchBufferRegion):
            yield from (part.min for part in node.source.region)


def _functions(module: IRModule) -> dict[str, Any]:
    return {var.name_hint: func for var, func in module.functions.items()}


def _replay(trace: Trace, original: IRModule, small: IRModule) -> IRModule:
    """The steps of a trace on a smaller original, beside the original that says how large the
    loops were."""
    sides = Schedule(original), Schedule(small)
    tables: tuple[dict[Any, Any], ...] = ({}, {})
    for inst in trace.insts:
        decision = trace.get_decision(inst)
        inputs = [map_inputs(inst.inputs, table) for table in tables]
        extents = _extents(inst, sides, inputs)
        decisions = [decision, decision]
        if extents and inst.kind.name in TILINGS:
            decisions[1] = scaled([int(factor) for factor in decision], extents[1])
        elif extents:
            inputs[1][1:] = _factors(inst.inputs[1:], *extents) or inputs[1][1:]
        for side, table, arguments, decided in zip(sides, tables, inputs, decisions, strict=True):
            results = side.replay(inst.kind, arguments, inst.attrs, decided)
            table.update(zip(inst.outputs, results, strict=True))
    return sides[1].mod


def _extents(
    inst: Instruction, sides: tuple[Schedule, Schedule], inputs: Sequence[Sequence[Any]]
) -> tuple[int, int] | None:
    """The extents of the loop that a step divides, where they differ and the smaller one divides
    the other."""
    if inst.kind.name not in (*TILINGS, "Split"):
        return None
    loops = [side.get(arguments[0]) for side, arguments in zip(sides, inputs, strict=True)]
    before, now = (constant_value(loop.extent) for loop in loops)  # type: ignore[union-attr]
    if before is None or now is None or before == now or before % now:
        return None
    return int(before), int(now)


def _factors(factors: Sequence[Any], before: int, now: int) -> list[int] | None:
    """The factors of a split for the smaller extent; None where they are random variables, or do
    not divide the loop."""
    numbers = [None if factor is None else constant_value(factor) for factor in factors]
    constants = [int(number) for number in numbers if number is not None]
    if len(constants) != sum(factor is not None for factor in factors):
        return None
    rest, remainder = divmod(before, prod(constants))
    if remainder or (rest != 1 and None not in numbers):
        return None
    return scaled([rest if number is None else int(number) for number in numbers], now)
