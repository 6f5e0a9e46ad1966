# ruff: noqa: E501
"""Programs for LegalizeOps: one operator each, whose function is to be TVM's."""

CASES: dict[str, tuple[str, str]] = {}

_PATTERN = (
    "relax.transform.FuseOpsByPattern([('x.a', relax.dpl.is_op('relax.add')(relax.dpl.is_op('relax.exp')"
    "(relax.dpl.wildcard()), relax.dpl.wildcard()))], bind_constants=False)"
)


def _case(name: str, value: str, *infos: str) -> None:
    params = ", ".join(f"{var}: R.Tensor({info})" for var, info in zip("xyz", infos, strict=False))
    CASES[f"legalize_{name}"] = (
        "relax.transform.LegalizeOps()",
        f"""
@I.ir_module
class Module:
    @R.function
    def main({params}):
        gv = {value}
        return gv
""",
    )


_IMAGE = "(1, 4, 12, 13), 'float32'"
_SYMBOLIC = "('m', 'n', 4), 'float32'"
_case("pad", "R.nn.pad(x, (1, 1, 0, 2, 3, 0))", "(2, 3, 4), 'float32'")
_case("pad_symbolic", "R.nn.pad(x, (1, 1, 0, 2, 0, 0))", _SYMBOLIC)
_case("concat_symbolic", "R.concat((x, y), axis=1)", _SYMBOLIC, _SYMBOLIC)
_case(
    "conv2d_symbolic",
    "R.nn.conv2d(x, y, padding=1)",
    "('m', 4, 'n', 28), 'float32'",
    "('k', 4, 3, 3), 'float32'",
)
_case("avg_pool1d", "R.nn.avg_pool1d(x, 3)", "(1, 4, 12), 'float32'")
_case("avg_pool2d", "R.nn.avg_pool2d(x, (3, 3), padding=(1, 1))", _IMAGE)
_case(
    "avg_pool2d_ceil",
    "R.nn.avg_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1), ceil_mode=True, count_include_pad=True)",
    _IMAGE,
)
_case("avg_pool2d_dilated", "R.nn.avg_pool2d(x, (3, 3), dilation=(2, 2))", _IMAGE)
_case(
    "resize_repeats",
    "R.image.resize2d(x, (24, 39), method='nearest_neighbor', coordinate_transformation_mode='asymmetric', rounding_method='floor')",
    _IMAGE,
)
_case(
    "resize_ratio",
    "R.image.resize2d(x, (36, 26), method='nearest_neighbor', coordinate_transformation_mode='asymmetric', rounding_method='round')",
    _IMAGE,
)
_case("take_narrow", "R.take(x, y, axis=0)", "(5, 4), 'float32'", "(3,), 'int32'")
_case("take_clip", "R.take(x, y, axis=0, mode='clip')", "(5, 4), 'float32'", "(3,), 'int32'")
_case(
    "one_hot",
    "R.one_hot(x, R.prim_value(T.float32(1)), R.prim_value(T.float32(0)), 5, axis=-1)",
    "(3,), 'int32'",
)
_case("where", "R.where(x, y, z)", "(2, 3), 'bool'", "(2, 3), 'float32'", "(3,), 'float32'")
_case("logical_xor", "R.logical_xor(x, y)", "(2, 3), 'bool'", "(2, 3), 'bool'")
_case("shape_to_tensor", "R.shape_to_tensor(R.shape([2, 3, 4]))", "(2, 3), 'float32'")
_case("eye_like", "R.eye_like(x)", "(2, 3), 'float32'")
_case("gelu_tanh", "R.nn.gelu_tanh(x)", "(2, 3), 'float32'")
_case("selu", "R.nn.selu(x)", "(2, 3), 'float32'")
_case("rms_norm", "R.nn.rms_norm(x, y, axes=[-1])", "(2, 4), 'float16'", "(4,), 'float16'")
_case(
    "layer_norm_symbolic",
    "R.nn.layer_norm(x, y, z, axes=[-2, -1])",
    _SYMBOLIC,
    "('n', 4), 'float32'",
    "('n', 4), 'float32'",
)
_case("collapse_sum_to", "R.collapse_sum_to(x, R.shape([3, 1]))", "(2, 3, 4), 'float32'")

for _name, _last, _returns in (
    ("inner_used_later", "c = R.subtract(b, a)", "c"),
    ("inner_used_first", "c = R.subtract(a, b)", "c"),
    ("leaving_first", "c = R.sum(a)", "b, c"),
):
    CASES[f"pattern_results_{_name}"] = (
        _PATTERN,
        f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.add(a, x)
            {_last}
            R.output({_returns})
        return ({_returns},)
""",
    )
