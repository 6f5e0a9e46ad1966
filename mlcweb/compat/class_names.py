"""The names that TVM gives to classes: `print(type(mod))` shows `tvm.ir.module.IRModule`."""

from __future__ import annotations

PACKAGE = __name__.partition(".")[0]

_MODULES = {
    "schedule.schedule": "tir.schedule.schedule",
    "schedule.instruction": "tir.schedule.schedule",
    "schedule.trace": "tir.schedule.trace",
    "te.operation": "te.tensor",
    "runtime.target": "target.target",
}
"""A file here -> the file in which TVM has its classes; the others are called alike."""

_CLASSES = {
    "ir.module.BaseFunc": "ir.function.BaseFunc",
    "ir.module.GlobalVar": "ir.expr.GlobalVar",
    "tir.buffer.BufferRegion": "tir.stmt.BufferRegion",
    "tir.buffer.MatchBufferRegion": "tir.stmt.MatchBufferRegion",
    "tir.buffer.Range": "ir.expr.Range",
    "tir.reduction.CommReducer": "tir.expr.CommReducer",
    "tir.reduction.Reduce": "tir.expr.Reduce",
    "tir.stmt.IterVar": "tir.expr.IterVar",
}
"""The same for classes."""


def class_name(cls: type) -> str:
    """What TVM calls a class; the class's own name where a program has defined it."""
    package, _, module = cls.__module__.partition(".")
    if package != PACKAGE:
        return f"{cls.__module__}.{cls.__qualname__}"
    own = f"{module}.{cls.__qualname__}"
    return "tvm." + _CLASSES.get(own, f"{_MODULES.get(module, module)}.{cls.__qualname__}")
