"""Programs whose tensors are hinted to be on virtual devices, and modules that change devices."""

CASES: dict[str, tuple[str, str]] = {}


def _program(params: str, body: str, result: str = "", last: str = "gv") -> str:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    return f"""
@I.ir_module
class Module:
    I.module_global_infos({{"vdevice": [
        I.vdevice({{"kind": "llvm"}}, 0), I.vdevice({{"kind": "cuda"}}, 0),
        I.vdevice({{"kind": "metal"}}, 0, "global"),
    ]}})

    @R.function
    def main({params}){result}:
        with R.dataflow():
{lines}
            R.output(gv)
        return {last}
"""


_PLAIN = 'x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")'
_PLACED = 'x: R.Tensor((2, 3), "float32", "cuda"), y: R.Tensor((2, 3), "float32")'
_BODIES = {
    "hint": "a = R.hint_on_device(x, tvm.cuda())\ngv = R.add(a, y)",
    "hint_both": "a = R.hint_on_device(x, tvm.cuda())\nb = R.hint_on_device(y, tvm.cuda())\n"
    "gv = R.add(a, b)",
    "hint_later": "a = R.add(x, y)\nb = R.hint_on_device(a, tvm.cuda())\ngv = R.exp(b)",
    "hint_changes": "a = R.add(x, y)\nb = R.hint_on_device(a, tvm.cuda())\nc = R.exp(b)\n"
    "d = R.hint_on_device(c, tvm.metal())\ngv = R.exp(d)",
    "moved": "a = R.add(x, y)\nb = R.to_vdevice(a, 'metal')\ngv = R.exp(b)",
    "plain": "a = R.add(x, y)\ngv = R.exp(a)",
    "tuple": "a = (x, y)\nb = a[1]\nc = R.hint_on_device(b, tvm.metal())\ngv = R.exp(c)",
    "split": "a = R.split(x, [1], axis=1)\nb = a[0]\nc = R.hint_on_device(b, tvm.metal())\n"
    "gv = R.exp(c)",
    "cast": "a = R.match_cast(y, R.Tensor((2, 3), 'float32'))\n"
    "b = R.hint_on_device(a, tvm.cuda())\ngv = R.exp(b)",
    "kernel": "a = R.call_dps_packed('f', (x,), out_ty=R.Tensor((2, 3), 'float32'))\n"
    "b = R.hint_on_device(a, tvm.cuda())\ngv = R.exp(b)",
    "unknown": "a = R.call_pure_packed('f', x, ty_args=R.Tensor(ndim=2, dtype='float32'))\n"
    "b = R.hint_on_device(a, tvm.cuda())\ngv = R.exp(b)",
}
_REALIZE = "relax.transform.RealizeVDevice()"
for _name, _body in _BODIES.items():
    for _where, _params in {"": _PLAIN, "_placed": _PLACED}.items():
        CASES[f"realize_{_name}{_where}"] = (_REALIZE, _program(_params, _body))
for _name, _result in {
    "result": ' -> R.Tensor((2, 3), "float32", "metal")',
    "result_of_hint": ' -> R.Tensor((2, 3), "float32", "metal")',
}.items():
    _body = _BODIES["hint_later" if "hint" in _name else "plain"]
    CASES[f"realize_{_name}"] = (_REALIZE, _program(_PLAIN, _body, _result))
CASES["realize_result_tuple"] = (
    _REALIZE,
    _program(
        _PLAIN,
        "a = R.exp(x)\nb = R.exp(y)\ngv = (a, b)",
        ' -> R.Tuple(R.Tensor((2, 3), "float32", "metal"), R.Tensor((2, 3), "float32", "cuda"))',
    ),
)
_EVERYWHERE = (
    "a = R.to_vdevice(y, 'cuda')\nb = R.add(x, a)\nc = R.to_vdevice(b, 'metal')\ngv = R.exp(c)"
)
for _name, _index in {"first": 0, "second": 1, "third": 2, "beyond": 3}.items():
    CASES[f"update_{_name}"] = (
        f'relax.transform.UpdateVDevice(VDevice({{"kind": "vulkan"}}, 0), {_index})',
        _program(_PLACED, _EVERYWHERE),
    )
CASES["update_same"] = (
    'relax.transform.UpdateVDevice(module.global_infos["vdevice"][1], 2)',
    _program(_PLACED, _EVERYWHERE),
)
CASES["update_tuple"] = (
    'lambda module: relax.transform.UpdateVDevice(VDevice({"kind": "vulkan"}), 1)(module)',
    _program(
        _PLACED,
        "a = R.split(x, [1], axis=1)\nb = (x, a, y)\ngv = b[1]",
        ' -> R.Tuple(R.Tensor((2, 1), "float32", "cuda"), R.Tensor((2, 2), "float32", "cuda"))',
    ),
)
