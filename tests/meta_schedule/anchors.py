"""Programs that have the same matrix product, and something of their own after it."""

TAILS = {
    "plain": "",
    "relu": "D[vi, vj] = T.max(C[vi, vj], T.float32(0))",
    "add": "D[vi, vj] = C[vi, vj] + T.float32(1)",
    "add_relu": "D[vi, vj] = T.max(E[vi, vj], T.float32(0))",
}


def source(tail: str, block: str = "C", first: str = "A", size: int = 16) -> str:
    """The source of a program.

    Args:
        block: the name of the product's block.
        first: the name of the first factor.
    """
    shape = f"({size}, {size})"
    result = "D" if TAILS[tail] else "C"
    params = ", ".join(f'{name}: T.Buffer({shape}, "float32")' for name in (first, "B", result))
    text = f"""
@T.prim_func
def main({params}):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True}})
"""
    text += f"    C = T.alloc_buffer({shape})\n" if TAILS[tail] else ""
    text += f"    E = T.alloc_buffer({shape})\n" if tail == "add_relu" else ""
    text += f"""    for i, j, k in T.grid({size}, {size}, {size}):
        with T.block("{block}"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + {first}[vi, vk] * B[vk, vj]
"""
    if tail == "add_relu":
        text += _elementwise("E", size, "E[vi, vj] = C[vi, vj] + T.float32(1)")
    return text + (_elementwise("D", size, TAILS[tail]) if TAILS[tail] else "")


def _elementwise(block: str, size: int, statement: str) -> str:
    return f"""    for i, j in T.grid({size}, {size}):
        with T.block("{block}"):
            vi, vj = T.axis.remap("SS", [i, j])
            {statement}
"""


PROGRAMS = {
    **{tail: source(tail) for tail in TAILS},
    "other_names": source("plain", block="Z", first="X"),
    "larger": source("plain", size=32),
}
