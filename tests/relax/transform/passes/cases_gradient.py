# ruff: noqa: E501
"""Functions whose gradients are computed by the pass Gradient."""

CASES: dict[str, tuple[str, str]] = {}


def _case(name: str, body: str, params: str, out: str = "gv", **options: object) -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    args = "".join(f", {key}={value!r}" for key, value in options.items())
    CASES[f"gradient_{name}"] = (
        f'relax.transform.Gradient("main"{args})',
        f"""
@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
{lines}
            R.output({out})
        return {out}
""",
    )


_X = 'x: R.Tensor((3, 3), "float32")'
_XY = f'{_X}, y: R.Tensor((3, 3), "float32")'
_V = 'x: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 5), "float32"), b: R.Tensor((5,), "float32")'

_case("add", "lv = R.add(x, y)\ngv = R.sum(lv)", _XY)
_case("chain", "lv = R.add(x, x)\nlv1 = R.multiply(lv, x)\ngv = R.sum(lv1)", _X)
_case(
    "binary",
    "a = R.subtract(x, y)\nb = R.divide(a, y)\nc = R.power(b, x)\nd = R.maximum(c, y)\ne = R.minimum(d, x)\ngv = R.sum(e)",
    _XY,
)
_case(
    "unary",
    "a = R.exp(x)\nb = R.log(a)\nc = R.sqrt(b)\nd = R.tanh(c)\ne = R.sigmoid(d)\nf = R.negative(e)\ng = R.sin(f)\nh = R.cos(g)\ni = R.abs(h)\ngv = R.sum(i)",
    _X,
)
_case("dense", "a = R.matmul(x, w)\nc = R.add(a, b)\nd = R.nn.relu(c)\ngv = R.sum(d)", _V)
_case(
    "softmax",
    "a = R.matmul(x, w)\nc = R.nn.log_softmax(a)\nd = R.nn.softmax(c)\ngv = R.mean(d)",
    _V,
)
_case(
    "shapes",
    "a = R.reshape(x, (9,))\nb = R.expand_dims(a, axis=0)\nd = R.reshape(b, (3, 3))\ne = R.permute_dims(d)\nf = R.broadcast_to(R.sum(e, axis=0, keepdims=True), (3, 3))\ngv = R.sum(f)",
    _X,
)
_case(
    "concat",
    "a = R.concat((x, y), axis=1)\nb = R.split(a, 3, axis=1)\nc = b[0]\nd = b[1]\ne = R.multiply(c, d)\ngv = R.sum(e)",
    _XY,
)
_case(
    "reductions",
    "a = R.sum(x, axis=1)\nb = R.mean(x, axis=0)\nd = R.add(a, b)\ne = R.multiply(d, b)\ngv = R.sum(e)",
    _X,
)
_case("unused", "lv = R.add(x, x)\ngv = R.sum(lv)", _XY)
_case(
    "loss",
    "a = R.matmul(x, w)\nc = R.add(a, b)\nd = R.nn.log_softmax(c)\ngv = R.nn.nll_loss(d, t, reduction='sum')",
    _V + ', t: R.Tensor((3,), "int64")',
)
_case("cross_entropy", "gv = R.nn.cross_entropy_with_logits(x, y)", _XY)
_case("where", "c = R.less(x, y)\na = R.where(c, x, y)\ngv = R.sum(a)", _XY)
_case(
    "activation",
    "a = R.nn.silu(x)\nb = R.nn.relu(a)\nd = R.astype(b, 'float32')\ngv = R.sum(d)",
    _X,
)
_case("tuple", "a = (x, y)\nb = a[0]\nc = a[1]\nd = R.multiply(b, c)\ngv = R.sum(d)", _XY)
_case(
    "constants",
    "a = R.multiply(x, R.const(2.0, 'float32'))\nb = R.zeros_like(a)\nc = R.add(a, b)\ngv = R.sum(c)",
    _X,
)
_case(
    "batched",
    "a = R.matmul(x, y)\ngv = R.sum(a)",
    'x: R.Tensor((2, 3, 4), "float32"), y: R.Tensor((4, 5), "float32")',
)
_case("take", "a = R.take(x, i, axis=0)\ngv = R.sum(a)", _X + ', i: R.Tensor((2,), "int32")')
_CONV = 'x: R.Tensor((2, 4, 8, 8), "float32"), w: R.Tensor((6, 4, 3, 3), "float32")'
_case("conv", "a = R.nn.conv2d(x, w)\ngv = R.sum(a)", _CONV)
_case("conv_strides", "a = R.nn.conv2d(x, w, strides=2, padding=1)\ngv = R.sum(a)", _CONV)
_case(
    "conv_groups", "a = R.nn.conv2d(x, w, groups=2)\ngv = R.sum(a)", _CONV.replace("6, 4", "6, 2")
)
_case(
    "pools",
    "a = R.nn.max_pool2d(x, 2)\nb = R.nn.avg_pool2d(a, 2, strides=2, padding=1, ceil_mode=True)\ngv = R.sum(b)",
    _CONV,
)
CASES["gradient_parts"] = (
    'relax.transform.Gradient("main", require_grads=module["main"].params[:1], target_index=1)',
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
        with R.dataflow():
            lv1 = R.multiply(x, y)
            gv1 = R.sum(lv1)
            gv2 = R.sum(R.add(x, lv1))
            R.output(gv1, gv2)
        return (gv1, gv2)
""",
)
