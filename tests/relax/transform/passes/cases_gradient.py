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
_XYZ = _XY + ', z: R.Tensor((3, 3), "float32")'
_case(
    "nested_tuples",
    "a = ((y, z), x)\nb = x\nc = a[0]\nd = c[1]\ne = R.multiply(d, b)\nf = a[1]\nh = R.add(e, f)\nk = c[0]\ngv = R.sum(R.multiply(h, k))",
    _XYZ,
)
_case(
    "tuple_parameter",
    "a = x[0]\nb = a[0]\nc = x[1]\nd = R.multiply(b, c)\ngv = R.sum(d)",
    "x: R.Tuple(R.Tuple(R.Tensor((3,), 'float32'), R.Tensor((3,), 'float32')), R.Tensor((3,), 'float32')), y: R.Tuple(R.Tensor((2,), 'float32'))",
)
_BEGIN, _END = "R.grad.start_checkpoint", "R.grad.end_checkpoint"
_case(
    "checkpoint",
    f"a = {_BEGIN}(x)\nb = R.exp(a)\nc = R.multiply(b, y)\nd = R.sin(c)\ne = {_END}(d)\nf = R.multiply(e, e)\ngv = R.sum(f)",
    _XY,
)
_case(
    "checkpoints_in_row",
    f"a = {_BEGIN}(x)\nb = R.exp(a)\nc = R.exp(b)\nd = {_END}(c)\ne = {_BEGIN}(d)\nf = R.exp(e)\nh = R.sum(f)\ngv = {_END}(h)",
    _X,
)
_case(
    "checkpoint_of_tuple",
    f"a = {_BEGIN}(x)\nb = R.exp(a)\nc = (x, b)\nd = c\ne = R.multiply(d[0], d[1])\nf = {_END}(e)\nh = R.exp(f)\ngv = R.sum(h)",
    _X,
)
_case(
    "checkpoint_tree",
    f"a = R.multiply(x, y)\nb = {_BEGIN}(a)\nc = {_BEGIN}(z)\nd = R.multiply(b, c)\ne = {_END}(d)\nf = R.exp(y)\nh = R.multiply(e, f)\ngv = R.sum(h)",
    _XYZ,
)


def _required(name: str, chosen: str) -> None:
    _, program = CASES["gradient_checkpoint"]
    CASES[f"gradient_of_{name}"] = (
        f'relax.transform.Gradient("main", require_grads={chosen})',
        program,
    )


_BINDINGS = 'module["main"].body.blocks[0].bindings'
_required("intermediate", f"[{_BINDINGS}[2].var, module['main'].params[1], {_BINDINGS}[6].var]")
_required("mark", f"{_BINDINGS}[0].var")
_required("same_twice", "[module['main'].params[0]] * 2")
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
