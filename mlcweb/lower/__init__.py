"""From TensorIR down to flat loops: named passes in one visible order, and their record.

`tvm.lower(program)` calls the package itself.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from mlcweb.ir.module import IRModule
from mlcweb.lower.pipeline import PASSES, PassRecord, lower, record_lowering
from mlcweb.lower.specialize import specialize
from mlcweb.tir.function import PrimFunc


class _Lowering(ModuleType):
    def __call__(
        self,
        inp: Any,
        args: Any = None,
        name: str = "main",
        binds: Any = None,
        simple_mode: bool = False,
    ) -> IRModule:
        """The module with its functions of TensorIR lowered to flat loops.

        Args:
            inp: a module, or a function, which gets the name.
            args, binds, simple_mode: what schedules of tensor expressions needed; TVM, too, takes
                no notice of them for modules and functions.

        Raises:
            TypeError: something else is given, such as the schedule of a tensor expression.
        """
        if isinstance(inp, PrimFunc):
            inp = IRModule({name: inp.with_attr("global_symbol", name)})
        if not isinstance(inp, IRModule):
            raise TypeError(
                f"lower takes an IRModule or a PrimFunc, not {type(inp).__name__}: schedules of "
                "tensor expressions were removed in TVM 0.20; te.create_prim_func([A, B]) makes a "
                "function of them, and tvm.tir.Schedule schedules it"
            )
        functions = {
            var: lower(func) if isinstance(func, PrimFunc) else func
            for var, func in inp.functions.items()
        }
        return inp.with_functions(functions)


sys.modules[__name__].__class__ = _Lowering
