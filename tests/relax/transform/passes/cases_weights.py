"""Programs for passes that mark weights, or find nothing to do."""

_PRODUCTS = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def mm(
        a: T.Buffer((4, 4), "float32"), b: T.Buffer((4, 4), "float32"),
        c: T.Buffer((4, 4), "float32"),
    ):
        for i, j, k in T.grid(4, 4, 4):
            with T.sblock("c"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    c[vi, vj] = T.float32(0.0)
                c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]

    @R.function
    def main(
        x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32"),
        v: R.Tensor((4, 4), "float32"),
    ):
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.mm, (x, w), out_ty=R.Tensor((4, 4), "float32"))
            q = R.call_tir(cls.mm, (w, p), out_ty=R.Tensor((4, 4), "float32"))
            r = R.call_tir(cls.mm, (q, p), out_ty=R.Tensor((4, 4), "float32"))
            R.output(r)
        return r

    @R.function
    def plain(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.mm, (x, w), out_ty=R.Tensor((4, 4), "float32"))
            R.output(p)
        return p
"""

CASES: dict[str, tuple[str, str]] = {
    "weights_layout_free": ("relax.transform.AttachAttrLayoutFreeBuffers()", _PRODUCTS),
    **{
        f"nothing_{name.partition('(')[0]}": (f"relax.transform.{name}", _PRODUCTS)
        for name in (
            "RewriteCUDAGraph()", "AllocateWorkspace()", "RunCodegen()",
            "LowerGPUIPCAllocStorage()", "IPCAllReduceRewrite(0)",
        )
    },
}  # fmt: skip
