"""Saying in loops what the matrix instructions of AMD's GPUs do: `llvm.amdgcn.mfma`.

Such a call is made by the 64 threads of a wavefront together, of which each has some elements of
the operands, and gets some of the result. Which they are is told by the layouts of
`mlcweb.tensor_intrin.matrix_cores`, as AMD's manuals of the CDNA instruction set have them. The
loops are under the mark of those that stand for the instructions of PTX (`warp_matrices`).
"""

from __future__ import annotations

from mlcweb.arith import same_expressions
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import on
from mlcweb.lower.thread_axes import MATRIX_CORES, WAVE_SIZE
from mlcweb.lower.warp_matrices import LoopsOfLanes, Nest
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, const, floordiv, floormod, is_const_int, multiply
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import reads_memory

SIDE = 16

_PREFIX = f"llvm.amdgcn.{MATRIX_CORES}."
_PRODUCTS = {
    "f32.16x16x4f32": (4, "float32", "float32"),
    "f32.16x16x16f16": (16, "float16", "float32"),
    "i32.16x16x16i8": (16, "int8", "int32"),
}
"""The depth of a product, the type of its factors and that of its sums, by the instruction."""


def lower_matrix_cores(func: PrimFunc) -> PrimFunc:
    """Loops over elements for stores of what the instructions give.

    Raises a TVMError for operands that are not followed, and for threads that are no wavefront.
    """
    uses = any(_instruction(statement) for statement in S.statements_in(func.body))
    return func.with_body(_Products().rewrite(func.body)) if uses else func


def _instruction(statement: S.Stmt) -> str:
    """The product that is stored, such as "f32.16x16x4f32"; "" for other statements."""
    value = statement.value if isinstance(statement, S.BufferStore) else None
    if not isinstance(value, E.Call):
        return ""
    if operator_name(value) not in ("call_llvm_pure_intrin", "call_llvm_intrin"):
        return ""
    name = str(getattr(value.args[0], "value", ""))
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""


class _Products(LoopsOfLanes):
    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        name = _instruction(store)
        if not name:
            return store
        assert isinstance(store.value, E.Call)
        what, operands = _PREFIX + name, store.value.args[1:]
        if name not in _PRODUCTS:
            raise TVMError(
                f"{what} is not computed here; {', '.join(_PRODUCTS)} are", store.value.span
            )
        self.check_lanes(what, WAVE_SIZE, store.span)
        if len(operands) != 6 or not all(is_const_int(option, 0) for option in operands[3:]):
            raise TVMError(
                f"{what} takes A, B and C here, and three options that are 0, for it neither "
                "broadcasts nor permutes",
                store.span,
            )
        depth, dtype, out = _PRODUCTS[name]
        count = SIDE * depth // WAVE_SIZE
        a, b = (_registers(what, operand, dtype, count) for operand in operands[:2])
        sums = _registers(what, operands[2], out, SIDE * SIDE // WAVE_SIZE)
        if sums.buffer is not store.buffer or not same_expressions(sums.indices, store.indices):
            raise TVMError(f"{what} is stored here where its operand C is, alone", store.span)
        if any(operand.buffer.data is store.buffer.data for operand in (a, b)):
            raise TVMError(
                f'{what} takes A and B from other memory than C, which is in "{store.buffer.name}"',
                store.span,
            )
        nest = Nest(i=SIDE, j=SIDE, k=depth)
        i, j, k = nest.loops
        block, register = multiply(floordiv(k, const(count)), SIDE), floormod(k, const(count))
        left = self.element(a, add(i, block), register, nest)
        right = self.element(b, add(j, block), register, nest)
        row = const(SIDE * SIDE // WAVE_SIZE)
        c_lane, c_register = add(j, multiply(floordiv(i, row), SIDE)), floormod(i, row)
        total = self.element(sums, c_lane, c_register, nest)
        value = add(total, multiply(cast(out, left), cast(out, right)))
        body = S.store_to(total, value, store.span)
        return self.marked(f"{MATRIX_CORES} {name}", nest, body)

    def element(
        self, load: E.BufferLoad, lane: E.PrimExpr, register: E.PrimExpr, nest: Nest
    ) -> E.BufferLoad:
        """The element that a lane has in a register of an operand."""
        if any(reads_memory(self.told(index)) for index in load.indices):
            raise TVMError(
                f'Registers of "{load.buffer.name}" are told here by what is in memory, which may '
                "be another thing in each lane",
                load.span,
            )
        *first, last = load.indices
        last = add(last.base, register) if isinstance(last, E.Ramp) else last
        indices = (nest.analyzer.simplify(self.of_lane(index, lane)) for index in (*first, last))
        return E.BufferLoad(load.buffer, tuple(indices))


def _registers(what: str, operand: E.PrimExpr, dtype: str, count: int) -> E.BufferLoad:
    """The load of a thread's registers that an operand is. Four bytes are taken for one number."""
    if operator_name(operand) == "reinterpret" and operand.dtype == "int32":
        [operand] = operand.args  # type: ignore[attr-defined]
    if (
        isinstance(operand, E.BufferLoad)
        and operand.buffer.scope() == "warp"
        and operand.dtype == dtypes.with_lanes(dtype, count)
        and _are_neighbours(operand.indices)
    ):
        return operand
    raise TVMError(
        f"{what} takes {count} neighbouring registers of {dtype} in each lane for an operand, of "
        f'memory of scope "warp", not {operand}',
        operand.span,
    )


def _are_neighbours(indices: tuple[E.PrimExpr, ...]) -> bool:
    *first, last = indices
    stride = last.stride if isinstance(last, E.Ramp) else const(1)
    return is_const_int(stride, 1) and all(dtypes.lanes(index.dtype) == 1 for index in first)
