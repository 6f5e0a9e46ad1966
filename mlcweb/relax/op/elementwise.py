"""Operators element by element: of one tensor, or of several with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.ir.dialect import also_named
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, const
from mlcweb.relax.op import infer, layout
from mlcweb.relax.op.layout import Decision, InBlocks, Layout
from mlcweb.relax.op.legalize import by, number, te, topi
from mlcweb.relax.op.registry import FOLLOW, Infer, Legalize, call, may_write_in_place, operator
from mlcweb.relax.struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.dtype import is_float


def unary(
    name: str, deduce: Infer = infer.elementwise, legalize: Legalize | None = None
) -> Callable[[ExprLike], Call]:
    """The builder of calls of the operator `relax.{name}` of one tensor, newly registered. It is
    lowered by the function of this name in TOPI."""
    legalize = legalize or by(name, hint=None if "." in name else f"tir_{name}")

    @operator(
        f"relax.{name}", infer=deduce, legalize=legalize, layout=layout.same, precision=FOLLOW
    )
    @also_named(data="x")
    def build(x: ExprLike) -> Call:
        return call(build, x)

    build.__doc__ = f"{name}(x), element by element."
    return build


abs = unary("abs")
ceil = unary("ceil")
floor = unary("floor")
round = unary("round")
trunc = unary("trunc")
negative = unary("negative")
sign = unary("sign")
square = unary("square")

exp, log, sqrt, rsqrt, sigmoid = (
    unary(name, infer.elementwise_float) for name in ("exp", "log", "sqrt", "rsqrt", "sigmoid")
)
erf = unary("erf", infer.elementwise_float, by("erf"))
sin, cos, tan, sinh, cosh, tanh = (
    unary(name, infer.elementwise_float) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
)
asin, acos, atan, asinh, acosh, atanh = (
    unary(name, infer.elementwise_float)
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
)

isnan, isinf, isfinite = (unary(name, infer.predicate) for name in ("isnan", "isinf", "isfinite"))
logical_not = unary("logical_not", infer.elementwise_bool)
bitwise_not = unary("bitwise_not", infer.elementwise_integer)


@operator("relax.clip", infer=infer.same, legalize=by("clip", hint="tir_clip"))
def clip(x: ExprLike, min: ExprLike, max: ExprLike) -> Call:
    """Every element kept between the numbers `min` and `max`."""
    return call(clip, x, min, max)


def _infer_astype(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    return TensorStructInfo(info.shape, infer.attribute(call, "dtype"), ndim=info.ndim)


@operator(
    "relax.astype", "x",
    infer=_infer_astype, legalize=by("cast", "dtype"), layout=layout.same, precision=FOLLOW,
)  # fmt: skip
def astype(x: ExprLike, dtype: object) -> Call:
    """The elements of a tensor, converted."""
    return call(astype, x, dtype=str(dtype))


@operator(
    "relax.wrap_param", "data",
    infer=_infer_astype, legalize=by("cast", "dtype"), layout=layout.same, precision=FOLLOW,
)  # fmt: skip
def wrap_param(data: ExprLike, dtype: object = "float32") -> Call:
    """The elements of a parameter of a model, converted."""
    return call(wrap_param, data, dtype=str(dtype))


def _tensor(value: ExprLike, other: ExprLike) -> ExprLike:
    """A number as a tensor without dimensions, of the other operand's element type."""
    number = constant_value(value)
    if number is None or not isinstance(other, Expr):
        return value
    info = other.struct_info
    dtype = info.dtype if isinstance(info, TensorStructInfo) else None
    fits = dtype is not None and (isinstance(number, int) or is_float(dtype))
    return const(number, dtype if fits else None)


def _layout_binary(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    """The operand of fewer axes decides, the first of equals; numbers fit any layout. Of operands
    of one rank, the one that lies in blocks decides."""
    first, second = layouts
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    if not first or not second:
        return Decision([first, second], first or second)
    if layout.blocks_of(first) or layout.blocks_of(second):
        return _in_blocks(call, first if len(first) >= len(second) else second)
    few, many = (first, second) if len(first) <= len(second) else (second, first)
    new = len(many) - len(few)
    result = (*range(new), *(layout.axis_of(axis) + new for axis in few))
    inputs: list[Layout] = [few if len(each) == len(few) else result for each in (first, second)]
    return Decision(inputs, result)


def _in_blocks(call: Call, order: layout.Order) -> Decision | None:
    """Both operands in an order, if they have its axes and fill its blocks."""
    axes = tuple(sorted(axis for axis in order if isinstance(axis, int)))
    infos = map(layout.info_of, call.args)
    fit = all(layout.initial(info) == axes and layout.whole_blocks(info, order) for info in infos)
    return Decision([order, order], order) if fit else None


def _binary(name: str, deduce: Infer = infer.elementwise) -> Callable[[ExprLike, ExprLike], Call]:
    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        """A scalar constant is written into the function; at least one operand stays a tensor.
        Of two numbers there is no function to make."""
        if isinstance(call.struct_info, PrimStructInfo):
            return call
        first, second = call.args
        right = number(second)
        left = first if right is not second else number(first)
        return builder.call_te(getattr(topi, name), left, right, primfunc_name_hint=name)

    @operator(
        f"relax.{name}", infer=deduce, legalize=legalize, layout=InBlocks(_layout_binary),
        precision=FOLLOW, differentiable=deduce is not infer.comparison,
    )  # fmt: skip
    def build(x1: ExprLike, x2: ExprLike) -> Call:
        return call(build, _tensor(x1, x2), _tensor(x2, x1))

    build.__doc__ = f"{name}(x1, x2) of tensors of one element type, broadcast."
    return build


add = _binary("add")
subtract = _binary("subtract")
multiply = _binary("multiply")
divide = _binary("divide")
may_write_in_place(add, subtract, multiply, divide)
floor_divide = _binary("floor_divide")
mod = _binary("mod")
floor_mod = _binary("floor_mod")
power = _binary("power")
maximum = _binary("maximum")
minimum = _binary("minimum")
atan2 = _binary("atan2", infer.elementwise_float)
log_add_exp = _binary("log_add_exp", infer.elementwise_float)

equal = _binary("equal", infer.comparison)
not_equal = _binary("not_equal", infer.comparison)
less = _binary("less", infer.comparison)
less_equal = _binary("less_equal", infer.comparison)
greater = _binary("greater", infer.comparison)
greater_equal = _binary("greater_equal", infer.comparison)

logical_and = _binary("logical_and", infer.elementwise_bool)
logical_or = _binary("logical_or", infer.elementwise_bool)
logical_xor = _binary("logical_xor", infer.elementwise_bool)
bitwise_and = _binary("bitwise_and", infer.elementwise_integer)
bitwise_or = _binary("bitwise_or", infer.elementwise_integer)
bitwise_xor = _binary("bitwise_xor", infer.elementwise_integer)
left_shift = _binary("left_shift", infer.elementwise_integer)
right_shift = _binary("right_shift", infer.elementwise_integer)


def _fma(x1: te.Tensor, x2: te.Tensor, x3: te.Tensor) -> te.Tensor:
    return topi.add(topi.multiply(x1, x2), x3)


@operator(
    "relax.ewise_fma",
    infer=infer.elementwise, legalize=by(_fma, hint="ewise_fma"), layout=layout.together,
    precision=FOLLOW,
)  # fmt: skip
def ewise_fma(x1: ExprLike, x2: ExprLike, x3: ExprLike) -> Call:
    """x1 * x2 + x3."""
    return call(ewise_fma, x1, x2, x3)
