"""Programs to search over: one with many schedules, and some that misbehave."""

from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.tir import Schedule


@I.ir_module
class Double:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(2)


@I.ir_module
class Triple:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(3)


@I.ir_module
class Symbolic:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 16))
        B = T.match_buffer(b, (n, 16))
        for i, j in T.grid(n, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)


@I.ir_module
class BFloat16Product:
    @T.prim_func
    def main(
        A: T.Buffer((16, 16), "bfloat16"),
        B: T.Buffer((16, 16), "bfloat16"),
        C: T.Buffer((16, 16), "bfloat16"),
    ):
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.bfloat16(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@I.ir_module
class Copy:
    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]


@I.ir_module
class Divides:
    """Divides by zero, at which kernels stop."""

    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.truncdiv(A[vi], A[vi] - A[vi])


@I.ir_module
class Hangs:
    """Takes centuries."""

    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i, j, k in T.grid(1000000000, 1000000000, 16):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vk] = B[vk] * 3 + A[vk]


@I.ir_module
class Huge:
    """Wants more memory than WebAssembly has addresses for."""

    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        C = T.alloc_buffer((16, 80000000), "int32")
        for i, j in T.grid(16, 80000000):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi]
        for i, j in T.grid(16, 80000000):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi] = C[vi, vj]


def tile(sch: Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, sch.sample_perfect_tile(i, n=2))
