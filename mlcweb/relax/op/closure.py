"""Functions as values: `R.make_closure`, and the calls of what it gives."""

from __future__ import annotations

from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.op import Op
from mlcweb.relax.expr import Call, ExprLike, convert_to_expr
from mlcweb.relax.op import infer
from mlcweb.relax.op.base import (
    InfoArgs,
    argument_tuple,
    given_sinfo_args,
)
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.op.registry import operator


@operator("relax.make_closure", "func", "args", infer=infer.object_info, legalize=keep)
def make_closure(func: ExprLike, args: ExprLike) -> Call:
    """A function of the module whose last parameters are given: the values of the tuple `args`."""
    return Call(Op.get("relax.make_closure"), (convert_to_expr(func), argument_tuple(args)))


def _invoke(name: str, closure: ExprLike, args: ExprLike, infos: InfoArgs) -> Call:
    arguments = (convert_to_expr(closure), argument_tuple(args))
    return Call(Op.get(name), arguments, None, given_sinfo_args(infos))


@operator(
    "relax.invoke_closure", "closure", "args", infer=infer.sinfo_args, legalize=keep, pure=False
)
@takes_newer_keywords
def invoke_closure(closure: ExprLike, args: ExprLike, sinfo_args: InfoArgs = None) -> Call:
    """A call of a closure with the values of the tuple `args`, which may have side effects."""
    return _invoke("relax.invoke_closure", closure, args, sinfo_args)


@operator("relax.invoke_pure_closure", "closure", "args", infer=infer.sinfo_args, legalize=keep)
@takes_newer_keywords
def invoke_pure_closure(closure: ExprLike, args: ExprLike, sinfo_args: InfoArgs = None) -> Call:
    """A call of a closure without side effects with the values of the tuple `args`."""
    return _invoke("relax.invoke_pure_closure", closure, args, sinfo_args)
