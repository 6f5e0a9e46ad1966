"""Which functions call which, and which none calls."""

from mlcweb.relax.transform import DeadCodeElimination
from mlcweb.relax.transform.dead_code import collect_call_map
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.call_tir(cls.double, (x,), R.Tensor((4,), "float32"))
        return R.call_tir(cls.double, (y,), R.Tensor((4,), "float32"))

    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        Module.add(A.data, B.data)

    @T.prim_func(private=True)
    def add(a: T.handle("float32"), b: T.handle("float32")):
        A = T.decl_buffer(4, "float32", data=a)
        B = T.decl_buffer(4, "float32", data=b)
        for i in range(4):
            B[i] = A[i] + A[i]

    @T.prim_func(private=True)
    def unused(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(0)


def test_calls_of_both_levels_are_collected():
    calls = {
        caller.name_hint: [callee.name_hint for callee in callees]
        for caller, callees in collect_call_map(Module).items()
    }
    assert calls == {"main": ["double"], "double": ["add"], "add": [], "unused": []}


def test_what_only_kernels_call_is_no_dead_code():
    kept = DeadCodeElimination()(Module)
    assert {var.name_hint for var in kept.functions} == {"main", "double", "add"}
