"""The graph level: whole models as functions on tensors, with shapes that may be symbolic.

Where things live:

- expr.py, struct_info.py: the nodes, and what is known of their values before a program runs.
  constant_data.py, attrs.py: what constants and calls hold.
- deduction.py: struct info of expressions from their parts; dims.py: arithmetic on extents;
  analysis/: comparing struct infos, variables and their uses, well-formedness, dead bindings.
- op/: the operators. One `register` line and one function for each; see op/registry.py.
- block_builder.py builds functions, normalize.py brings what it is given into normal form,
  emit_te.py turns tensor expressions into functions of TensorIR and calls of them.
- expr_functor.py: visitors and mutators; binding.py: parameters and extents made constant;
  binding_rewrite.py: dataflow blocks changed binding by binding.
- transform/: the passes; pipeline.py: their usual sequences.

Scripts are read and printed by `mlcweb.script` (parser/relax.py, printer/relax.py), where the names
of `R` are. Running (`relax.build`, `relax.VirtualMachine`) is implemented above the runtime: see
`mlcweb.providers`.
"""

from __future__ import annotations

from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.span import Span
from mlcweb.relax import (
    analysis, attrs, binding, block_builder, deduction, dims, expr, expr_functor, op, struct_info,
)  # fmt: skip
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.expr import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, DataflowVar, DataTypeImm, Expr,
    ExternFunc, Function, If, MatchCast, PrimValue, SeqExpr, ShapeExpr, StringImm, Tuple,
    TupleGetItem, Var, VarBinding, const, convert_to_expr, extern,
)  # fmt: skip
from mlcweb.relax.expr_functor import ExprFunctor, PyExprMutator, PyExprVisitor
from mlcweb.relax.op.base import call_dps_packed, call_pure_packed, call_tir
from mlcweb.relax.op.inplace import call_tir_inplace
from mlcweb.relax.op.te_grad import call_tir_with_grad
from mlcweb.relax.struct_info import (
    FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, StructInfo,
    TensorStructInfo, TupleStructInfo,
)  # fmt: skip

__getattr__ = lazy_attributes(
    __name__,
    {
        "pipeline": ("get_pipeline", "register_pipeline"),
        "binding_rewrite": ("DataflowBlockRewrite",),
        "backend": (),
        "transform": (),
        "frontend": (),
        "dpl": (),
        "training": (),
    },
)
