# ruff: noqa: E501
"""Programs parts of which are for external compilers: merging what goes to one, and calling it."""

from itertools import product

CASES: dict[str, tuple[str, str]] = {}

_COMPOSITES = {
    "relu": ("x: R.Tensor((10,), 'float32')", "R.nn.relu(x)"),
    "gelu": ("x: R.Tensor((10,), 'float32')", "R.nn.gelu(x)"),
    "add": ("x: R.Tensor((10,), 'float32'), y: R.Tensor((10,), 'float32')", "R.add(x, y)"),
}


def _composite(compiler: str, name: str) -> str:
    params, value = _COMPOSITES[name]
    return f"""
    @R.function(private=True)
    def {compiler}_{name}({params}) -> R.Tensor((10,), "float32"):
        R.func_attr({{"Primitive": True, "Composite": "{compiler}.{name}"}})
        with R.dataflow():
            gv: R.Tensor((10,), "float32") = {value}
            R.output(gv)
        return gv
"""


def _module(*bodies: str) -> str:
    text = "\n@I.ir_module\nclass Module:\n"
    called = [f"{compiler}_{name}" for compiler, name in product("AB", _COMPOSITES)]
    for name in called:
        if any(f"Module.{name}(" in body for body in bodies):
            text += _composite(*name.split("_"))
    params = ", ".join(f'{name}: R.Tensor((10,), "float32")' for name in "xyz")
    for number, body in enumerate(bodies):
        lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
        text += f"""
    @R.function
    def {"main" if number == 0 else f"other{number}"}({params}):
        with R.dataflow():
{lines}
            R.output(gv)
        return gv
"""
    return text


_BODIES = {
    "alone": "a = Module.A_relu(x)\ngv = R.nn.relu(a)",
    "chain": "a = Module.A_relu(x)\nb = Module.A_gelu(a)\ngv = Module.A_add(b, y)",
    "twice": "a = Module.A_relu(x)\nb = Module.A_relu(a)\ngv = Module.A_add(b, a)",
    "diamond": "a = Module.A_relu(x)\nb = Module.A_relu(a)\nc = Module.A_gelu(a)\ngv = Module.A_add(b, c)",
    "diamond_of_two": "a = Module.A_relu(x)\nb = Module.A_relu(a)\nc = Module.B_gelu(a)\ngv = Module.A_add(b, c)",
    "producers": "a = Module.A_relu(x)\nb = Module.A_gelu(y)\nc = Module.A_relu(a)\nd = Module.A_gelu(b)\ngv = Module.A_add(c, d)",
    "cycle": "a = Module.A_relu(x)\nb = R.nn.relu(a)\nc = Module.A_gelu(b)\ngv = Module.A_add(a, c)",
    "regions": "a = Module.A_add(x, y)\nb = Module.B_gelu(z)\nc = Module.A_add(a, b)\nd = Module.B_gelu(c)\ne = Module.A_relu(c)\nf = Module.A_add(d, e)\ngv = Module.A_relu(f)",
    "several_results": "a = Module.A_relu(x)\nb = Module.A_gelu(a)\nc = R.add(a, b)\ngv = (c, b)",
    "nothing": "a = R.nn.relu(x)\ngv = R.add(a, y)",
    "reused_by_other": "a = Module.A_relu(x)\nb = R.nn.relu(a)\nc = Module.A_relu(b)\ngv = R.add(c, a)",
    "constant": "a = Module.A_add(x, R.const([1.0] * 10, 'float32'))\nb = Module.A_relu(a)\ngv = b",
}
for _name, _body in _BODIES.items():
    CASES[f"merge_{_name}"] = ("relax.transform.MergeCompositeFunctions()", _module(_body))
_RUN = "relax.transform.RunCodegen()(relax.transform.MergeCompositeFunctions()(module))"
for _name in (
    "alone",
    "chain",
    "diamond_of_two",
    "several_results",
    "nothing",
    "reused_by_other",
    "constant",
):
    CASES[f"codegen_{_name}"] = (f"lambda module: {_RUN}", _module(_BODIES[_name]))
CASES["codegen_symbolic"] = ("relax.transform.RunCodegen()", """
@I.ir_module
class Module:
    @R.function
    def outer(x: R.Tensor((1, "n"), "float32")) -> R.Tensor((1, "n"), "float32"):
        n = T.int64()
        R.func_attr({"Codegen": "A"})

        @R.function
        def inner(y: R.Tensor((1, n), "float32")) -> R.Tensor((1, n), "float32"):
            R.func_attr({"Composite": "A.relu"})
            gv: R.Tensor((1, n), "float32") = R.nn.relu(y)
            return gv

        a: R.Tensor((1, n), "float32") = inner(x)
        return a

    @R.function
    def main(x: R.Tensor((1, "m"), "float32")):
        m = T.int64()
        with R.dataflow():
            a: R.Tensor((1, m), "float32") = Module.outer(x)
            b: R.Tensor((1, m), "float32") = Module.outer(a)
            R.output(b)
        return b
""")  # fmt: skip
CASES["codegen_calls_tir"] = ("relax.transform.RunCodegen()", """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "int64")):
        R.func_attr({"relax.force_pure": True})
        _ = Module.change(x)
        return x

    @T.prim_func(private=True, s_tir=True)
    def change(H: T.Buffer((4,), "int64")):
        H[0] = H[0] + T.int64(1)
""")  # fmt: skip
