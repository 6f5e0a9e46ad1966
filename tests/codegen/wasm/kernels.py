"""Kernels written by hand with the builder: what code generation has to reach."""

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import Export, Function, Import, Memory, Module

LANES = 4
"""float32 numbers in a vector."""
FLOAT_BYTES = 4
VECTOR_BYTES = 16


def multiply_add(f: FunctionBuilder, accumulator: int, fused: bool) -> None:
    """Add the product of the two vectors on the stack to a local."""
    if fused:
        f.emit("local.get", accumulator)
        f.emit("f32x4.relaxed_madd")
    else:
        f.emit("f32x4.mul")
        f.emit("local.get", accumulator)
        f.emit("f32x4.add")
    f.emit("local.set", accumulator)


def add_constant(f: FunctionBuilder, local: int, amount: int) -> None:
    f.emit("local.get", local)
    f.emit("i32.const", amount)
    f.emit("i32.add")
    f.emit("local.set", local)


def matmul(
    size: int, rows: int = 4, vectors: int = 2, unroll: int = 1, fused: bool = False
) -> Function:
    """C = A B for square float32 matrices, in tiles of `rows` by `vectors` vectors.

    A tile of C stays in registers while k runs, `unroll` steps in one round of its loop. More than
    one step is slower where an engine moves loads before arithmetic (wasmtime, old V8): then the
    registers do not suffice. Parameters are the byte addresses of A, B and C.
    """
    columns = vectors * LANES
    row_bytes = size * FLOAT_BYTES
    assert size % rows == size % columns == size % unroll == 0
    f = FunctionBuilder("matmul", [("A", "i32"), ("B", "i32"), ("C", "i32")])
    a, b, c = (f.local("i32", name) for name in ("a", "b", "c"))
    a_end, c_end = f.local("i32", "a_end"), f.local("i32", "c_end")
    tile = [[f.local("v128", f"c_{i}_{j}") for j in range(vectors)] for i in range(rows)]
    b_row = [f.local("v128", f"b_{j}") for j in range(vectors)]
    splat = f.local("v128", "a_splat")

    f.emit("local.get", f.parameter("C"))
    f.emit("i32.const", size * row_bytes)
    f.emit("i32.add")
    f.emit("local.set", c_end)
    with f.loop("i") as next_rows:
        f.emit("local.get", f.parameter("C"))
        f.emit("local.set", c)
        with f.loop("j") as next_columns:
            for accumulator in (local for row in tile for local in row):
                f.emit("v128.const", bytes(16))
                f.emit("local.set", accumulator)
            # b runs down the columns of this tile: from where c stands in its row.
            f.emit("local.get", f.parameter("B"))
            f.emit("local.get", c)
            f.emit("local.get", f.parameter("C"))
            f.emit("i32.sub")
            f.emit("i32.add")
            f.emit("local.set", b)
            f.emit("local.get", f.parameter("A"))
            f.emit("local.tee", a)
            f.emit("i32.const", row_bytes)
            f.emit("i32.add")
            f.emit("local.set", a_end)
            with f.loop("k") as next_k:
                for k in range(unroll):
                    for j in range(vectors):
                        f.emit("local.get", b)
                        f.emit("v128.load", k * row_bytes + j * VECTOR_BYTES)
                        f.emit("local.set", b_row[j])
                    for i in range(rows):
                        f.emit("local.get", a)
                        f.emit("v128.load32_splat", i * row_bytes + k * FLOAT_BYTES)
                        f.emit("local.set", splat)
                        for j in range(vectors):
                            f.emit("local.get", splat)
                            f.emit("local.get", b_row[j])
                            multiply_add(f, tile[i][j], fused)
                add_constant(f, b, unroll * row_bytes)
                add_constant(f, a, unroll * FLOAT_BYTES)
                f.emit("local.get", a)
                f.emit("local.get", a_end)
                f.emit("i32.ne")
                f.jump_if(next_k)
            for i in range(rows):
                for j in range(vectors):
                    f.emit("local.get", c)
                    f.emit("local.get", tile[i][j])
                    f.emit("v128.store", i * row_bytes + j * VECTOR_BYTES)
            add_constant(f, c, columns * FLOAT_BYTES)
            f.emit("local.get", c)
            f.emit("local.get", f.parameter("C"))
            f.emit("i32.const", row_bytes)
            f.emit("i32.add")
            f.emit("i32.ne")
            f.jump_if(next_columns)
        add_constant(f, f.parameter("A"), rows * row_bytes)
        add_constant(f, f.parameter("C"), rows * row_bytes)
        f.emit("local.get", f.parameter("C"))
        f.emit("local.get", c_end)
        f.emit("i32.ne")
        f.jump_if(next_rows)
    return f.build()


def multiply_add_peak(accumulators: int = 12, fused: bool = False, unroll: int = 4) -> Function:
    """Nothing but multiply-adds on registers, `n` times `accumulators` times `unroll` of them.

    Returns the sum of the accumulators, so that no compiler may leave them out.
    """
    f = FunctionBuilder("peak", [("n", "i32"), ("x", "f32"), ("y", "f32")], ["f32"])
    x, y = f.local("v128", "x_splat"), f.local("v128", "y_splat")
    totals = [f.local("v128", f"total_{index}") for index in range(accumulators)]
    for name, splat in (("x", x), ("y", y)):
        f.emit("local.get", f.parameter(name))
        f.emit("f32x4.splat")
        f.emit("local.set", splat)
    with f.loop("n") as again:
        for _ in range(unroll):
            for total in totals:
                f.emit("local.get", x)
                f.emit("local.get", y)
                multiply_add(f, total, fused)
        add_constant(f, f.parameter("n"), -1)
        f.emit("local.get", f.parameter("n"))
        f.jump_if(again)
    f.emit("local.get", totals[0])
    for total in totals[1:]:
        f.emit("local.get", total)
        f.emit("f32x4.add")
    f.emit("local.set", x)
    for lane in range(LANES):
        f.emit("local.get", x)
        f.emit("f32x4.extract_lane", lane)
    for _ in range(LANES - 1):
        f.emit("f32.add")
    return f.build()


def kernel_module(function: Function, maximum: int = 65536, shared: bool = False) -> Module:
    """A module with one exported function, on the memory `env.memory` that it imports."""
    return Module(
        (function,),
        imports=(Import("env", "memory", Memory(1, maximum, shared)),),
        exports=(Export(function.name, "function", function.name),),
    )
