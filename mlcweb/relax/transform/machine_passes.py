"""Passes of TVM's pipelines that have nothing left to do here, so that such pipelines run.

What TVM writes out as calls of its virtual machine, `relax.build` makes of a graph as it is; what
captures launches or prepares calls of libraries finds none.
"""

from __future__ import annotations

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax.transform.registration import pass_of


def _unchanged(name: str) -> Pass:
    return pass_of(name, lambda mod: mod)


def _without(name: str, attribute: str) -> Pass:
    """A pass over functions with an attribute, of which there may be none."""

    def check(mod: IRModule) -> IRModule:
        for var, func in mod.functions.items():
            if attribute in func.attrs:
                raise TVMError(
                    f'{name}: the function "{var.name_hint}" is for a library ("{attribute}"), and '
                    "there are none here; relax.build compiles functions without this attribute"
                )
        return mod

    return pass_of(name, check)


def VMShapeLower(*, emit_err_ctx: bool = True) -> Pass:
    """Leaves a module as it is: the virtual machine computes and checks shapes itself."""
    return _unchanged("VMShapeLower")


def VMBuiltinLower() -> Pass:
    """Leaves a module as it is: the virtual machine knows the operators of memory."""
    return _unchanged("VMBuiltinLower")


def LowerRuntimeBuiltin() -> Pass:
    """Leaves a module as it is: the virtual machine knows the operators of memory."""
    return _unchanged("LowerRuntimeBuiltin")


def RewriteCUDAGraph() -> Pass:
    """Leaves a module as it is: launches are not captured here, each is made when it is due."""
    return _unchanged("RewriteCUDAGraph")


def AllocateWorkspace() -> Pass:
    """Leaves a module as it is, if no function asks for memory for a library.

    Raises: TVMError: the pass finds one that does ("WorkspaceSize").
    """
    return _without("AllocateWorkspace", "WorkspaceSize")


def LowerGPUIPCAllocStorage() -> Pass:
    """Leaves a module as it is: no memory is shared by processes here."""
    return _unchanged("LowerGPUIPCAllocStorage")


def IPCAllReduceRewrite(allreduce_strategy: int) -> Pass:
    """Leaves a module as it is: there is one device, and nothing to sum over several."""
    return _unchanged("IPCAllReduceRewrite")
