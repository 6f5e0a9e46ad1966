"""Functions that choose what is computed, or end it."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.module import GlobalVar
from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.frontend.torch.functions.arithmetic import as_type
from mlcweb.relax.frontend.torch.translator import (
    GraphModule,
    Result,
    TorchError,
    Translator,
    function,
)
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir.expr import Var as PrimVar

EFFECTS = ("cond", "_assert_async")
"""Functions that cannot be in a dataflow block."""


@function("cond")
def cond(
    t: Translator, pred: E.Expr | bool, true_fn: GraphModule, false_fn: GraphModule,
    operands: Sequence[Result] = (),
) -> Result:  # fmt: skip
    """`torch.cond`: the branches become functions of the module."""
    if not all(isinstance(operand, E.Expr) for operand in operands):
        raise TorchError(f"cond needs tensors, not {operands}")
    tensors: list[E.Expr] = list(operands)  # type: ignore[arg-type]
    if isinstance(pred, bool):
        return E.Call(_branch(t, true_fn if pred else false_fn, "cond_branch", tensors), tensors)
    true_call, false_call = (
        E.Call(_branch(t, graph, name, tensors), tensors)
        for graph, name in ((true_fn, "cond_true_branch"), (false_fn, "cond_false_branch"))
    )
    return E.If(pred, true_call, false_call)


def _branch(t: Translator, graph: GraphModule, name: str, operands: Sequence[E.Expr]) -> GlobalVar:
    """The function of a branch, whose symbolic extents are its own."""
    symbols: dict[PrimVar, PrimVar] = {}
    holders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    params = [
        E.Var(node.name, _own(operand.struct_info, symbols))
        for node, operand in zip(holders, operands, strict=True)
    ]
    t.env.update(zip(holders, params, strict=True))
    builder = t.block_builder
    with builder.function(name, params, private=True):
        return builder.emit_func_output(t.as_tuple(t.run(graph)))


def _own(info: StructInfo | None, symbols: dict[PrimVar, PrimVar]) -> StructInfo:
    if not isinstance(info, TensorStructInfo) or info.values is None:
        raise TorchError(f"An operand of cond is {info}, no tensor of known shape")
    extents = [
        symbols.setdefault(extent, PrimVar(extent.name, extent.dtype))
        if isinstance(extent, PrimVar)
        else extent
        for extent in info.values
    ]
    return TensorStructInfo(extents, info.dtype)


@function("_assert_async")
def assert_async(t: Translator, condition: E.Expr, message: str = "Assertion failed") -> None:
    flag = as_type(t, condition, "bool")
    flag = op.reshape(flag, []) if t.ndim(condition) else flag
    t.emit(op.assert_op(flag, [E.StringImm(message)], "{}"))
