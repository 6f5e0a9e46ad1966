"""The language of patterns of graph expressions, under TVM's names."""

from mlcweb.relax.dpl.context import PatternContext, PatternSeq
from mlcweb.relax.dpl.pattern import (
    AndPattern, AttrPattern, CallPattern, ConstantPattern, DataflowVarPattern, DataTypePattern,
    DFPattern, ExprPattern, ExternFuncPattern, FunctionPattern, GlobalVarPattern, NotPattern,
    OrPattern, PrimArrPattern, ShapePattern, StructInfoPattern, TupleGetItemPattern, TuplePattern,
    UnorderedTuplePattern, VarPattern, WildcardPattern, has_attr, has_dtype, is_call_dps_packed,
    is_call_packed, is_call_tir, is_const, is_dfv, is_expr, is_gv, is_op, is_shape, is_tuple,
    is_tuple_get_item, is_var, make_fused_bias_activation_pattern, reject, wildcard,
)  # fmt: skip
from mlcweb.relax.dpl.rewrite import rewrite_bindings, rewrite_call
from mlcweb.relax.dpl.rewriter import PatternMatchingRewriter
