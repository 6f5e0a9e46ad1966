"""Programs for passes that load weights when they are needed, and give results when they are
there."""

CASES: dict[str, tuple[str, str]] = {}

_TENSOR = 'R.Tensor((4,), "float32")'


def _case(name: str, transform: str, program: str) -> None:
    body = "\n".join(f"    {line}" for line in program.strip().splitlines())
    text = f"\n@I.ir_module\nclass Module:\n{body}\n"
    CASES[f"lazy_{name}"] = (f"relax.transform.{transform}", text)


_PROGRAMS = {
    "chain": f"""
@R.function
def main(x: {_TENSOR}, w: {_TENSOR}, b: {_TENSOR}):
    R.func_attr({{"num_input": 1}})
    y = R.multiply(x, w)
    z = R.add(y, b)
    u = R.subtract(z, w)
    return (u, y)
""",
    "without_inputs": f"""
@R.function
def main(w: {_TENSOR}, b: {_TENSOR}):
    y = R.add(w, b)
    return y
""",
    "symbolic": """
@R.function
def main(
    x: R.Tensor(("n",), "float32"), w: R.Tensor(("m", "n"), "float32"), s: R.Tensor((2,), "float32")
):
    R.func_attr({"num_input": 1})
    n = T.int64()
    m = T.int64()
    y = R.multiply(x, w)
    z: R.Tensor((m, n), "float32") = R.add(y, w)
    return z
""",
    "unused": f"""
@R.function
def main(x: {_TENSOR}, w: {_TENSOR}, b: {_TENSOR}):
    R.func_attr({{"num_input": 1}})
    y = R.add(x, b)
    return y
""",
    "dataflow": f"""
@R.function
def main(x: {_TENSOR}, w: {_TENSOR}):
    R.func_attr({{"num_input": 1}})
    with R.dataflow():
        y = R.add(x, w)
        z = R.multiply(y, w)
        gv = R.add(z, z)
        R.output(y, gv)
    return (gv, y, gv)
""",
    "private": f"""
@R.function(private=True)
def main(x: {_TENSOR}, w: {_TENSOR}):
    y = R.add(x, w)
    return y
""",
    "returns_parameter": f"""
@R.function
def main(x: {_TENSOR}, w: {_TENSOR}):
    R.func_attr({{"num_input": 1}})
    y = R.add(x, w)
    return (y, w, x)
""",
    "constant": f"""
@R.function
def main(x: {_TENSOR}, w: {_TENSOR}):
    R.func_attr({{"num_input": 1}})
    y = R.add(x, w)
    return (y, R.const(1.0, "float32"))
""",
    "branch": f"""
@R.function
def main(x: {_TENSOR}, c: R.Tensor((), "bool"), w: {_TENSOR}):
    R.func_attr({{"num_input": 2}})
    if c:
        y = R.add(x, w)
    else:
        y = R.multiply(x, w)
    return y
""",
    "calls": f"""
@R.function(private=True)
def double(x: {_TENSOR}) -> {_TENSOR}:
    y = R.add(x, x)
    return y
@R.function
def main(x: {_TENSOR}, w: {_TENSOR}):
    R.func_attr({{"num_input": 1}})
    y = Module.double(w)
    z = R.add(x, y)
    return z
""",
}  # fmt: skip

for _name, _program in _PROGRAMS.items():
    for _transform in ("LazyGetInput()", "LazySetOutput()"):
        _case(f"{_name}_{_transform[4:7].lower()}", _transform, _program)

_TRANSFORMS = {
    "tuple": f"""
@R.function(pure=False)
def main_transform_params(params: R.Tuple({_TENSOR}, {_TENSOR}, {_TENSOR})):
    R.func_attr({{"num_input": 0}})
    a = params[0]
    b = params[1]
    y = R.add(a, b)
    c = params[2]
    z = R.multiply(y, c)
    out = (y, z, c)
    return out
""",
    "apart": f"""
@R.function
def transform_params(x: {_TENSOR}, a: {_TENSOR}, b: {_TENSOR}):
    R.func_attr({{"num_input": 1, "relax.force_pure": True}})
    y = R.add(a, x)
    z = R.multiply(y, b)
    out = (z, z, R.const(1.0, "float32"))
    return out
""",
    "elsewhere": f"""
@R.function
def main(a: {_TENSOR}, b: {_TENSOR}):
    y = R.add(a, b)
    out = (y, b)
    return out
""",
    "symbolic": """
@R.function
def transform_params(a: R.Tensor(("n",), "float32"), s: R.Shape(["n"])):
    n = T.int64()
    y: R.Tensor((n,), "float32") = R.add(a, a)
    out = (y,)
    return out
""",
}
for _name, _program in _TRANSFORMS.items():
    _case(f"transform_{_name}", "LazyTransformParams()", _program)
_case("get_only", 'LazyTransformParams("load", None)', _TRANSFORMS["tuple"])
_case("names", 'LazyTransformParams("load", "keep")', _TRANSFORMS["apart"])
