# ruff: noqa: E501
"""Programs for ConvertLayout: what each family of operators does behind a convolution."""

CASES: dict[str, tuple[str, str]] = {}

_PASS = 'relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})'


_COLOURS = "x: R.Tensor((2, 3, 28, 28), 'float32'), w: R.Tensor((4, 3, 3, 3), 'float32')"


def _case(
    name: str, body: str, more: str = "", transform: str = _PASS, first: str = _COLOURS
) -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    params = first + more
    CASES[f"layout_{name}"] = (
        transform,
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


_CHANNELS = ", g: R.Tensor((4,), 'float32')"
_IMAGE = ", y: R.Tensor((2, 4, 26, 26), 'float32')"

_case("alone", "gv = R.nn.conv2d(x, w, padding=1, strides=2, out_dtype='float32')")
_case(
    "three",
    "gv = R.nn.conv2d(x, w)",
    "",
    'relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO", "NCHW"]})',
)
_case(
    "by_call",
    "gv = R.nn.conv2d(x, w)",
    "",
    'relax.transform.ConvertLayout({}, layout_cb=lambda call: {"relax.nn.conv2d": ["NHWC", "OHWI"]})',
)
_case(
    "transposed",
    "gv = R.nn.conv2d_transpose(x, v)",
    ", v: R.Tensor((3, 4, 3, 3), 'float32')",
    'relax.transform.ConvertLayout({"relax.nn.conv2d_transpose": ["NHWC", "HWIO"]})',
)
_case(
    "resize_wanted",
    "gv = R.image.resize2d(x, (56, 56), layout='NCHW')",
    "",
    'relax.transform.ConvertLayout({"relax.image.resize2d": ["NHWC"]})',
)
_case(
    "back",
    "b = R.permute_dims(x, [0, 2, 3, 1])\nd = R.nn.conv2d(b, w, data_layout='NHWC')\ngv = R.nn.relu(d)",
    "",
    'relax.transform.ConvertLayout({"relax.nn.conv2d": ["NCHW", "OIHW"]})',
)
_case(
    "mixed",
    "gv = R.nn.conv2d(R.permute_dims(x, [0, 2, 3, 1]), w, data_layout='NHWC', out_layout='NCHW')",
)
_case(
    "conv1d",
    "gv = R.nn.conv1d(y, v)",
    ", y: R.Tensor((2, 3, 28), 'float32'), v: R.Tensor((4, 3, 3), 'float32')",
    'relax.transform.ConvertLayout({"relax.nn.conv1d": ["NWC", "OWI"]})',
)
_case(
    "conv3d",
    "gv = R.nn.conv3d(y, v)",
    ", y: R.Tensor((2, 3, 8, 8, 8), 'float32'), v: R.Tensor((4, 3, 3, 3, 3), 'float32')",
    'relax.transform.ConvertLayout({"relax.nn.conv3d": ["NDHWC", "ODHWI"]})',
)
_case("none", "a = R.sum(x)\nb = R.sum(x, axis=[-1])\nc = R.add(b, a)\ngv = R.nn.relu(c)")
_case(
    "made_explicit",
    "s = R.sum(x, axis=[1], keepdims=True)\nb = R.squeeze(s)\nc = R.permute_dims(b)\nd = R.nn.softmax(c)\ngv = R.tile(d, (2,))",
)

for _name, _body, _more in (
    ("renaming", "b = R.nn.relu(a)\nc = b\ngv = c", ""),
    ("bias", "b = R.add(a, y)\ngv = R.nn.relu(b)", ", y: R.Tensor((1, 4, 1, 1), 'float32')"),
    ("bias_first", "b = R.add(y, a)\ngv = R.nn.relu(b)", ", y: R.Tensor((1, 4, 1, 1), 'float32')"),
    ("bias_few", "b = R.add(a, y)\ngv = R.nn.relu(b)", ", y: R.Tensor((4, 1, 1), 'float32')"),
    ("bias_converted", "b = R.sum(a, axis=[0])\nd = R.add(b, a)\ngv = R.nn.relu(d)", ""),
    ("number", "b = R.add(a, s)\nc = R.multiply(R.const(2.0, 'float32'), b)\ngv = R.nn.relu(c)", ", s: R.Tensor((), 'float32')"),
    ("unknown_rank", "b = R.add(a, y)\nd = R.add(y, y)\ngv = (b, d)", ", y: R.Tensor('float32')"),
    ("sums", "b = R.sum(a, axis=[2, 3])\nc = R.variance(a, [1], keepdims=True)\nd = R.std(a, [-1])\ngv = (b, c, d)", ""),
    ("sum_of_sum", "b = R.sum(a, axis=[3])\nd = R.nn.relu(b)\ngv = R.max(d, axis=[0], keepdims=True)", ""),
    ("permute", "b = R.permute_dims(a, [0, 2, 3, 1])\nd = R.nn.relu(b)\ne = R.sum(d, axis=[3])\ngv = R.nn.relu(e)", ""),
    ("permute_all", "b = R.permute_dims(a)\ngv = R.nn.relu(b)", ""),
    ("reshape", "b = R.reshape(a, (2, 4, 676))\ngv = R.nn.relu(b)", ""),
    ("expand", "b = R.expand_dims(a, [-1, 1])\ngv = R.nn.relu(b)", ""),
    ("expand_sum", "b = R.sum(a, axis=[3])\nd = R.expand_dims(b, [0])\ngv = R.nn.relu(d)", ""),
    ("squeeze", "s = R.sum(a, axis=[1], keepdims=True)\nb = R.squeeze(s, [1])\nc = R.squeeze(s)\ngv = R.add(b, c)", ""),
    ("concat", "b = R.concat((a, y), axis=1)\ngv = R.nn.relu(b)", _IMAGE),
    ("split", "b = R.split(a, [1, 2], axis=1)\nd = b[0]\ne = R.nn.relu(d)\ngv = (e, b)", ""),
    ("slice", "b = R.strided_slice(a, axes=[1, 3], begin=[0, 0], end=[2, 20])\ngv = R.nn.relu(b)", ""),
    ("max_pool", "b = R.nn.max_pool2d(a, pool_size=[2, 2])\ngv = R.nn.relu(b)", ""),
    ("avg_pool", "b = R.nn.avg_pool2d(a, pool_size=[2, 2])\nc = R.nn.adaptive_avg_pool2d(b, output_size=[1, 1])\ngv = R.nn.relu(c)", ""),
    ("softmax", "b = R.nn.softmax(a, axis=1)\ngv = R.nn.relu(b)", ""),
    ("log_softmax", "b = R.nn.log_softmax(a, axis=1)\ngv = R.nn.relu(b)", ""),
    ("batch_norm", "b = R.nn.batch_norm(a, g, g, g, g, axis=1)\nd = b[0]\ngv = R.nn.relu(d)", _CHANNELS),
    ("layer_norm", "b = R.nn.layer_norm(a, g, g, axes=[-2, -1])\ngv = R.nn.relu(b)", ", g: R.Tensor((26, 26), 'float32')"),
    ("layer_norm_apart", "b = R.nn.layer_norm(a, g, g, axes=[1, 3])\ngv = R.nn.relu(b)", ", g: R.Tensor((4, 26), 'float32')"),
    ("group_norm", "b = R.nn.group_norm(a, g, g, num_groups=2, channel_axis=1, axes=[2, 3])\nc = R.nn.instance_norm(b, g, g, channel_axis=1, axes=[2, 3])\nd = R.nn.rms_norm(c, g, axes=[1])\ngv = R.nn.relu(d)", _CHANNELS),
    ("resize", "b = R.image.resize2d(a, (52, 52), layout='NCHW')\ngv = R.nn.relu(b)", ""),
    ("pad", "b = R.nn.pad(a, [0, 0, 0, 0, 1, 1, 1, 1])\ngv = R.nn.relu(b)", ""),
    ("flip", "b = R.flip(a, axis=1)\nc = R.repeat(b, 2, axis=1)\ngv = R.nn.relu(c)", ""),
    ("tile", "b = R.tile(a, (1, 2, 1, 1))\nc = R.tile(b, (2,))\nd = R.tile(c, (2, 1, 3, 1, 1))\ngv = R.nn.relu(d)", ""),
    ("take", "b = R.take(a, i, axis=1)\ngv = R.nn.relu(b)", ", i: R.Tensor((2,), 'int32')"),
    ("gather", "b = R.gather_elements(a, i, axis=1)\ngv = R.nn.relu(b)", ", i: R.Tensor((2, 4, 26, 26), 'int64')"),
    ("where", "d = R.less(a, R.const(0.0, 'float32'))\nb = R.where(d, a, a)\ngv = R.nn.relu(b)", ""),
    ("fma", "b = R.ewise_fma(y, a, a)\nd = R.ewise_fma(b, b, y)\ngv = R.nn.relu(d)", _IMAGE),
    ("activations", "b = R.nn.gelu(a)\nd = R.nn.silu(b)\ne = R.nn.selu(d)\nf = R.astype(e, 'float16')\ngv = R.sigmoid(f)", ""),
    ("no_rule", "b = R.nn.leakyrelu(a)\nd = R.clip(b, 0, 6)\nf = R.cumsum(d, axis=1)\ngv = R.argmax(f, axis=1)", ""),
    ("prelu", "b = R.nn.prelu(a, g, axis=1)\ngv = R.nn.relu(b)", _CHANNELS),
    ("matmul", "b = R.matmul(a, a)\ngv = R.nn.relu(b)", ""),
    ("tuple", "b = (a, x)\nd = b[0]\ne = R.nn.relu(d)\ngv = (e, b)", ""),
    ("second", "b = R.nn.conv2d(a, v)\ngv = (a, b)", ", v: R.Tensor((4, 4, 3, 3), 'float32')"),
    ("transposed_after", "gv = R.nn.conv2d_transpose(a, v)", ", v: R.Tensor((4, 4, 3, 3), 'float32')"),
    ("match_cast", "b = R.match_cast(a, R.Tensor((2, 4, 26, 26), 'float32'))\ngv = R.nn.relu(b)", ""),
    ("logical", "b = R.isnan(a)\nd = R.logical_not(b)\ngv = R.logical_and(b, d)", ""),
    ("like", "b = R.zeros_like(a)\ngv = R.add(a, b)", ""),
):  # fmt: skip
    _case(_name, f"a = R.nn.conv2d(x, w, out_dtype='float32')\n{_body}", _more)

_EIGHT = "x: R.Tensor((2, 8, 9, 9), 'float32'), w: R.Tensor((8, 8, 3, 3), 'float32')"
_LIKE = ", y: R.Tensor((2, 8, 7, 7), 'float32')"

for _name, _body, _more, *_layouts in (
    ("alone", "gv = a", ""),
    ("kernels", "gv = R.nn.relu(a)", "", "NCHW4c", "OIHW2i8o"),
    ("last", "b = R.nn.max_pool2d(a, pool_size=[2, 2])\ngv = R.nn.relu(b)", "", "NHWC4c", "OHWI4o"),
    ("result", "b = R.nn.relu(a)\nd = R.nn.conv2d(b, w)\ngv = R.nn.relu(d)", "", "NCHW", "OIHW", "NCHW8c"),
    ("uneven", "b = R.nn.conv2d(a, v)\ngv = R.nn.conv2d(b, u)", ", v: R.Tensor((6, 8, 3, 3), 'float32'), u: R.Tensor((8, 6, 1, 1), 'float32')"),
    ("groups", "gv = R.nn.conv2d(a, v, groups=8)", ", v: R.Tensor((8, 1, 3, 3), 'float32')"),
    ("bias", "b = R.add(y, a)\ngv = R.nn.relu(b)", ", y: R.Tensor((1, 8, 1, 1), 'float32')"),
    ("bias_few", "b = R.add(a, y)\nd = R.nn.relu(a)\ngv = R.add(b, d)", ", y: R.Tensor((8, 1, 1), 'float32')"),
    ("number", "b = R.add(a, R.const(1.0, 'float32'))\ngv = R.less(R.const(2.0, 'float32'), b)", ""),
    ("residual", "b = R.nn.relu(a)\nd = R.nn.conv2d(b, w, padding=1)\ne = R.add(d, b)\ngv = R.astype(e, 'float16')", ""),
    ("sums", "b = R.sum(a, axis=[2, 3])\nc = R.max(a, [2], keepdims=True)\nd = R.mean(a, [-3])\ne = R.min(a, [0])\nf = R.sum(e, [0, 2])\ngv = (b, c, d, e, f)", ""),
    ("concat", "b = R.nn.relu(a)\nc = R.concat((a, b), axis=1)\nd = R.concat((b, y), axis=1)\ne = R.concat((y, b), axis=2)\ngv = (c, d, e)", _LIKE),
    ("split", "b = R.split(a, 2, axis=1)\nc = b[1]\nf = R.split(a, [3], axis=1)\ng = f[1]\nh = R.split(a, 7, axis=2)\ni = h[3]\nj = R.nn.relu(c)\nk = R.add(g, g)\ngv = (j, k, i)", ""),
    ("pools", "b = R.nn.avg_pool2d(a, pool_size=[2, 2])\nc = R.nn.adaptive_avg_pool2d(b, output_size=[1, 1])\ngv = R.squeeze(c, [2, 3])", ""),
    ("layer_norm", "b = R.nn.layer_norm(a, g, g, axes=[-2, -1])\ngv = R.nn.relu(b)", ", g: R.Tensor((7, 7), 'float32')"),
    ("left", "b = R.nn.softmax(a)\nc = R.permute_dims(b)\nd = R.strided_slice(a, axes=[1], begin=[0], end=[2])\ne = R.image.resize2d(a, (14, 14), layout='NCHW')\ngv = (c, d, e)", ""),
    ("batch_norm", "b = R.nn.batch_norm(a, g, g, g, g, axis=1)\nd = b[0]\ngv = R.nn.relu(d)", ", g: R.Tensor((8,), 'float32')"),
    ("where", "d = R.less(a, y)\nb = R.where(d, a, y)\ngv = R.ewise_fma(b, a, y)", _LIKE),
    ("tuple", "b = (a, x)\nd = b[0]\ne = R.nn.relu(d)\ngv = (e, b)", ""),
):  # fmt: skip
    _desired = _layouts or ["NCHW4c", "OIHW4o"]
    _case(
        f"blocks_{_name}",
        f"a = R.nn.conv2d(x, w, out_dtype='float32')\n{_body}",
        _more,
        f'relax.transform.ConvertLayout({{"relax.nn.conv2d": {_desired}}})',
        _EIGHT,
    )

CASES["layout_two_blocks"] = (
    _PASS,
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 8, 8), "float32"), w: R.Tensor((3, 3, 3, 3), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, w)
            b = R.nn.relu(a)
            R.output(b)
        c = R.nn.relu(b)
        with R.dataflow():
            d = R.nn.conv2d(c, w)
            e = Module.half(d)
            R.output(e)
        return e

    @R.function
    def half(x: R.Tensor((2, 3, 4, 4), "float32")) -> R.Tensor((2, 3, 4, 4), "float32"):
        with R.dataflow():
            a = R.multiply(x, R.const(0.5, "float32"))
            R.output(a)
        return a
""",
)
CASES["layout_symbolic"] = (
    _PASS,
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3, "h", "w"), "float32"), k: R.Tensor((4, 3, 3, 3), "float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        with R.dataflow():
            a = R.nn.conv2d(x, k)
            b = R.nn.relu(a)
            c = R.sum(b, axis=[2, 3])
            gv = (b, c)
            R.output(gv)
        return gv
""",
)
