"""Programs for passes that lower models for the virtual machine."""

CASES: dict[str, tuple[str, str]] = {}

_FUNCTIONS = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            b[i] = a[i]

    @T.prim_func(private=True)
    def both(
        a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32"), c: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            b[i] = a[i] * T.float32(2.0)
            c[i] = a[i] + T.float32(1.0)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        R.func_attr({"relax.force_pure": True})
        cls = Module
"""


def _case(name: str, body: str) -> None:
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    CASES[f"call_tir_{name}"] = ("relax.transform.CallTIRRewrite()", f"{_FUNCTIONS}{lines}\n")


_TENSOR = 'R.Tensor((4,), "float32")'
_case(
    "chain",
    f"""
y = R.call_tir(cls.copy, (x,), out_ty={_TENSOR})
z = R.call_tir(cls.copy, (y,), out_ty={_TENSOR})
return z
""",
)
_case(
    "several",
    f"""
y = R.call_tir(cls.both, (x,), out_ty=[{_TENSOR}, {_TENSOR}])
z = y[0]
w = R.call_tir(cls.copy, (z,), out_ty={_TENSOR})
return (w, y)
""",
)
_case(
    "packed",
    f"""
y = R.call_dps_packed("tests.copy", (x,), out_ty={_TENSOR})
z = R.call_tir(cls.copy, (y,), out_ty={_TENSOR})
return z
""",
)
