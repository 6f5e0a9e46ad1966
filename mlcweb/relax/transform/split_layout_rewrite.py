"""SplitLayoutRewritePreproc: what brings weights into another layout, as a function of its own."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import rewrite_nodes
from mlcweb.lower.layout_preproc import layout_copies, without_layout_copies
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.op.base import call_tir
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.dead_code import called_by_graphs
from mlcweb.relax.transform.registration import called_tir, map_unfused, pass_of
from mlcweb.schedule.layout_rewrite import LAYOUT_FREE, PREPROC
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Var
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockRealize, Stmt, sequence

PREPACK, PREPACKED = "_weight_prepack", "_prepacked"
"""How the names of the parts of a function end."""


def SplitLayoutRewritePreproc() -> Pass:
    """Split each function of TensorIR with marked copies of parameters in another layout, as
    `RewriteLayout` makes them, in two: `f_weight_prepack` makes the copies, and `f_prepacked` takes
    them in place of the parameters. Calls of the one become calls of both, so that FoldConstant, or
    LiftTransformParams, can have the first run ahead of time."""
    return pass_of("SplitLayoutRewritePreproc", split_layout_rewrites)


def split_layout_rewrites(mod: IRModule) -> IRModule:
    split = {
        var: parts
        for var, func in mod.functions.items()
        if isinstance(func, PrimFunc)
        for parts in (_split(var.name_hint, func),)
        if parts is not None
    }
    if not split:
        return mod
    calls = _Calls(mod, split)
    changed = map_unfused(mod, calls.visit_expr)
    used = called_by_graphs(changed)
    functions = dict(changed.functions)
    for var, parts in split.items():
        if parts.rest_var in used:
            functions |= {parts.prepack_var: parts.prepack, parts.rest_var: parts.rest}
            if var not in used:
                del functions[var]
    return changed.with_functions(functions)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A function that was split. `copies` are the positions of parameters with their copies."""

    prepack_var: GlobalVar
    prepack: PrimFunc
    rest_var: GlobalVar
    rest: PrimFunc
    copies: dict[int, Buffer]


def _split(name: str, func: PrimFunc) -> _Parts | None:
    """The parts of a function; None where it makes no marked copies of parameters."""
    copies = layout_copies(func)
    if not copies:
        return None
    root = func.root_block
    assert root is not None
    attrs = {key: value for key, value in func.attrs.items() if key != LAYOUT_FREE}
    weights = [func.params[copy.number] for copy in copies]
    body = sequence(*(_unmarked(copy.nest) for copy in copies))
    results = {Var(copy.buffer.name, "handle"): copy.buffer for copy in copies}
    inputs = {param: func.buffer_map[param] for param in weights}
    prepack = replace(
        func,
        params=(*inputs, *results),
        buffer_map={**inputs, **results},
        body=BlockRealize((), const(True), replace(root, body=body, alloc_buffers=())),
        attrs=attrs,
    )
    rest = replace(without_layout_copies(func, copies), attrs=attrs)
    return _Parts(
        GlobalVar(name + PREPACK),
        FreshCopy().function(prepack),
        GlobalVar(name + PREPACKED),
        FreshCopy().function(rest),
        {copy.number: copy.buffer for copy in copies},
    )


def _unmarked(nest: Stmt) -> Stmt:
    """The nest without the mark of its block."""

    def without(block: Block) -> Block:
        kept = {key: value for key, value in block.annotations.items() if key != PREPROC}
        return replace(block, annotations=kept)

    return rewrite_nodes(nest, Block, without)


class _Calls(PyExprMutator):
    """Calls both parts of functions that were split."""

    def __init__(self, mod: IRModule, split: dict[GlobalVar, _Parts]) -> None:
        super().__init__(mod)
        self.mod = mod
        self.split = split

    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if not isinstance(new, E.Call) or called_tir(self.mod, new) is None:
            return new
        callee, arguments, *sizes = new.args
        parts = self.split.get(callee) if isinstance(callee, GlobalVar) else None
        if parts is None or not isinstance(arguments, E.Tuple):
            return new
        fields = list(arguments.fields)
        infos = [TensorStructInfo(b.shape, b.dtype) for b in parts.copies.values()]
        weights = [fields[n] for n in parts.copies]
        single = len(infos) == 1
        prepack = call_tir(parts.prepack_var, E.Tuple(weights), infos[0] if single else infos)
        packed = self.builder_.emit(prepack)
        for index, number in enumerate(parts.copies):
            fields[number] = packed if single else self.builder_.emit(E.TupleGetItem(packed, index))
        args = (parts.rest_var, E.Tuple(fields), *sizes)
        return self.builder_.emit(E.Call(new.op, args, new.attrs, new.sinfo_args, span=new.span))
