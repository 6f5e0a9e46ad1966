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

_SEQUENCE = (
    "LegalizeOps", "RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking",
    "CallTIRRewrite", "StaticPlanBlockMemory",
)  # fmt: skip


def _plan(name: str, body: str) -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    transform = "module"
    for step in _SEQUENCE:
        transform = f"relax.transform.{step}()({transform})"
    CASES[f"plan_{name}"] = (
        f"lambda module: {transform}",
        f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((8, 8), "float32")):
        with R.dataflow():
{lines}
            R.output(gv)
        return gv
""",
    )


_plan("chain", "a = R.exp(x)\nb = R.exp(a)\nc = R.exp(b)\nd = R.exp(c)\ngv = R.exp(d)")
_plan(
    "sizes",
    """
a = R.exp(x)
b = R.matmul(a, y)
c = R.sum(b)
d = R.exp(y)
e = R.matmul(b, d)
f = R.astype(e, "float16")
g = R.exp(f)
h = R.astype(g, "float32")
gv = (h, c)
""",
)
_plan("small", "a = R.exp(y)\nb = R.sum(a)\nc = R.exp(b)\nd = R.exp(c)\ngv = R.exp(d)")
_plan(
    "reshape",
    "a = R.exp(x)\nb = R.reshape(a, (8, 4))\nc = R.exp(b)\nd = R.exp(c)\ngv = R.exp(d)",
)
_plan(
    "tuple",
    """
a = R.split(x, 2, axis=0)
b = a[0]
c = a[1]
d = R.exp(b)
e = R.exp(c)
f = R.add(d, e)
gv = R.exp(f)
""",
)
_plan("long_lived", "a = R.exp(x)\nb = R.exp(a)\nc = R.exp(b)\nd = R.add(a, c)\ngv = R.add(d, b)")

_transform, _program = CASES["plan_sizes"]
_PLANNED = _transform.removeprefix("lambda module: ")
CASES["lower_planned"] = (
    f"lambda module: relax.transform.LowerAllocTensor()({_PLANNED})",
    _program,
)
CASES["lower_unplanned"] = (
    f"lambda module: {_PLANNED.replace('StaticPlanBlockMemory', 'LowerAllocTensor')}",
    _program,
)
for _name in ("sizes", "reshape", "tuple", "long_lived"):
    _transform, _program = CASES[f"plan_{_name}"]
    CASES[f"kill_{_name}"] = (
        "lambda module: relax.transform.KillAfterLastUse()(relax.transform.LowerAllocTensor()("
        f"{_transform.removeprefix('lambda module: ')}))",
        _program,
    )
