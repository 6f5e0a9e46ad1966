# ruff: noqa: E501
"""Programs for ToMixedPrecision: what is computed in half precision, and where it is converted."""

CASES: dict[str, tuple[str, str]] = {}

_PASS = "relax.transform.ToMixedPrecision()"
_XW = "x: R.Tensor((4, 4), 'float32'), w: R.Tensor((4, 4), 'float32')"


def _case(
    name: str, body: str, params: str = _XW, transform: str = _PASS, results: str = "gv"
) -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    CASES[f"precision_{name}"] = (
        transform,
        f"""
@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
{lines}
            R.output({results})
        return {results}
""",
    )


_OUT16 = 'relax.transform.ToMixedPrecision(out_dtype="float16")'

for _name, _transform in {"wrapped": _PASS, "wrapped_out16": _OUT16}.items():
    _case(
        _name,
        "a = R.wrap_param(w, dtype='float32')\nb = R.matmul(x, a)\nc = R.wrap_param(v, dtype='float32')\nd = R.add(b, c)\ng = R.nn.softmax(c)\ngv = (d, g)",
        "x: R.Tensor((4, 4), 'float32'), w: R.Tensor((4, 4), 'float16'), v: R.Tensor((4,), 'float16')",
        _transform,
    )

for _name, _body in {
    "alone": "gv = R.matmul(x, w)",
    "two": "a = R.matmul(x, w)\nb = R.matmul(a, w)\ngv = R.nn.relu(b)",
    "same_twice": "a = R.matmul(x, x)\nb = R.matmul(x, w)\ngv = R.add(a, b)",
    "followed": "a = R.matmul(x, w)\nb = R.nn.relu(a)\ngv = R.matmul(b, w)",
    "not_followed": "a = R.matmul(x, w)\nb = R.nn.relu(a)\nc = R.nn.softmax(b)\nd = R.matmul(c, w)\ngv = R.add(d, a)",
    "before": "a = R.add(x, x)\nb = R.matmul(a, w)\nc = R.nn.softmax(a)\ngv = R.add(b, c)",
    "number": "a = R.matmul(x, w)\nb = R.multiply(a, R.const(1.5, 'float32'))\ngv = R.matmul(b, w)",
    "large_number": "a = R.matmul(x, w)\nb = R.multiply(a, R.const(1e6, 'float32'))\ngv = R.matmul(b, w)",
    "constant": "a = R.matmul(x, R.const([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], 'float32'))\nb = R.add(a, R.const([1.0, 2.0], 'float32'))\ngv = R.nn.relu(b)",
    "integer_constant": "a = R.matmul(x, w)\nb = R.astype(R.const([1, 2, 3, 4], 'int32'), 'float32')\nc = R.add(a, b)\ngv = R.matmul(c, w)",
    "own_casts": "a = R.astype(x, 'float16')\nb = R.matmul(a, R.astype(w, 'float16'))\nc = R.astype(b, 'float32')\ngv = R.nn.relu(c)",
    "tuple": "a = R.matmul(x, w)\nt = (a, x)\nb = t[0]\nc = R.nn.relu(b)\nd = R.matmul(c, w)\ngv = (d, t)",
    "tuple_of_both": "a = R.matmul(x, w)\nt = (a, x)\nb = R.concat(t, axis=1)\nc = R.nn.relu(b)\ngv = R.matmul(w, c)",
    "tuple_half": "u = (x, x)\ny = u[0]\na = R.matmul(y, w)\nb = R.matmul(x, w)\ngv = R.add(a, b)",
    "tuple_one_used": "u = (x, w)\nv = u[0]\nd = R.matmul(v, x)\ngv = d",
    "split_before": "t = R.split(x, 2, axis=0)\ny = t[0]\nz = t[1]\na = R.matmul(y, x)\nb = R.nn.softmax(z)\ngv = (a, b)",
    "split_one_used": "t = R.split(x, 2, axis=0)\ny = t[0]\ngv = R.matmul(y, w)",
    "split": "a = R.matmul(x, w)\nt = R.split(a, 2, axis=0)\nb = t[0]\nc = R.nn.relu(b)\ngv = R.matmul(c, w)",
    "concat": "a = R.matmul(x, w)\nb = R.concat((a, a), axis=1)\nc = R.nn.relu(b)\ngv = R.matmul(w, c)",
    "dropout": "a = R.matmul(x, w)\nb = R.nn.dropout(a)\nc = b[0]\ngv = R.matmul(c, w)",
    "sum": "a = R.matmul(x, w)\nb = R.sum(a)\ngv = R.multiply(b, R.const(2.0, 'float32'))",
    "like": "a = R.matmul(x, w)\nb = R.zeros_like(a)\nc = R.add(a, b)\nd = R.zeros((4, 4), 'float32')\ne = R.add(c, d)\ngv = R.matmul(e, w)",
    "full": "a = R.full((4, 4), R.const(1.0, 'float32'), 'float32')\nb = R.add(a, x)\ngv = R.matmul(b, w)",
    "shapes": "a = R.matmul(x, w)\nb = R.reshape(a, (16,))\nc = R.permute_dims(R.reshape(b, (4, 4)))\nd = R.strided_slice(c, axes=[0], begin=[0], end=[2])\ngv = R.matmul(d, w)",
    "pad": "a = R.matmul(x, w)\nb = R.nn.pad(a, [1, 1, 1, 1])\nc = R.add(b, R.const(1.0, 'float32'))\ngv = c",
    "renamed": "a = R.matmul(x, w)\nb = a\ngv = R.matmul(b, w)",
    "renamed_parameter": "y = x\ngv = R.matmul(y, w)",
    "match_cast": "a = R.matmul(x, w)\nb = R.match_cast(a, R.Tensor((4, 4), 'float32'))\ngv = R.matmul(b, w)",
    "where": "a = R.matmul(x, w)\nb = R.where(R.less(a, x), a, x)\ngv = R.matmul(b, w)",
    "both_uses": "a = R.matmul(x, w)\nb = R.nn.relu(a)\nd = R.matmul(b, x)\nc = R.add(b, x)\ngv = R.add(c, d)",
    "back_and_forth": "a = R.matmul(x, w)\nb = R.astype(a, 'float32')\nc = R.matmul(b, w)\nd = R.astype(c, 'int32')\ngv = d",
    "fma": "a = R.ewise_fma(x, x, w)\ngv = R.matmul(a, w)",
    "copied_once": "u = R.nn.softmax(x)\na = R.matmul(u, w)\nb = R.matmul(u, w)\nc = R.nn.softmax(b)\nd = R.matmul(c, u)\ne = R.nn.relu(c)\ngv = (a, d, e)",
}.items():
    _case(_name, _body)

