"""Programs in which DataflowUseInplaceCalls lets operators write over their arguments."""

CASES: dict[str, tuple[str, str]] = {}


def _case(name: str, body: str, params: str = "x y", result: str = "gv") -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    annotated = ", ".join(
        f'{each.partition(":")[0]}: R.Tensor({each.partition(":")[2] or "(2, 3)"}, "float32")'
        for each in params.split()
    )
    CASES[f"in_place_{name}"] = (
        "relax.transform.DataflowUseInplaceCalls()",
        f"""
@I.ir_module
class Module:
    @R.function
    def main({annotated}):
        with R.dataflow():
{lines}
            R.output({result})
        return {result}
""",
    )


_case("arguments", "a = R.add(x, y)\ngv = R.multiply(a, y)")
_case("chain", "a = R.add(x, y)\nb = R.multiply(a, y)\nc = R.nn.relu(b)\ngv = R.nn.silu(c)")
_case("second", "a = R.add(x, y)\ngv = R.subtract(x, a)")
_case("both", "a = R.add(x, y)\nb = R.multiply(x, y)\ngv = R.divide(a, b)")
_case("still_live", "a = R.add(x, y)\nb = R.multiply(a, y)\ngv = R.add(b, a)")
_case("twice", "a = R.add(x, y)\ngv = R.add(a, a)")
_case("broadcast", "a = R.add(x, y)\ngv = R.add(a, w)", "x y w:(3,)")
_case("broadcast_small", "a = R.add(w, w)\ngv = R.add(a, x)", "x w:(3,)")
_case("other_operators", "a = R.exp(x)\nb = R.exp(a)\nc = R.maximum(b, y)\ngv = R.add(c, c)")
_case("reshaped", "a = R.add(x, y)\nb = R.reshape(a, (6,))\nc = R.nn.relu(b)\ngv = R.sum(c)")
_case("matmul", "a = R.matmul(x, y)\nb = R.nn.relu(a)\ngv = R.nn.relu(b)", "x:(3,3) y:(3,3)")
_case("alias", "a = R.add(x, y)\nb = a\nc = R.nn.relu(b)\ngv = R.multiply(c, a)")
_case("alias_dead", "a = R.add(x, y)\nb = a\nc = R.nn.relu(b)\ngv = R.multiply(c, y)")
_case("tuple", "a = R.add(x, y)\nb = (a, y)\nc = b[0]\nd = R.nn.relu(c)\ngv = R.add(d, y)")
_case("tuple_live", "a = R.add(x, y)\nb = (a, y)\nc = b[0]\nd = R.nn.relu(c)\ngv = (d, b)")
_case("tuple_argument", "a = R.add(x, y)\nb = (a, a)\nc = b[1]\nd = R.nn.relu(c)\ngv = R.add(d, a)")
_case(
    "split", "a = R.split(x, 2, axis=1)\nb = a[0]\nc = R.nn.relu(b)\ngv = R.add(c, a[1])", "x:(2,4)"
)
_case("result", "a = R.add(x, y)\nb = R.nn.relu(a)\ngv = (a, b)")
_case("cast", "a = R.add(x, y)\nb = R.astype(a, 'float16')\nc = R.nn.relu(b)\ngv = R.add(c, c)")
_case("symbolic", "a = R.add(x, y)\ngv = R.multiply(a, y)", 'x:("n",3) y:("n",3)')
_case(
    "symbolic_mixed",
    "a = R.add(x, y)\nb = R.nn.relu(a)\nc = R.add(z, z)\ngv = R.add(c, b)",
    'x:("n",3) y:("n",3) z:(1,3)',
)
_case(
    "constants",
    "a = R.add(x, R.const(2.0, 'float32'))\ngv = R.multiply(R.const(3.0, 'float32'), a)",
)
_case("unused", "a = R.add(x, y)\nb = R.nn.relu(a)\ngv = R.add(x, x)")
_case(
    "packed",
    "a = R.add(x, y)\nb = R.call_pure_packed('tests.f', a, ty_args=R.Tensor((2, 3), 'float32'))\n"
    "c = R.nn.relu(b)\ngv = R.nn.relu(a)",
)
_case(
    "shapes", "a = R.zeros((2, 3), 'float32')\nb = R.add(a, x)\nc = R.nn.gelu(b)\ngv = R.nn.relu(c)"
)
_case(
    "nested", "a = R.nn.relu(x)\nb = R.nn.silu(R.add(a, R.multiply(a, y)))\ngv = R.subtract(b, y)"
)
CASES["in_place_two_blocks"] = (
    "relax.transform.DataflowUseInplaceCalls()",
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.nn.relu(a)
            R.output(b)
        c = R.exp(b)
        with R.dataflow():
            d = R.add(c, y)
            e = R.multiply(d, b)
            R.output(e)
        return e

    @R.function
    def other(x: R.Tensor((2, 3), "float32")):
        a = R.nn.relu(x)
        b = R.nn.relu(a)
        return b
""",
)
