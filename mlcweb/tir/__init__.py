"""TensorIR: expressions, statements, buffers, functions.

What TVM's users know as `tir.Schedule`, `tir.IndexMap`, `tir.analysis` and `tir.transform` belongs
to layers above; `mlcweb.providers` says who implements it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.ir.lazy_attributes import provided, provided_names
from mlcweb.tir import expr, function, stmt, stmt_functor
from mlcweb.tir.arithmetic import cast, const, floordiv, floormod, truncdiv, truncmod
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, decl_buffer
from mlcweb.tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, Broadcast, BufferLoad, Call, Cast, Div, FloatImm, FloorDiv,
    FloorMod, IntImm, Let, Max, Min, Mod, Mul, Not, Or, PointerType, PrimExpr, Ramp, Select,
    Shuffle, StringImm, Sub, Var,
)  # fmt: skip
from mlcweb.tir.data_layout import BijectiveLayout, Layout, bijective_layout, layout
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.functor import PyStmtExprMutator, PyStmtExprVisitor
from mlcweb.tir.intrinsics import (
    absolute as abs, call_extern, call_intrin, call_packed, if_then_else, isinf, isnan, likely,
    max_value, min_value, power, reinterpret,
)  # fmt: skip
from mlcweb.tir.logic import all, any
from mlcweb.tir.reducers import max, min, sum
from mlcweb.tir.reduction import CommReducer, Reduce, comm_reducer
from mlcweb.tir.stmt import (
    AllocBuffer, AssertStmt, AttrStmt, Block, BlockRealize, BufferStore, DeclBuffer, Evaluate,
    For, ForKind, IfThenElse, IterType, IterVar, LetStmt, SeqStmt, Stmt, While,
)  # fmt: skip
from mlcweb.tir.tensor_intrin import TensorIntrin

if TYPE_CHECKING:
    from mlcweb.arith.index_map import IndexMap
    from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError, Trace


if not TYPE_CHECKING:
    from mlcweb.tir.constructors import CONSTRUCTORS, const

    globals().update(CONSTRUCTORS)


def __getattr__(name: str) -> Any:
    from mlcweb.tir.op_functions import FUNCTIONS

    return FUNCTIONS[name] if name in FUNCTIONS else provided(__name__, name)


def __dir__() -> list[str]:
    from mlcweb.tir.op_functions import FUNCTIONS

    return [*globals(), *FUNCTIONS, *provided_names(__name__)]
