"""Tensor intrinsics that the tests register: a 16x16x16 product, in three implementations."""

from mlcweb.script import from_source

DESCRIPTION = """
@T.prim_func
def description(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=1)
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=1)
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

HEAD = """
@T.prim_func
def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=1, strides=[sb, 1])
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1, strides=[sc, 1])
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
"""

LOOPS = (
    HEAD
    + """
        for k, i, j in T.grid(16, 16, 16):
            with T.block("product"):
                vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
)

TRANSPOSING = (
    HEAD
    + """
        T.block_attr({"unit": "tensor"})
        D = T.alloc_buffer((16, 16), "float32")
        for j, k in T.grid(16, 16):
            with T.block("transpose"):
                vj, vk = T.axis.remap("SS", [j, k])
                D[vj, vk] = B[vk, vj]
        for i, j, k in T.grid(16, 16, 16):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * D[vj, vk]
"""
)

EXTERNAL = (
    HEAD
    + """
        T.evaluate(T.call_extern("product_16", C.access_ptr("w"), A.access_ptr("r"),
                                 B.access_ptr("r"), sa, sb, sc, dtype="int32"))
"""
)

description = from_source(DESCRIPTION)
by_loops = from_source(LOOPS)
by_transposing = from_source(TRANSPOSING)
by_call = from_source(EXTERNAL)
