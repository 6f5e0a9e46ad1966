"""What the host does around the kernels of a function, worked out before anything is launched:
which kernels it launches, in how many blocks, and with which numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.codegen.errors import assertion_failed
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import Dispatcher, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

Number = int | float | bool

MAX_LAUNCHES = 100_000
"""A call with more launches is taken for a mistake."""


class PlannedLaunch(NamedTuple):
    """The number of a kernel, the blocks along x, y and z, and the values of its scalars."""

    kernel: int
    grid: tuple[int, int, int]
    scalars: tuple[Number, ...]


class HostPlan(NamedTuple):
    """The launches of a call, in order, and the bytes of the memory that it allocates for them."""

    launches: list[PlannedLaunch]
    allocated: dict[E.Var, int]


def plan_launches(
    func: PrimFunc, kernels: Sequence[DeviceKernel], values: Mapping[E.Var, Number]
) -> HostPlan:
    """The launches of a lowered function for values of its scalars and sizes.

    Raises:
        TVMError: what is launched depends on what kernels compute.
    """
    planner = _Planner(kernels, values)
    planner.run(func.body)
    return HostPlan(planner.launches, planner.allocated)


class _Planner(Dispatcher):
    def __init__(self, kernels: Sequence[DeviceKernel], values: Mapping[E.Var, Number]) -> None:
        self.kernels = kernels
        self.by_loop = {id(kernel.launch): index for index, kernel in enumerate(kernels)}
        self.values: dict[E.Var, E.PrimExpr] = {
            var: const(value, var.dtype) for var, value in values.items()
        }
        self.launches: list[PlannedLaunch] = []
        self.allocated: dict[E.Var, int] = {}

    def run(self, statement: S.Stmt) -> None:
        handler = self.table.get(type(statement))
        if handler is None:
            raise TVMError(
                f"A {type(statement).__name__} outside of threads does not run on a GPU's host; "
                "bind a loop around it to threads",
                statement.span,
            )
        handler(self, statement)

    def value(self, expression: E.PrimExpr, statement: S.Stmt) -> Number:
        simplified = Analyzer().simplify(substitute(expression, self.values))
        if not isinstance(simplified, (E.IntImm, E.FloatImm)):
            raise TVMError(
                f"{expression} outside of threads is not known before the kernels run; a GPU's "
                "host launches them by sizes and scalars alone",
                statement.span,
            )
        return simplified.value

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> None:
        for part in statement.seq:
            self.run(part)

    @on(S.AttrStmt, S.DeclBuffer)
    def around(self, statement: S.AttrStmt | S.DeclBuffer) -> None:
        self.run(statement.body)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        buffer = statement.buffer
        size = int(self.value(buffer.shape[0], statement)) * dtypes.size_in_bytes(buffer.dtype)
        self.allocated[buffer.data] = max(size, self.allocated.get(buffer.data, 0))
        self.run(statement.body)

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        index = self.by_loop.get(id(loop))
        if index is not None:
            self.launch(index, loop)
            return
        first = int(self.value(loop.min, loop))
        for value in range(first, first + int(self.value(loop.extent, loop))):
            self.values[loop.loop_var] = const(value, loop.loop_var.dtype)
            self.run(loop.body)

    def launch(self, index: int, loop: S.For) -> None:
        kernel = self.kernels[index]
        x, y, z = (int(self.value(kernel.extent(f"blockIdx.{axis}"), loop)) for axis in "xyz")
        if min(x, y, z) <= 0:
            return
        if len(self.launches) == MAX_LAUNCHES:
            raise TVMError(
                f"A call launches more than {MAX_LAUNCHES} kernels; bind the loop around them",
                loop.span,
            )
        scalars = tuple(self.value(var, loop) for var in kernel.scalars)
        self.launches.append(PlannedLaunch(index, (x, y, z), scalars))

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        if self.value(branch.condition, branch):
            self.run(branch.then_case)
        elif branch.else_case is not None:
            self.run(branch.else_case)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> None:
        self.values[let.var] = const(self.value(let.value, let), let.var.dtype)
        self.run(let.body)

    @on(S.AssertStmt)
    def check(self, statement: S.AssertStmt) -> None:
        if not self.value(statement.condition, statement):
            message = getattr(statement.message, "value", statement.message)
            raise assertion_failed(statement.error_kind, message, statement.span)
        self.run(statement.body)
