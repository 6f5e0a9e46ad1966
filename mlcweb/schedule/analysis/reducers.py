"""What a reduction block combines: the commutative reducer behind its init and its update.

A reduction may be taken apart and put together again (rfactor, cross-thread reduction) only where
its update is `value = combine(value, contribution)` with a commutative and associative `combine`
whose identity is the init. Among equal values, a selection by `>=` or `<=` alone may find another
index than before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

from mlcweb.arith import same_expressions
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.schedule.errors import BlockKindError
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir import arithmetic as A
from mlcweb.tir import folding
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BinaryExpr, BufferLoad, ComparisonExpr, PrimExpr, Select, Var
from mlcweb.tir.intrinsics import max_value, min_value
from mlcweb.tir.stmt import BufferStore, LetStmt, Stmt, in_order

Values = Sequence[PrimExpr]
"""One value for each buffer that a block reduces into."""


@dataclass(frozen=True, slots=True)
class Reducer:
    """A commutative, associative operation on as many values at once as `identity` gives."""

    name: str
    combine: Callable[[Values, Values], Values]
    identity: Callable[[Sequence[str]], Values]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction into `buffers` at `indices`, one contribution to each per iteration."""

    reducer: Reducer
    buffers: tuple[Buffer, ...]
    indices: tuple[PrimExpr, ...]
    contributions: tuple[PrimExpr, ...]

    @property
    def identity(self) -> Values:
        return self.reducer.identity([buffer.dtype for buffer in self.buffers])


def _single(
    name: str,
    combine: Callable[[PrimExpr, PrimExpr], PrimExpr],
    identity: Callable[[str], PrimExpr],
) -> Reducer:
    return Reducer(name, lambda a, b: (combine(a[0], b[0]),), lambda dtypes: (identity(dtypes[0]),))


Comparison = Callable[[PrimExpr, PrimExpr], PrimExpr]


def _selection(
    name: str, wins: Comparison, worst: Callable[[str], PrimExpr], by_index: bool
) -> Reducer:
    """The index and value of an extreme element; `by_index` gives ties to the smaller index."""

    def combine(a: Values, b: Values) -> Values:
        value = index = wins(a[1], b[1])
        if by_index:
            tie = A.logical_and(A.equal(a[1], b[1]), A.less(a[0], b[0]))
            index = A.logical_or(value, tie)
        return A.select(index, a[0], b[0]), A.select(value, a[1], b[1])

    return Reducer(name, combine, lambda dtypes: (const(-1, dtypes[0]), worst(dtypes[1])))


REDUCERS: dict[int, tuple[Reducer, ...]] = {
    1: (
        _single("sum", A.add, lambda dtype: const(0, dtype)),
        _single("product", A.multiply, lambda dtype: const(1, dtype)),
        _single("minimum", A.minimum, max_value),
        _single("maximum", A.maximum, min_value),
        _single("all", folding.logical_and, lambda dtype: const(1, dtype)),
        _single("any", folding.logical_or, lambda dtype: const(0, dtype)),
    ),
    2: (
        Reducer(
            "two sums",
            lambda a, b: (A.add(a[0], b[0]), A.add(a[1], b[1])),
            lambda dtypes: tuple(const(0, dtype) for dtype in dtypes),
        ),
        _selection("argmax", A.greater_equal, min_value, by_index=False),
        _selection("argmin", A.less_equal, max_value, by_index=False),
        _selection("argmax, ties by index", A.greater, min_value, by_index=True),
        _selection("argmin, ties by index", A.less, max_value, by_index=True),
    ),
}
"""The reducers that are recognised, by the number of values that they combine at once."""

_OPERATORS = (
    "sum, product, minimum, maximum, all, any; with two buffers, two sums, argmax or argmin"
)


