"""Small programs that the schedule tests share."""

from mlcweb.script import from_source

MATMUL = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
             C: T.Buffer((128, 128), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

THREE_BLOCKS = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32"),
         E: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + T.float32(1)
    for i, k in T.grid(16, 16):
        with T.block("E"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                E[vi] = T.float32(0)
            E[vi] = E[vi] + B[vi, vk]
"""

MATMUL_RELU = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 30), "float32"), B: T.Buffer((30, 30), "float32"),
             C: T.Buffer((30, 30), "float32")):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((30, 30), dtype="float32")
        for i, j, k in T.grid(30, 30, 30):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(30, 30):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def matmul():
    """C = A @ B of 128x128 float32, the course's program."""
    return from_source(MATMUL)


def matmul_relu():
    """C = max(A @ B, 0) of 30x30 float32, through an intermediate Y."""
    return from_source(MATMUL_RELU)
