"""The pass that writes out what no target has an instruction for: functions of LLVM
(`llvm_functions`), products in fixed point (`fixed_point`), arithmetic with flags, and in scalars
what an instruction of another processor does to vectors.

`T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", …)` names an instruction, which
only some processors have. For all others, and for the interpreter, a store of a vector made by it
becomes stores of its lanes:

    C[0:16] = vpdpbusd(C[0:16], A as uint8x64, B as int8x64)
    →  x = C[0] + uint8(A, 0) * int8(B, 0) + … + uint8(A, 3) * int8(B, 3); …; C[0] = x; …

The instructions are those of `mlcweb.tensor_intrin` for x86, as Intel's manual defines them, and
the dot product of WebAssembly's vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import reduce
from typing import NamedTuple

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.lower.fixed_point import computed_product
from mlcweb.lower.llvm_functions import computed
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.matrix_cores import lower_matrix_cores
from mlcweb.lower.simplify import simplify
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import constant_shape, decl_buffer
from mlcweb.tir.contents import calls_in
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import reinterpret
from mlcweb.tir.operators import OPERATORS, key_of, operator_name
from mlcweb.tir.substitute import reads_memory, substitute

Lane = Callable[..., E.PrimExpr]

_OF_FLAGS = {E.Add: E.Or, E.Sub: E.NE, E.Mul: E.And}
"""What a flag is of arithmetic with flags: whether the number that their numbers give is not 0."""

_BY_LANES = (E.BinaryExpr, E.ComparisonExpr, E.Not, E.Select)


class Instruction(NamedTuple):
    """What an instruction gives in a lane, by its operands and the number of the lane, and what
    LLVM calls the feature of processors that have it."""

    feature: str
    lane: Lane


def _products(
    a: E.PrimExpr, b: E.PrimExpr, lane: int, types: tuple[str, str], count: int
) -> E.PrimExpr:
    """The sum of `count` products of neighbouring elements of two vectors, as int32."""
    terms = [
        cast("int32", element(a, types[0], place)) * cast("int32", element(b, types[1], place))
        for place in range(count * lane, count * lane + count)
    ]
    return reduce(lambda total, term: total + term, terms)


def _two_products(a: E.PrimExpr, b: E.PrimExpr, lane: int) -> E.PrimExpr:
    return _products(a, b, lane, ("int16", "int16"), 2)


def _two_products_saturated(a: E.PrimExpr, b: E.PrimExpr, lane: int) -> E.PrimExpr:
    total = _products(a, b, lane, ("uint8", "int8"), 2)
    low, high = (const(limit, "int32") for limit in (-(1 << 15), (1 << 15) - 1))
    return cast("int16", E.Max(E.Min(total, high), low))


INSTRUCTIONS: dict[str, Instruction] = {
    "llvm.x86.avx512.vpdpbusd.512": Instruction(
        "avx512vnni",
        lambda sums, a, b, lane: lane_of(sums, lane) + _products(a, b, lane, ("uint8", "int8"), 4),
    ),
    "llvm.x86.avx512.pmaddubs.w.512": Instruction("avx512bw", _two_products_saturated),
    "llvm.x86.avx512.pmaddw.d.512": Instruction("avx512bw", _two_products),
    "llvm.wasm.dot": Instruction("simd128", _two_products),
}
"""The instructions that are known, by the names of LLVM's intrinsic functions."""


def instruction_of(expression: Node) -> Instruction | None:
    """The instruction that a call names; None for all others."""
    if operator_name(expression) not in ("call_llvm_pure_intrin", "call_llvm_intrin"):
        return None
    assert isinstance(expression, E.Call)
    name = expression.args[0]
    return INSTRUCTIONS.get(name.value) if isinstance(name, E.StringImm) else None


