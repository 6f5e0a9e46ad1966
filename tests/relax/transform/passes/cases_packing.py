"""Programs with copies of weights that are to be made ahead of calls."""

CASES: dict[str, tuple[str, str]] = {}


def _copy(name: str) -> str:
    return f"""
        for i, j in T.grid(8, 8):
            with T.sblock("{name}_packed"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.sblock_attr({{"meta_schedule.layout_rewrite_preproc": True}})
                {name}_packed[vi // 4, vj // 4, vi % 4, vj % 4] = {name}[vi, vj]"""


def _program(weights: str, attrs: str) -> str:
    """A sum of an input and of weights, those in `weights` read through copies."""
    params = "".join(f'{name}: T.Buffer((8, 8), "float32"), ' for name in weights)
    allocated = "".join(
        f'\n        {name}_packed = T.sblock_alloc_buffer((2, 2, 4, 4), "float32")'
        for name in weights
    )
    packed = " + ".join(f"{name}_packed[vi // 4, vj // 4, vi % 4, vj % 4]" for name in weights)
    names = [name.lower() for name in weights]
    declared = "".join(f', {name}: R.Tensor((8, 8), "float32")' for name in names)
    return f"""
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def add(
        X: T.Buffer((8, 8), "float32"), {params}Out: T.Buffer((8, 8), "float32"),
    ):
        T.func_attr({{{attrs}}}){allocated}{"".join(map(_copy, weights))}
        for i, j in T.grid(8, 8):
            with T.sblock("Out"):
                vi, vj = T.axis.remap("SS", [i, j])
                Out[vi, vj] = X[vi, vj] + {packed}

    @R.function
    def main(x: R.Tensor((8, 8), "float32"){declared}):
        R.func_attr({{"num_input": 1}})
        cls = Module
        with R.dataflow():
            y = R.call_tir(
                cls.add, (x, {", ".join(names)}), out_ty=R.Tensor((8, 8), "float32")
            )
            z = R.call_tir(
                cls.add, (y, {", ".join(reversed(names))}),
                out_ty=R.Tensor((8, 8), "float32"),
            )
            R.output(z)
        return z
"""


_TRANSFORM = "relax.transform.SplitLayoutRewritePreproc()"

CASES["packing_one"] = (
    _TRANSFORM,
    _program("W", '"layout_free_buffers": [1], "tir.noalias": True'),
)
CASES["packing_two"] = (_TRANSFORM, _program("VW", '"layout_free_buffers": [1, 2]'))


def _products(attrs: str, *calls: str) -> str:
    """Products of a parameter `x`, weights `u` and `v`, and results `y0`, `y1` of earlier calls."""
    bound = "".join(
        f"""
            y{n} = R.call_tir(cls.dense, ({call}), out_ty=R.Tensor((8, 8), "float32"))"""
        for n, call in enumerate(calls)
    )
    return f"""
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def dense(
        A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"),
        C: T.Buffer((8, 8), "float32"),
    ):
        for i, j, k in T.grid(8, 8, 8):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @R.function
    def main(
        x: R.Tensor((8, 8), "float32"), u: R.Tensor((8, 8), "float32"),
        v: R.Tensor((8, 8), "float32"),
    ):
        {attrs}
        cls = Module
        with R.dataflow():{bound}
            R.output(y{len(calls) - 1})
        return y{len(calls) - 1}
"""


_ATTACH = "relax.transform.AttachAttrLayoutFreeBuffers()"
_INPUT = 'R.func_attr({"num_input": 1})'

CASES["attach_weight"] = (_ATTACH, _products(_INPUT, "x, u"))
CASES["attach_same"] = (_ATTACH, _products(_INPUT, "x, u", "y0, v"))
CASES["attach_other_side"] = (_ATTACH, _products(_INPUT, "x, u", "v, y0"))
CASES["attach_both"] = (_ATTACH, _products(_INPUT, "u, v"))
CASES["attach_all_are_inputs"] = (_ATTACH, _products("", "x, u"))
