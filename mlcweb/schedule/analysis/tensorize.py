"""Where an intrinsic fits a program, and which order of elements an access asks for.

The questions are those of TVM's automatic tensorization (Feng et al., "TensorIR: An Abstraction for
Automatic Tensorized Program Optimization", ASPLOS 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.arith.iter_expr import IterSum
from mlcweb.arith.iter_map import detect_iter_map
from mlcweb.arith.linear import LinearForm
from mlcweb.schedule.analysis.block_facts import extent_of, place_of
from mlcweb.schedule.analysis.products import product_of
from mlcweb.schedule.analysis.scopes import is_output_block as writes_output
from mlcweb.schedule.analysis.scopes import loop_ranges
from mlcweb.schedule.instruction import BlockRV
from mlcweb.schedule.references import StmtSRef
from mlcweb.schedule.resolver import Resolver
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import const, floordiv, floormod, is_const_int
from mlcweb.tir.buffer import Buffer, Range, constant_shape
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import BlockRealize, For, IterVar, SeqStmt, statements_in
from mlcweb.tir.substitute import uses_any


def has_block(sch: Resolver, block_name: str) -> bool:
    """Whether the function that a schedule works on, if it does on one, has a block of a name.
    TypeError where that is no string."""
    if not isinstance(block_name, str):
        raise TypeError(f"has_block takes the name of a block, not {block_name!r}")
    function = sch.func_working_on
    return function is not None and bool(sch.state.blocks_named(block_name, function.name_hint))


def is_output_block(sch: Resolver, block: BlockRV) -> bool:
    """Whether a block writes a buffer that lives on outside of its scope."""
    return writes_output(sch.state, place_of(sch, block))


def suggest_index_map(
    buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr | bool
) -> IndexMap | None:
    """The layout of a buffer in which `loops` access its elements one after another, the outermost
    loop slowest: each index becomes the digits that loops run through.

    Args:
        buffer: the buffer, of constant shape.
        indices: of the access, in terms of the loops.
        predicate: where the access happens.

    Returns None where the place of an element in the buffer is no sum of digits of loops that
    reaches all values of its extent.
    """
    domains = loop_ranges(loops)
    analyzer = Analyzer(domains)
    place = analyzer.simplify(_place(buffer, indices))
    sums = detect_iter_map([place], domains, predicate, analyzer=analyzer).indices
    digits = None if sums is None else _digits(sums[0])
    elements = prod(constant_shape(buffer) or (0,))
    if not digits or prod(digit.extent for digit in digits) > elements:
        return None  # Several iterations access one element.
    order = {loop.loop_var: n for n, loop in enumerate(loops)}
    ranked = sorted(range(len(digits)), key=lambda n: (order[digits[n].loop], -digits[n].factor))
    variables = tuple(Var(f"i{n}", indices[0].dtype) for n in range(buffer.ndim))
    domains = {v: Range(const(0, v.dtype), n) for v, n in zip(variables, buffer.shape, strict=True)}
    analyzer = Analyzer(domains)
    rest = _place(buffer, variables)
    values: list[PrimExpr] = []
    for digit in reversed(digits):
        rest = analyzer.simplify(rest)
        extent = const(digit.extent, rest.dtype)
        values.insert(0, analyzer.simplify(floormod(rest, extent)))
        rest = floordiv(rest, extent)
    return IndexMap(variables, tuple(values[n] for n in ranked))


def _place(buffer: Buffer, indices: Sequence[PrimExpr]) -> PrimExpr:
    """Which element of a buffer it is, in row-major order."""
    place: PrimExpr = indices[0]
    for index, extent in zip(indices[1:], buffer.shape[1:], strict=True):
        place = place * extent + index
    return place


class _Digit(NamedTuple):
    """`loop // factor % extent`."""

    loop: Var
    factor: int
    extent: int


def _digits(value: IterSum) -> list[_Digit] | None:
    """The digits of loops that a sum is made of, the slowest first; None where it has others."""
    digits: list[_Digit] = []
    for split in value.terms:
        source = split.source.source
        if isinstance(source, LinearForm):
            inner = _digits(source)
            if inner is None:
                return None
            digits += inner
        elif isinstance(source, Var) and isinstance(split.lower_factor, IntImm):
            if not isinstance(split.extent, IntImm):
                return None
            digits.append(_Digit(source, split.lower_factor.value, split.extent.value))
        else:
            return None
    return digits


@dataclass(frozen=True, slots=True)
class TensorizeInfo:
    """Which loops around a block an intrinsic's loops are.

    Attributes:
        loop_map: the loops of the program, by reference, and those of the description.
        desc_loop_indexer: the loops of the description, and their numbers from the outermost.
        block_iter_paddings: of which number the extent of each iterator has to be a multiple; None
            where all are.
    """

    loop_map: dict[StmtSRef, For]
    desc_loop_indexer: dict[For, int]
    block_iter_paddings: list[int] | None = None


def get_tensorize_loop_mapping(
    sch: Resolver, block: BlockRV, desc_func: PrimFunc, allow_padding: bool = False
) -> TensorizeInfo | None:
    """Which loops around a block those of an intrinsic's description are, innermost first and by
    their types; None where it does not fit.

    Args:
        desc_func: the description of the intrinsic.
        allow_padding: whether extents may be no multiples of the description's, if the iterators of
            the block are its loops.
    """
    place = place_of(sch, block)
    around = _single_loops(place)
    realize, loops = _described(desc_func)
    if any(not is_const_int(loop.min, 0) for loop in (*around, *loops)):
        return None
    rest = place.realize.iterators
    mapped: dict[For, For] = {}
    paddings: dict[Var, int] = {}
    for described in reversed(realize.block.iter_vars):
        value = realize.bindings[described.var]
        theirs = _loop_of(value, loops)
        while rest and rest[-1][0].iter_type != described.iter_type:
            rest.pop()
        if theirs is None or not rest:
            return None
        iter_var, bound = rest.pop()
        ours = _loop_of(bound, [loop for loop in around if loop not in mapped])
        if ours is None:
            continue
        extent, size = extent_of(ours), extent_of(theirs)
        if extent is None or size is None:
            return None
        if extent % size:
            if not allow_padding or bound is not ours.loop_var:
                return None
            paddings[iter_var.var] = size
        mapped[ours] = theirs
    if not mapped:
        return None
    return TensorizeInfo(
        {sch.state.get_sref(ours): theirs for ours, theirs in mapped.items()},
        {loop: n for n, loop in enumerate(loops)},
        [paddings.get(i.var, 1) for i in place.block.iter_vars] if paddings else None,
    )


def _single_loops(place: BlockPlace) -> list[For]:
    """The loops around a block up to the first that holds several statements, as TVM takes them:
    a condition may stand between them."""
    loops = list(place.loops)
    for n in range(len(loops) - 1, -1, -1):
        if isinstance(loops[n].body, SeqStmt):
            return loops[n + 1 :]
    return loops


def _described(desc_func: PrimFunc) -> tuple[BlockRealize, list[For]]:
    """The block of a description that computes, and the loops around it."""
    inner = list(statements_in(desc_func.body))
    realize = [part for part in inner if isinstance(part, BlockRealize)][-1]
    return realize, [part for part in inner if isinstance(part, For)]


def _loop_of(value: PrimExpr, loops: Sequence[For]) -> For | None:
    """The loop that a binding follows step by step: the rest of it does not depend on the loops."""
    variables = {loop.loop_var for loop in loops}
    for loop in loops:
        if not uses_any(Analyzer().simplify(value - loop.loop_var), variables):
            return loop
    return None


@dataclass(frozen=True, slots=True)
class AutoTensorizeMappingInfo:
    """How a block becomes one that an intrinsic computes tiles of: `mappings` of its iterators to
    the batch and the intrinsic's iterators, and the iterators of both."""

    mappings: list[IndexMap]
    lhs_iters: tuple[IterVar, ...]
    rhs_iters: tuple[IterVar, ...]


def get_auto_tensorize_mapping_info(
    sch: Resolver, block: BlockRV, desc_func: PrimFunc
) -> AutoTensorizeMappingInfo | None:
    """How the iterators of a block are fused so that an intrinsic computes tiles of it; None where
    it is no such product.

    Args:
        desc_func: the description of the intrinsic.
    """
    node = place_of(sch, block).block
    assert isinstance(desc_func.body, BlockRealize)
    product = product_of(node, desc_func.body.block)
    if product is None:
        return None
    every = range(len(product.groups))
    described = _described(desc_func)[0].block
    return AutoTensorizeMappingInfo(
        [product.index_map(node, every)], node.iter_vars, described.iter_vars
    )