def lane_of(expression: E.PrimExpr, lane: int | E.Var) -> E.PrimExpr:
    """A lane of a vector, by its number or a variable for that.

    Raises:
        TVMError: it is made in a way that has no form in scalars.
    """
    if dtypes.lanes(expression.dtype) == 1:
        return expression
    element_type = dtypes.element_of(expression.dtype)
    instruction = instruction_of(expression)
    match expression:
        case E.Broadcast():
            return expression.value
        case E.Ramp():
            return expression.base + expression.stride * lane
        case E.BufferLoad():
            return E.BufferLoad(expression.buffer, _place(expression, lane))
        case _ if isinstance(expression, _BY_LANES):
            parts = (getattr(expression, name) for name in expression.child_fields)
            return type(expression)(*(lane_of(part, lane) for part in parts))
        case E.Cast():
            return E.Cast(element_type, lane_of(expression.value, lane))
        case E.Shuffle() if isinstance(lane, int):
            return _shuffled(expression, lane)
        case E.Call() if instruction is not None and isinstance(lane, int):
            return instruction.lane(*expression.args[1:], lane)
        case E.Call() if operator_name(expression) == "reinterpret" and isinstance(lane, int):
            return element(expression.args[0], element_type, lane)
        case E.Call() if key_of(expression) in OPERATORS and not _divides_anew(expression):
            args = tuple(lane_of(arg, lane) for arg in expression.args)
            return replace(expression, dtype=element_type, args=args)
    raise TVMError(
        f"This target lacks an instruction, and has no form in scalars for a vector that "
        f"{type(expression).__name__} makes for it",
        expression.span,
    )


def _divides_anew(call: E.Call) -> bool:
    """Whether the lanes of a call are other parts of its operand's bits than the lanes of that."""
    is_view = operator_name(call) == "reinterpret"
    return is_view and dtypes.lanes(call.args[0].dtype) != dtypes.lanes(call.dtype)


def element(vector: E.PrimExpr, dtype: str, place: int) -> E.PrimExpr:
    """An element of the bits of a value, taken for a vector of a type."""
    own = dtypes.element_of(vector.dtype)
    size = dtypes.size_in_bytes(dtype)
    if dtypes.size_in_bytes(own) == size:
        one = vector if dtypes.lanes(vector.dtype) == 1 else lane_of(vector, place)
        return one if own == dtype else reinterpret(dtype, one)
    if operator_name(vector) == "reinterpret":
        return element(vector.args[0], dtype, place)  # type: ignore[attr-defined]
    count = dtypes.size_in_bytes(own) // size
    if isinstance(vector, E.Broadcast) and count:
        return element(vector.value, dtype, place % count)
    if count:
        whole, part = divmod(place, count)
        word = vector if dtypes.lanes(vector.dtype) == 1 else lane_of(vector, whole)
        bits = word if dtypes.is_integer(own) else reinterpret(f"uint{dtypes.bits(own)}", word)
        octets = E.Cast(f"uint{8 * size}", bits >> const(8 * size * part, bits.dtype))
        return octets if octets.dtype == dtype else reinterpret(dtype, octets)
    count = size // dtypes.size_in_bytes(own)
    if dtypes.lanes(vector.dtype) % count == 0:
        return _joined(vector, dtype, place * count, count)
    raise TVMError(f"The bits of {vector.dtype} have no form as {dtype} in scalars", vector.span)


def _joined(vector: E.PrimExpr, dtype: str, first: int, count: int) -> E.PrimExpr:
    """The bits of neighbouring lanes as one number, whose last bits are those of the first lane."""
    bits = dtypes.bits(dtypes.element_of(vector.dtype))
    word = f"uint{bits * count}"
    parts = (element(vector, f"uint{bits}", first + place) for place in range(count))
    shifted = (E.Cast(word, x) << const(bits * place, word) for place, x in enumerate(parts))
    joined = reduce(lambda whole, part: whole | part, shifted)
    return joined if dtype == word else reinterpret(dtype, joined)


def _shuffled(shuffle: E.Shuffle, lane: int) -> E.PrimExpr:
    lanes = [
        lane_of(vector, place)
        for vector in shuffle.vectors
        for place in range(dtypes.lanes(vector.dtype))
    ]
    index = shuffle.indices[lane]
    if not isinstance(index, E.IntImm):
        raise TVMError("A shuffle takes lanes by constant numbers", shuffle.span)
    return lanes[index.value]


def _place(access: E.BufferLoad | S.BufferStore, lane: int | E.Var) -> tuple[E.PrimExpr, ...]:
    """The indices of a lane. A vector that is longer than a row goes on in the next one."""
    indices = [i if dtypes.lanes(i.dtype) == 1 else lane_of(i, lane) for i in access.indices]
    shape = constant_shape(access.buffer)
    if shape is None or access.buffer.strides or not all(isinstance(i, E.IntImm) for i in indices):
        return tuple(indices)
    place = 0
    for extent, index in zip(shape, indices, strict=True):
        assert isinstance(index, E.IntImm)
        place = place * extent + index.value
    counts: list[int] = []
    for extent in reversed(shape[1:]):
        place, count = divmod(place, extent)
        counts.append(count)
    return tuple(const(count, indices[0].dtype) for count in (place, *reversed(counts)))


