# ruff: noqa: E501
"""Programs for FoldBatchnormToConv2D and FuseTransposeMatmul."""

CASES: dict[str, tuple[str, str]] = {}


def _case(name: str, transform: str, params: str, body: str) -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    CASES[name] = (
        f"relax.transform.{transform}()",
        f"""
@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
{lines}
            R.output(gv)
        return gv
""",
    )


_X = "x: R.Tensor((1, 3, 8, 8), 'float32')"
_WEIGHT = "R.const([[[[1.0]], [[2.0]], [[3.0]]], [[[4.0]], [[5.0]], [[6.0]]]], 'float32')"
_STATISTICS = "R.const([2.0, 1.0], 'float32'), R.const([3.0, 0.5], 'float32'), R.const([4.0, 0.25], 'float32'), R.const([1.0, 2.0], 'float32')"
_NORM = f"b = R.nn.batch_norm(a, {_STATISTICS}, axis=1, epsilon=0.001, training=False)\nc = b[0]\ngv = R.nn.relu(c)"

_case(
    "fold_norm", "FoldBatchnormToConv2D", _X, f"a = R.nn.conv2d(x, {_WEIGHT}, padding=1)\n{_NORM}"
)
_case(
    "fold_norm_of_parameters",
    "FoldBatchnormToConv2D",
    _X + ", w: R.Tensor((2, 3, 1, 1), 'float32')",
    f"a = R.nn.conv2d(x, w)\n{_NORM}",
)
_case(
    "fold_norm_behind_bias",
    "FoldBatchnormToConv2D",
    _X,
    f"d = R.nn.conv2d(x, {_WEIGHT})\na = R.add(d, R.const([[[[1.0]]]], 'float32'))\n{_NORM}",
)

_XW = "x: R.Tensor((4, 8), 'float32'), w: R.Tensor((6, 8), 'float32')"
_NT = "a = R.permute_dims(w)\ngv = R.matmul(x, a)"
_case("transposed", "FuseTransposeMatmul", _XW, _NT)
_case(
    "transposed_axes",
    "FuseTransposeMatmul",
    _XW,
    "a = R.permute_dims(w, [1, 0])\nc = R.matmul(x, a)\nd = R.nn.relu(c)\ngv = R.add(d, c)",
)
_case(
    "transposed_half",
    "FuseTransposeMatmul",
    _XW,
    "a = R.permute_dims(w)\ngv = R.matmul(x, a, out_dtype='float16')",
)
_case("transposed_vector", "FuseTransposeMatmul", _XW.replace("(4, 8)", "(8,)"), _NT)
_case(
    "transposed_batch",
    "FuseTransposeMatmul",
    "x: R.Tensor((4, 8), 'float32'), w: R.Tensor((2, 6, 8), 'float32')",
    "a = R.permute_dims(w, [0, 2, 1])\ngv = R.matmul(x, a)",
)
_case(
    "transposed_broadcast",
    "FuseTransposeMatmul",
    "x: R.Tensor((3, 1, 4, 8), 'float32'), w: R.Tensor((2, 6, 8), 'float32')",
    "a = R.permute_dims(w, [0, 2, 1])\ngv = R.matmul(x, a)",
)
_case(
    "transposed_otherwise",
    "FuseTransposeMatmul",
    "x: R.Tensor((4, 8), 'float32'), w: R.Tensor((2, 6, 8), 'float32')",
    "a = R.permute_dims(w, [1, 2, 0])\ngv = R.matmul(x, a)",
)
_case(
    "transposed_two",
    "FuseTransposeMatmul",
    _XW + ", v: R.Tensor((9, 6), 'float32')",
    "a = R.permute_dims(w)\nb = R.matmul(x, a)\nc = R.permute_dims(v)\ngv = R.matmul(b, c)",
)
CASES["transposed_symbolic"] = (
    "relax.transform.FuseTransposeMatmul()",
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((6, 8), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.permute_dims(w)
            gv = R.matmul(x, a)
            R.output(gv)
        return gv
""",
)
