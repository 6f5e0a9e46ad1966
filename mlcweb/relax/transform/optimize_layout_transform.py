"""OptimizeLayoutTransform: no change of layout where a later one undoes it."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.op.infer import attribute, op_of
from mlcweb.relax.transform.alter_op_impl import OPERATOR, REMOVE_PAD
from mlcweb.relax.transform.call_rules import Rewriting, simplifying_pass, tensor
from mlcweb.relax.transform.canonicalize import canonicalize
from mlcweb.relax.transform.common_subexpr import eliminate_common
from mlcweb.relax.transform.registration import called_tir
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var

LAYOUT_TRANSFORM = "relax.layout_transform"


def OptimizeLayoutTransform() -> Pass:
    """Use a tensor as it is where its layout is changed and changed back, as AlterOpImpl leaves it
    between two functions of one layout, and change that of each tensor once. Also where padding is
    dropped in between, if it may be anything then (`pad_value=None`)."""
    return simplifying_pass(
        "OptimizeLayoutTransform", _rule, canonicalize, eliminate_common, canonicalize
    )


def _rule(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name != LAYOUT_TRANSFORM:
        return None
    between = rewriting.bound_value(call.args[0])
    unpadded = _unpadded(between, rewriting)
    inner = rewriting.called(between if unpadded is None else unpadded, LAYOUT_TRANSFORM)
    if inner is None or (unpadded is not None and attribute(call, "pad_value") is not None):
        return None
    source, result = inner.args[0], tensor(rewriting.builder_.normalize(call))
    before = tensor(source)
    if before is None or before.values is None or result is None or result.values is None:
        return None
    maps = attribute(inner, "index_map"), attribute(call, "index_map")
    if isinstance(source, E.Expr) and _undone(*maps, before.values, result.values):
        return source
    return None


def _unpadded(value: object, rewriting: Rewriting) -> E.RelaxExpr | None:
    """The tensor whose padding a call of AlterOpImpl's function drops."""
    if not isinstance(value, E.Call):
        return None
    func = called_tir(rewriting.builder_.get(), value)
    arguments = value.args[1] if func is not None else None
    if func is None or func.attrs.get(OPERATOR) != REMOVE_PAD or not isinstance(arguments, E.Tuple):
        return None
    return arguments.fields[0]


def _undone(
    first: IndexMap, then: IndexMap, before: Sequence[PrimExpr], after: Sequence[PrimExpr]
) -> bool:
    """Whether two maps bring each element of a tensor back to where it was, and add none."""
    if len(before) != len(after) or len(first.final_indices) != len(then.initial_indices):
        return False
    indices = [Var(f"i{axis}", extent.dtype) for axis, extent in enumerate(before)]
    analyzer = Analyzer(
        {i: Range(const(0, i.dtype), n) for i, n in zip(indices, before, strict=True)}
    )
    moved = then.map_indices(first.map_indices(indices, analyzer), analyzer)
    pairs = zip((*before, *indices), (*after, *moved), strict=True)
    return all(analyzer.can_prove_equal(old, new) for old, new in pairs)