_case("results", "a = R.matmul(x, w)\nb = R.nn.relu(a)\nc = R.matmul(b, w)", results="b, c")
_case("out16", "gv = R.matmul(x, w)", transform=_OUT16)
_case(
    "out16_chain",
    "a = R.matmul(x, w)\nb = R.nn.relu(a)\nc = R.matmul(b, w)\ngv = R.nn.softmax(c)",
    transform=_OUT16,
)
_case(
    "named",
    "a = R.nn.relu(w)\nb = R.nn.softmax(w)\nc = R.matmul(x, a)\ngv = R.add(c, b)",
    transform='relax.transform.ToMixedPrecision(fp16_input_names=["w", "z"])',
)
_case(
    "named_results",
    "a = R.matmul(x, w)\nb = R.nn.relu(a)",
    transform='relax.transform.ToMixedPrecision("float16", ["x"])',
    results="a, b",
)
_case(
    "batch_norm",
    "a = R.matmul(x, w)\nb = R.nn.batch_norm(a, g, g, g, g, axis=1)\nc = b[0]\nd = R.nn.relu(c)\ngv = R.matmul(d, w)",
    _XW + ", g: R.Tensor((4,), 'float32')",
)
_case(
    "layer_norm",
    "a = R.matmul(x, w)\nb = R.nn.layer_norm(a, g, g, axes=[1])\nd = R.nn.relu(b)\ngv = R.matmul(d, w)",
    _XW + ", g: R.Tensor((4,), 'float32')",
)
_case(
    "conv",
    "a = R.nn.conv2d(x, w)\nb = R.add(a, y)\nc = R.nn.relu(b)\nd = R.nn.max_pool2d(c, 2)\ngv = R.nn.adaptive_avg_pool2d(d, 1)",
    "x: R.Tensor((1, 3, 8, 8), 'float32'), w: R.Tensor((4, 3, 3, 3), 'float32'), y: R.Tensor((1, 4, 1, 1), 'float32')",
)
_case("attention", "gv = R.nn.attention(q, q, q)", "q: R.Tensor((1, 4, 2, 8), 'float32')")
_case(
    "gather",
    "a = R.matmul(x, w)\nb = R.gather_elements(a, i, axis=1)\nc = R.take(b, R.const(1), axis=0)\ngv = R.matmul(c, w)",
    _XW + ", i: R.Tensor((4, 4), 'int64')",
)
_case(
    "half_already",
    "a = R.matmul(x, w)\nb = R.nn.relu(a)\ns = R.nn.softmax(b)\ngv = R.matmul(s, b)",
    _XW.replace("float32", "float16"),
)
_case(
    "half_partly",
    "a = R.matmul(R.astype(x, 'float32'), w)\nb = R.nn.relu(x)\nc = R.add(x, x)\ngv = (a, b, c)",
    "x: R.Tensor((4, 4), 'float16'), w: R.Tensor((4, 4), 'float32')",
)
_case(
    "tuple_parameter",
    "x = t[0]\nw = t[1]\na = R.matmul(x, w)\nb = R.nn.relu(w)\ngv = (a, b)",
    "t: R.Tuple(R.Tensor((4, 4), 'float32'), R.Tensor((4, 4), 'float32'))",
)

CASES["precision_blocks"] = (
    _PASS,
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        cls = Module
        with R.dataflow():
            a = R.matmul(x, w)
            R.output(a)
        b = R.matmul(a, w)
        with R.dataflow():
            c = R.matmul(b, v)
            d = cls.half(c)
            e = R.matmul(d, v)
            R.output(e)
        return e

    @R.function
    def half(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            a = R.multiply(x, R.const(0.5, "float32"))
            R.output(a)
        return a
""",
)
