"""Conversions of element types, and functions that change no value."""

from __future__ import annotations

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.frontend.torch.functions.arithmetic import DTYPES, as_type
from mlcweb.relax.frontend.torch.translator import Result, Translator, dtype_name, function
from mlcweb.relax.struct_info import ShapeStructInfo
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


@function("to", "type", "_to_copy", "type_as", "astype")
def convert(t: Translator, input: E.Expr, *args: object, **kwargs: object) -> E.Expr:
    """A conversion to the element type among the arguments; devices are not told apart."""
    dtype = kwargs.get("dtype")
    for argument in args:
        if isinstance(argument, E.Expr):
            dtype = t.dtype(argument)
        elif str(argument).startswith("torch.") and "." not in str(argument)[6:]:
            dtype = argument
    name = "" if dtype is None else dtype_name(dtype)
    return as_type(t, input, name) if name in DTYPES else input


def _conversion(name: str, dtype: str) -> None:
    @function(name)
    def convert(t: Translator, input: E.Expr) -> E.Expr:
        return as_type(t, input, dtype)


for _name, _dtype in (
    ("float", "float32"), ("half", "float16"), ("double", "float64"), ("long", "int64"),
    ("int", "int32"), ("bool", "bool"),
):  # fmt: skip
    _conversion(_name, _dtype)


@function("is_floating_point")
def is_floating_point(t: Translator, input: E.Expr) -> E.Expr:
    return t.const(dtypes.is_float(t.dtype(input)), "bool")


@function(
    "contiguous", "clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "dropout",
    "feature_dropout", "stochastic_depth", "to_sparse", "to_dense", "cpu",
)  # fmt: skip
def same(t: Translator, input: E.Expr, *args: object, **kwargs: object) -> E.Expr:
    """What is no computation where a model is only run, on dense tensors."""
    return input


@function("native_dropout")
def native_dropout(t: Translator, input: E.Expr, *args: object) -> Result:
    return input, op.ones_like(input, "bool")


@function("copy")
def copy(t: Translator, input: E.Expr, src: E.Expr, non_blocking: bool = False) -> E.Expr:
    return op.broadcast_to(as_type(t, src, t.dtype(input)), t.shape(input))


@function("item", "_local_scalar_dense")
def item(t: Translator, input: E.Expr) -> E.Expr | PrimExpr:
    """The only element: an integer as a symbolic extent, else a tensor without dimensions."""
    if not t.dtype(input).startswith(("int", "uint")):
        return op.reshape(input, []) if t.ndim(input) else input
    whole = t.bound(op.reshape(as_type(t, input, "int64"), [1]))
    value = PrimVar(t.block_builder.get_unique_name("item"), "int64")
    shape = t.bound(op.tensor_to_shape(whole))
    t.block_builder.match_cast(shape, ShapeStructInfo([value]))
    return value


@function("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size")
def nothing(t: Translator, *args: object, **kwargs: object) -> None:
    return None
