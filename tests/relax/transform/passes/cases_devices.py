"""Programs whose tensors are on virtual devices."""

CASES: dict[str, tuple[str, str]] = {}


def _case(name: str, transform: str, body: str) -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    CASES[f"device_{name}"] = (
        transform,
        f"""
@I.ir_module
class Module:
    I.module_global_infos(
        {{"vdevice": [I.vdevice({{"kind": "llvm"}}, 0), I.vdevice({{"kind": "cuda"}}, 0)]}}
    )

    @R.function
    def main(
        x: R.Tensor((4, 4), "float32", "vdevice:1"), y: R.Tensor((4, 4), "float32"),
        z: R.Tensor((4, 4), "float32", "vdevice:0"),
    ):
        with R.dataflow():
{lines}
            R.output(gv)
        return gv
""",
    )


_BODIES = {
    "elementwise": "a = R.add(x, y)\nb = R.multiply(y, a)\ngv = R.less(b, a)",
    "shapes": "a = R.reshape(x, (16,))\nb = R.split(a, 2)\nc = R.concat(b)\ngv = R.sum(c)",
    "matmul": "a = R.matmul(x, x)\nb = R.matmul(x, z)\ngv = (a, b)",
    "moved": "a = R.exp(x)\nb = R.to_vdevice(a, 'vdevice:0')\ngv = R.add(b, z)",
    "choice": "a = R.less(y, y)\nb = R.where(a, x, y)\nc = R.where(a, x, z)\ngv = (b, c)",
}
for _name, _body in _BODIES.items():
    _case(_name, "lambda module: module", _body)
    if _name in ("elementwise", "shapes"):
        _case(f"{_name}_legalized", "relax.transform.LegalizeOps()", _body)
