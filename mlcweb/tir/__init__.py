"""TensorIR: expressions, statements, buffers, functions; schedules on request.

`Schedule` and its kin rest on the integer analysis, which rests on the nodes of this package, so
they are loaded when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlcweb.tir import expr, function, stmt
from mlcweb.tir.arithmetic import (
    cast, const, floordiv, floormod, truncdiv, truncmod,
)  # fmt: skip
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, decl_buffer
from mlcweb.tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, Broadcast, BufferLoad, Call, Cast, Div, FloatImm, FloorDiv,
    FloorMod, IntImm, Let, Max, Min, Mod, Mul, Not, Or, PointerType, PrimExpr, Ramp, Select,
    StringImm, Sub, Var,
)  # fmt: skip
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.index_map import IndexMap
from mlcweb.tir.intrinsics import (
    absolute as abs, call_extern, call_packed, if_then_else, isinf, isnan, likely, max_value,
    min_value, power, reinterpret,
)  # fmt: skip
from mlcweb.tir.logic import all, any
from mlcweb.tir.reducers import max, min, sum
from mlcweb.tir.reduction import CommReducer, Reduce, comm_reducer
from mlcweb.tir.stmt import (
    AllocBuffer, AssertStmt, AttrStmt, Block, BlockRealize, BufferStore, Evaluate, For, ForKind,
    IfThenElse, IterType, IterVar, LetStmt, SeqStmt, Stmt, While,
)  # fmt: skip
from mlcweb.tir.tensor_intrin import TensorIntrin

if TYPE_CHECKING:
    from mlcweb.tir.schedule import BlockRV, LoopRV, Schedule, ScheduleError, Trace

_LOADED_ON_REQUEST = {
    "BlockRV": "mlcweb.tir.schedule",
    "ExprRV": "mlcweb.tir.schedule",
    "LoopRV": "mlcweb.tir.schedule",
    "Schedule": "mlcweb.tir.schedule",
    "ScheduleError": "mlcweb.tir.schedule",
    "Trace": "mlcweb.tir.schedule",
}


def __getattr__(name: str) -> Any:
    if name in _LOADED_ON_REQUEST:
        return getattr(import_module(_LOADED_ON_REQUEST[name]), name)
    if name in ("analysis", "schedule", "transform"):
        return import_module(f"mlcweb.tir.{name}")
    from mlcweb.tir.intrinsics import binary_functions, unary_functions

    intrinsic = unary_functions.get(name) or binary_functions.get(name)
    if intrinsic is None:
        raise AttributeError(f"module 'mlcweb.tir' has no attribute {name!r}")
    return intrinsic
