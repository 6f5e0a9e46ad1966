"""What a pass of lowering is: a function of a `PrimFunc` that is a pass of modules, too.

`@lowering_pass("FlattenBuffer")` makes one of a function. A pipeline runs it on the function that
is built; programs get it from `tvm.tir.transform` under that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import FunctionalPass, PassContext, PassInfo
from mlcweb.tir.function import PrimFunc

PREFIX = "tir."


class PrimFuncPass(FunctionalPass):
    """A pass made of `transform(func, mod, ctx) -> func`, run on each function of TensorIR."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[Any, Any] = {
            var: self.transform(func, mod, ctx) if isinstance(func, PrimFunc) else func
            for var, func in mod.functions.items()
        }
        return mod.with_functions(functions)


class LoweringPass(PrimFuncPass):
    """A pass made of `run(func) -> func`, to be called with a function or a module.

    Args:
        name: what TVM calls it, where TVM has it.
        spellings: what else TVM called it.
        needed: whether code cannot be generated without it.
        switch: the option of a `PassContext` that disables it.
        removes: what no function has any more after it; see analysis/properties.py.
    """

    def __init__(
        self,
        run: Callable[[PrimFunc], PrimFunc],
        name: str,
        *spellings: str,
        needed: bool = False,
        switch: str | None = None,
        removes: tuple[str, ...] = (),
    ) -> None:
        info = PassInfo(0, PREFIX + name, removes=removes)
        super().__init__(lambda func, mod, ctx: run(func), info)
        self.run = run
        self.infos = [PassInfo(0, PREFIX + each) for each in (name, *spellings)]
        self.needed = needed
        self.switch = switch
        self.__doc__ = run.__doc__

    @overload
    def __call__(self, mod: IRModule) -> IRModule: ...

    @overload
    def __call__(self, mod: PrimFunc) -> PrimFunc: ...

    def __call__(self, mod: Any) -> Any:
        return self.run(mod) if isinstance(mod, PrimFunc) else super().__call__(mod)

    def is_enabled(self, context: PassContext) -> bool:
        """Whether a context lets it run.

        Raises:
            TVMError: it is disabled, but needed.
        """
        if self.switch is not None and context.config.get(self.switch):
            return False
        if all(map(context.pass_enabled, self.infos)):
            return True
        if self.needed:
            raise TVMError(
                f'"{self.name}" cannot be disabled: no code is generated without it. '
                "Leave it out of disabled_pass"
            )
        return False


def lowering_pass(
    name: str, *spellings: str, needed: bool = False, removes: tuple[str, ...] = ()
) -> Callable[[Callable[[PrimFunc], PrimFunc]], LoweringPass]:
    """Makes a pass of a function; the arguments are those of `LoweringPass`."""
    return lambda run: LoweringPass(run, name, *spellings, needed=needed, removes=removes)