def reduction_of(place: BlockPlace) -> Reduction:
    """The reduction that a block with an init computes; a BlockKindError where it is not one.

    The update stores `combine(value, contribution)` in this order, or, for more than one buffer,
    first names all new values (`v: T.float32 = …`) and then stores them. The buffers come in the
    order of these names or, where no reducer combines them so, in another.
    """
    assert place.block.init is not None
    initial = _stores(place, place.block.init, "init")
    variables, update = _named_values(place.block.body)
    stored = _stores(place, update, "update")
    buffers = tuple(dict.fromkeys(region.buffer for region in place.block.writes))
    _check_same_places(place, buffers, initial, stored)
    values = {
        buffer: variables.get(store.value, store.value)  # type: ignore[call-overload]
        for buffer, store in stored.items()
    }
    if len(buffers) > 1 and not all(store.value in variables for store in stored.values()):
        raise _refusal(
            place,
            "its update stores one value while the others still use the old one",
            "compute all new values first (v0: T.int32 = …; v1: T.float32 = …), then store them",
        )
    if len(buffers) > 1:
        names = list(variables)
        buffers = tuple(sorted(buffers, key=lambda b: names.index(stored[b].value)))  # type: ignore[arg-type]
    first = next(iter(stored.values()))
    indices = first.indices
    for order in permutations(buffers):
        reduction = _matched(order, indices, [values[buffer] for buffer in order])
        if reduction is not None:
            _check_identity(place, reduction, [initial[buffer].value for buffer in order])
            _check_contributions(place, reduction)
            return reduction
    update = ", ".join(repr(values[buffer]) for buffer in buffers)
    accumulator = repr(BufferLoad(first.buffer, indices))
    raise _refusal(
        place,
        f"its update {update} is not one of the reducers known: {_OPERATORS}",
        f"write the update as {accumulator} = {accumulator} + …, with the old value first",
    )


def _matched(
    buffers: tuple[Buffer, ...], indices: tuple[PrimExpr, ...], combined: Values
) -> Reduction | None:
    """The reduction by which buffers, in this order, get the values `combined`, if there is one."""
    accumulators = [BufferLoad(buffer, indices) for buffer in buffers]
    contributions: list[PrimExpr] = []
    for value, buffer in zip(combined, buffers, strict=True):
        contribution = _last_operand(value)
        if contribution is None or contribution.dtype != buffer.dtype:
            return None
        contributions.append(contribution)
    for reducer in REDUCERS.get(len(buffers), ()):
        if same_expressions(reducer.combine(accumulators, contributions), combined):
            return Reduction(reducer, buffers, indices, tuple(contributions))
    return None


def _check_identity(place: BlockPlace, reduction: Reduction, initial: Values) -> None:
    if same_expressions(reduction.identity, initial):
        return
    init = ", ".join(repr(value) for value in initial)
    identity = ", ".join(repr(value) for value in reduction.identity)
    raise _refusal(
        place,
        f"its init {init} is not the identity {identity} of the reducer {reduction.reducer.name}, "
        "and would count once for each part",
        f"initialise with {identity}, and combine with {init} in a block of its own",
    )


def _check_contributions(place: BlockPlace, reduction: Reduction) -> None:
    for value in reduction.contributions:
        for node in find_nodes(value, BufferLoad):
            if node.buffer in reduction.buffers:
                raise _refusal(
                    place,
                    f'the value {value!r} that it adds reads "{node.buffer.name}", which is not '
                    "final before the reduction ends",
                )


def _check_same_places(
    place: BlockPlace,
    buffers: tuple[Buffer, ...],
    initial: dict[Buffer, BufferStore],
    stored: dict[Buffer, BufferStore],
) -> None:
    if initial.keys() != set(buffers) or stored.keys() != set(buffers):
        raise _refusal(place, "its init and its update do not store to the same buffers")
    if not all(same_expressions(buffer.shape, buffers[0].shape) for buffer in buffers):
        raise _refusal(place, "the buffers that it writes have different shapes")
    first = next(iter(stored.values())).indices
    if not all(
        same_expressions(store.indices, first) for store in (*initial.values(), *stored.values())
    ):
        raise _refusal(place, "its init and its update do not all store at the same indices")


def _stores(place: BlockPlace, statement: Stmt, what: str) -> dict[Buffer, BufferStore]:
    """The stores that a statement consists of, by buffer."""
    statements = in_order(statement)
    stores = [stmt for stmt in statements if isinstance(stmt, BufferStore)]
    by_buffer = {store.buffer: store for store in stores}
    if len(by_buffer) != len(statements):
        raise _refusal(place, f"its {what} is not one plain store for each buffer")
    return by_buffer


def _named_values(statement: Stmt) -> tuple[dict[Var, PrimExpr], Stmt]:
    """The values named at the start of a block's body, and the statement after them. A value that
    uses an earlier name has no contribution of its own and is left out."""
    values: dict[Var, PrimExpr] = {}
    while isinstance(statement, LetStmt):
        if not any(node in values for node in walk(statement.value)):
            values[statement.var] = statement.value
        statement = statement.body
    return values, statement


def _last_operand(value: PrimExpr) -> PrimExpr | None:
    """Where an update has its contribution: the last operand."""
    if isinstance(value, (BinaryExpr, ComparisonExpr)):
        return value.b
    return value.false_value if isinstance(value, Select) else None


def _refusal(place: BlockPlace, reason: str, advice: str = "") -> BlockKindError:
    return BlockKindError(
        f"The reduction of {place.title} cannot be taken apart: {reason}", [place.realize], advice
    )