def lane_loops(func: PrimFunc) -> PrimFunc:
    """The function, of flat loops, with vectorized loops over lanes for stores of vectors."""
    new = func.with_body(_LaneLoops().rewrite(func.body))
    return new if new is func else simplify(new)


class _LaneLoops(Mutator):
    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        """A name for a vector, as memory of as many elements where what it reads may change."""
        lanes = dtypes.lanes(let.var.dtype)
        if lanes == 1:
            return let.rewritten(self)
        if not reads_memory(let.value):
            return self.rewrite(substitute(let.body, {let.var: let.value}))
        element = dtypes.element_of(let.var.dtype)
        buffer = decl_buffer((lanes,), element, let.var.name, scope="local")
        whole = (E.Ramp(const(0), const(1), lanes),)
        store = S.BufferStore(buffer, let.value, whole, span=let.span)
        body = substitute(let.body, {let.var: E.BufferLoad(buffer, whole)})
        return S.AllocBuffer(buffer, S.sequence(*map(self.rewrite, (store, body))))

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        lanes = dtypes.lanes(store.value.dtype)
        if lanes == 1:
            return store
        loads = find_nodes(store.value, E.BufferLoad)
        if any(load.buffer.data is store.buffer.data for load in loads):
            return by_lanes(store)
        lane = E.Var("lane")
        try:
            value = lane_of(store.value, lane)
        except TVMError:
            return by_lanes(store)
        body = replace(store, value=value, indices=_place(store, lane))
        return S.For(lane, const(0), const(lanes), S.ForKind.VECTORIZED, body, span=store.span)


def by_lanes(store: S.BufferStore) -> S.Stmt:
    """A store of a vector as stores of its lanes, all of which are computed before."""
    lanes = dtypes.lanes(store.value.dtype)
    values = [lane_of(store.value, lane) for lane in range(lanes)]
    names = [E.Var(f"lane{number}", value.dtype) for number, value in enumerate(values)]
    result: S.Stmt = S.sequence(
        *(
            replace(store, value=name, indices=_place(store, lane))
            for lane, name in enumerate(names)
        )
    )
    for name, value in zip(reversed(names), reversed(values), strict=True):
        result = S.LetStmt(name, value, result, span=store.span)
    return result


class _Words(Mutator):
    """Takes numbers that are the bits of vectors, and vectors that are those of numbers, apart."""

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(call)
        if _divides_anew(new) and dtypes.lanes(new.dtype) == 1:
            return element(new.args[0], new.dtype, 0)
        return new

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        store = self.rewrite_children(store)
        calls = find_nodes(store.value, E.Call)
        if any(_divides_anew(call) and dtypes.lanes(call.args[0].dtype) == 1 for call in calls):
            return by_lanes(store)
        return store


class _Expansion(Mutator):
    def __init__(self, features: Set[str], builtins: Set[str]) -> None:
        self.features = features
        self.builtins = builtins

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(call)
        if operator_name(new) in self.builtins:
            return new
        forms = (form(new) for form in (computed, computed_product))
        return next((value for value in forms if value is not None), new)

    @on(*_OF_FLAGS)
    def arithmetic(self, expression: E.BinaryExpr) -> E.PrimExpr:
        new = expression.rewritten(self)
        if not dtypes.is_bool(dtypes.element_of(new.dtype)):
            return new
        return _OF_FLAGS[type(new)](new.a, new.b, span=new.span)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        store = self.rewrite_children(store)
        if dtypes.lanes(store.value.dtype) == 1:
            return store
        instructions = filter(None, map(instruction_of, walk(store.value)))
        has_all = all(each.feature in self.features for each in instructions)
        return store if has_all else by_lanes(store)


def expand_instructions(
    features: Set[str] = frozenset(), builtins: Set[str] = frozenset(), has_words: bool = False
) -> LoweringPass:
    """The pass for processors with certain of the features that `INSTRUCTIONS` name, or for others
    that have some builtins of TensorIR; `has_words` is whether they view vectors as numbers."""

    def run(func: PrimFunc) -> PrimFunc:
        func = lower_matrix_cores(func)  # which know operands by the vectors that they are
        body = _Expansion(features, builtins).rewrite(func.body)
        takes_apart = not has_words and any(map(_divides_anew, calls_in(body)))
        return func.with_body(_Words().rewrite(body) if takes_apart else body)

    return LoweringPass(run, "ExpandInstructions", needed=True)


EXPANSION = expand_instructions()
"""The pass for machines that have none of them."""
