"""RemoveRedundantReshape: one reshape in place of several, or none."""

from __future__ import annotations

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.op.infer import op_of
from mlcweb.relax.op.manipulate import reshape
from mlcweb.relax.transform.call_rules import Rewriting, simplifying_pass, tensor
from mlcweb.relax.transform.canonicalize import canonicalize


def RemoveRedundantReshape() -> Pass:
    """Reshape a tensor at once where it was reshaped in steps, and leave it where it has the
    shape."""
    return simplifying_pass("RemoveRedundantReshape", _rule, canonicalize)


def _rule(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name != "relax.reshape":
        return None
    data, shape = call.args
    inner = rewriting.called(data, "relax.reshape")
    source = inner.args[0] if inner is not None else data
    info, result = tensor(source), tensor(rewriting.builder_.normalize(call))
    if info is not None and result is not None and _same(info.values, result.values):
        return source if isinstance(source, E.Expr) else None
    if inner is None or not isinstance(shape, E.Expr):
        return None
    return reshape(source, shape)


def _same(a: object, b: object) -> bool:
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        return False
    analyzer = Analyzer()
    return all(analyzer.can_prove_equal(x, y) for x, y in zip(a, b, strict=True))
