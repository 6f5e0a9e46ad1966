# ruff: noqa: E501
"""Programs for passes over operators: simpler forms, products in another order, other precision."""

CASES: dict[str, tuple[str, str]] = {}


def _case(name: str, transform: str, body: str, params: str, out: str = "gv") -> None:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    CASES[name] = (
        transform,
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


_BN = "x: R.Tensor((1, 4, 8, 8), 'float32'), g: R.Tensor((4,), 'float32'), b: R.Tensor((4,), 'float32'), m: R.Tensor((4,), 'float32'), v: R.Tensor((4,), 'float32')"
_NORM = "bn = R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)\ngv = bn[0]"
_case("decompose_batch_norm", "relax.transform.DecomposeOpsForInference()", _NORM, _BN)
_case(
    "decompose_batch_norm_used",
    "relax.transform.DecomposeOpsForInference()",
    "bn = R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)\na = bn[0]\nc = bn[1]\ngv = (a, c)",
    _BN,
)
_case(
    "decompose_layer_norm",
    "relax.transform.DecomposeOpsForTraining()",
    "gv = R.nn.layer_norm(x, g, b, axes=[-1])",
    "x: R.Tensor((2, 4), 'float32'), g: R.Tensor((4,), 'float32'), b: R.Tensor((4,), 'float32')",
)
_case(
    "decompose_batch_norm_training",
    "relax.transform.DecomposeOpsForTraining()",
    "bn = R.nn.batch_norm(x, g, b, m, v, axis=1)\na = bn[0]\nc = bn[1]\nd = bn[2]\ngv = (a, c, d)",
    _BN,
)

_MM = "x: R.Tensor((2, 4), 'float32'), w0: R.Tensor((4, 5), 'float32'), w1: R.Tensor((4, 6), 'float32')"
_case(
    "combine_two",
    "relax.transform.CombineParallelMatmul()",
    "a = R.matmul(x, w0)\nb = R.matmul(x, w1)\ngv = (a, b)",
    _MM,
)
_case(
    "combine_one",
    "relax.transform.CombineParallelMatmul()",
    "a = R.matmul(x, w0)\ngv = R.exp(a)",
    _MM,
)

_ORDER = "x: R.Tensor((16,), 'float32'), a: R.Tensor((16, 2), 'float32'), b: R.Tensor((2, 32), 'float32')"
_case(
    "order_right",
    "relax.transform.AdjustMatmulOrder()",
    "w = R.matmul(a, b)\ngv = R.matmul(x, w)",
    _ORDER,
)
_case(
    "order_left",
    "relax.transform.AdjustMatmulOrder()",
    "l = R.matmul(a, b)\ngv = R.matmul(l, x)",
    "a: R.Tensor((32, 2), 'float32'), b: R.Tensor((2, 16), 'float32'), x: R.Tensor((16,), 'float32')",
)
_case(
    "order_kept",
    "relax.transform.AdjustMatmulOrder()",
    "l = R.matmul(x, a)\ngv = R.matmul(l, b)",
    _ORDER,
)
_case(
    "sum_of_products",
    "relax.transform.ExpandMatmulOfSum()",
    "w = R.add(a, b)\ngv = R.matmul(x, w)",
    "x: R.Tensor((3, 4), 'float32'), a: R.Tensor((4, 5), 'float32'), b: R.Tensor((4, 5), 'float32')",
)
_case(
    "take_after",
    "relax.transform.ReorderTakeAfterMatmul()",
    "w = R.take(t, i, axis=1)\ngv = R.matmul(x, w)",
    "x: R.Tensor((3, 4), 'float32'), t: R.Tensor((4, 10), 'float32'), i: R.Tensor((2,), 'int32')",
)
_case(
    "permute_after_concat",
    "relax.transform.ReorderPermuteDimsAfterConcat()",
    "ta = R.permute_dims(a)\ntb = R.permute_dims(b)\nc = R.concat((ta, tb), axis=1)\ngv = R.matmul(x, c)",
    "x: R.Tensor((3, 4), 'float32'), a: R.Tensor((5, 4), 'float32'), b: R.Tensor((6, 4), 'float32')",
)
_case(
    "reshape_redundant",
    "relax.transform.RemoveRedundantReshape()",
    "a = R.reshape(x, (6,))\nb = R.reshape(a, (3, 2))\nc = R.reshape(b, (3, 2))\ngv = R.exp(c)",
    "x: R.Tensor((2, 3), 'float32')",
)
_case(
    "reshape_same",
    "relax.transform.RemoveRedundantReshape()",
    "a = R.reshape(x, (2, 3))\ngv = R.exp(a)",
    "x: R.Tensor((2, 3), 'float32')",
)
