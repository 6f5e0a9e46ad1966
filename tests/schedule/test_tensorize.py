"""tensorize: what it makes of blocks and loops, that it computes the same, and what it refuses."""

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import assert_structural_equal
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import Schedule, TensorIntrin
from mlcweb.tir.tensor_intrin import _intrinsics
from tests.programs import matmul
from tests.schedule import intrinsics
from tests.schedule.intrinsics import by_call, by_loops, by_transposing


@pytest.fixture(autouse=True)
def no_intrinsics(monkeypatch):
    """No test sees the intrinsics of another."""
    for name in list(_intrinsics):
        monkeypatch.delitem(_intrinsics, name)
    yield
    _intrinsics.clear()


def register(name, implementation=by_loops, description=intrinsics.description):
    TensorIntrin.register(name, description, implementation)


def tiled(mod=None, block="C"):
    """A schedule of a matmul with 16x16x16 tiles, and its loops from the outermost on."""
    sch = Schedule(mod or matmul())
    i, j, k = sch.get_loops(block)[-3:]
    i, ii = sch.split(i, [None, 16])
    j, ji = sch.split(j, [None, 16])
    k, ki = sch.split(k, [None, 16])
    sch.reorder(i, j, k, ii, ji, ki)
    return sch, (i, j, k, ii, ji, ki)


def computes_the_product(mod, target):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 4, (128, 128)).astype("float32") for _ in "ab")
    arrays = [mlcweb.nd.array(x) for x in (a, b, np.full_like(a, np.nan))]
    mlcweb.build(mod, target=target)["main"](*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), a @ b)


UPDATE = """
                with T.block("{name}"):
                    vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])
                    T.reads(C[vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16], A[vi_o * 16:vi_o * 16 + 16, vk_o * 16:vk_o * 16 + 16], B[vk_o * 16:vk_o * 16 + 16, vj_o * 16:vj_o * 16 + 16])
                    T.writes(C[vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16])
                    A_1 = T.match_buffer(A[vi_o * 16:vi_o * 16 + 16, vk_o * 16:vk_o * 16 + 16], (16, 16), strides=("sa", 1), offset_factor=1)
                    B_1 = T.match_buffer(B[vk_o * 16:vk_o * 16 + 16, vj_o * 16:vj_o * 16 + 16], (16, 16), strides=("sb", 1), offset_factor=1)
                    C_1 = T.match_buffer(C[vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16], (16, 16), strides=("sc", 1), offset_factor=1)
                    for k, i, j in T.grid(16, 16, 16):
                        with T.block("product"):
                            vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                            C_1[vi, vj] = C_1[vi, vj] + A_1[vi, vk] * B_1[vk, vj]
"""  # noqa: E501

AFTER_LOOP = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
             C: T.Buffer((128, 128), "float32")):
        T.func_attr({"tir.noalias": True})
        for i_0, j_0 in T.grid(8, 8):
            for i_1_init, j_1_init in T.grid(16, 16):
                with T.block("C_init"):
                    vi = T.axis.spatial(128, i_0 * 16 + i_1_init)
                    vj = T.axis.spatial(128, j_0 * 16 + j_1_init)
                    C[vi, vj] = T.float32(0)
            for k_0 in range(8):""" + UPDATE.format(name="C_update_o")


def test_a_loop_becomes_a_block_that_runs_the_implementation():
    register("product_16x16x16")
    sch, (_, _, k, ii, _, _) = tiled()
    sch.decompose_reduction("C", k)
    sch.tensorize(ii, "product_16x16x16")
    assert_structural_equal(sch.mod, from_source(AFTER_LOOP))


def test_a_block_that_was_blockized_before():
    register("product_16x16x16")
    sch, (_, _, k, ii, _, _) = tiled()
    block = sch.blockize(ii)
    sch.decompose_reduction(block, k)
    sch.tensorize(block, "product_16x16x16")
    update = sch.get(block)
    assert update.name_hint == "C_o_update"
    assert [match.buffer.name for match in update.match_buffers] == ["A", "B", "C"]
    assert [sch.get(child).name_hint for child in sch.get_child_blocks(block)] == ["product"]
    assert str(sch.trace).splitlines()[-2].strip() == (
        'sch.tensorize(block_or_loop=b10, tensor_intrin="product_16x16x16", '
        "preserve_unit_iters=True)"
    )


@pytest.mark.parametrize("target", ["interpreter", "numpy"])
@pytest.mark.parametrize("implementation", [by_loops, by_transposing])
def test_loops_compute_the_same(implementation, target):
    register("product", implementation)
    sch, (_, _, k, ii, _, _) = tiled()
    sch.decompose_reduction("C", k)
    sch.tensorize(ii, "product")
    computes_the_product(sch.mod, target)


def test_memory_and_annotations_of_the_implementation_come_along():
    register("product", by_transposing)
    sch, (_, _, k, ii, _, _) = tiled()
    block = sch.blockize(ii)
    sch.annotate(block, "mine", 1)
    sch.decompose_reduction(block, k)
    sch.tensorize(block, "product")
    made = sch.get(block)
    assert made.annotations == {"mine": 1, "unit": "tensor"}
    assert [buffer.name for buffer in made.alloc_buffers] == ["D"]


def test_an_external_call_finds_the_registered_function():
    def product_16(c, a, b, stride_a, stride_b, stride_c):
        for i in range(16):
            for j in range(16):
                row = a[i * stride_a : i * stride_a + 16]
                column = b[j::stride_b][:16]
                c[i * stride_c + j] += row @ column

    register("product", by_call)
    sch, (_, _, k, ii, _, _) = tiled()
    sch.decompose_reduction("C", k)
    sch.tensorize(ii, "product")
    register_func("product_16", product_16)
    try:
        computes_the_product(sch.mod, "interpreter")
    finally:
        remove_global_func("product_16")


TWO_PRODUCTS = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), D: T.Buffer((32, 32), "float32"),
             C: T.Buffer((32, 32), "float32")):
        B = T.alloc_buffer((32, 32))
        for i, j, k in T.grid(32, 32, 32):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = T.float32(0)
                B[vi, vj] = B[vi, vj] + A[vi, vk] * D[vk, vj]
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + B[vi, vk] * D[vk, vj]
"""

SQUARE = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vk, vj]
"""


def test_one_intrinsic_twice_in_a_function():
    register("product")
    sch = Schedule(from_source(TWO_PRODUCTS))
    for block in "BC":
        i, j, k = sch.get_loops(block)
        i, ii = sch.split(i, [None, 16])
        j, ji = sch.split(j, [None, 16])
        k, ki = sch.split(k, [None, 16])
        sch.reorder(i, j, k, ii, ji, ki)
        sch.decompose_reduction(block, k)
        sch.tensorize(ii, "product")
    first, second = (sch.get(sch.get_block(f"{block}_update_o")) for block in "BC")
    assert not {m.buffer for m in first.match_buffers} & {m.buffer for m in second.match_buffers}
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 4, (3, 32, 32)).astype("float32")
    arrays = [mlcweb.nd.array(x) for x in (*a[:2], np.full_like(a[0], np.nan))]
    mlcweb.build(sch.mod, target="interpreter")["main"](*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), a[0] @ a[1] @ a[1])


def test_one_buffer_in_the_place_of_two():
    register("product")
    sch, (_, _, k, ii, _, _) = tiled(from_source(SQUARE))
    sch.decompose_reduction("C", k)
    with pytest.raises(ScheduleError, match=r"the program reads C.*, A.*, and the description"):
        sch.tensorize(ii, "product")


def test_a_tile_of_a_larger_array():
    register("scale", *unary())
    sch = Schedule(from_source(BATCH))
    sch.tensorize(sch.get_loops("B")[3], "scale")
    block = sch.get(sch.get_block("B_o"))
    regions = [repr(match.source) for match in block.match_buffers]
    assert regions == [
        "A[vb_o, vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16]",
        "B[vb_o, vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16]",
    ]


BATCH = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 64, 64), "float32"), B: T.Buffer((4, 64, 64), "float32")):
        for b, i_0, j_0, i_1, j_1 in T.grid(4, 4, 4, 16, 16):
            with T.block("B"):
                vb = T.axis.spatial(4, b)
                vi = T.axis.spatial(64, i_0 * 16 + i_1)
                vj = T.axis.spatial(64, j_0 * 16 + j_1)
                B[vb, vi, vj] = A[vb, vi, vj] * T.float32(2)
"""

UNARY = """
@T.prim_func
def unary(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=1)
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(A[0:16, 0:16])
        T.writes(B[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.block("element"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def unary(old="", new=""):
    """Implementation and description, of which one text is replaced."""
    assert old in UNARY
    return from_source(UNARY), from_source(UNARY.replace(old, new) if old else UNARY)


WIDE = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((T.int64(64), T.int64(64)), "float32"),
             B: T.Buffer((T.int64(64), T.int64(64)), "float32")):
        for i, j in T.grid(T.int64(64), T.int64(64)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def test_indices_of_64_bits():
    register("scale", from_source(UNARY.replace("* T.float32(2)", "+ A[vi // 1, vj]")), unary()[0])
    sch = Schedule(from_source(WIDE))
    i, j = sch.get_loops("B")
    i, ii = sch.split(i, [None, 16])
    j, ji = sch.split(j, [None, 16])
    sch.reorder(i, j, ii, ji)
    sch.tensorize(ii, "scale")
    match = sch.get(sch.get_block("B_o")).match_buffers[0]
    assert {part.dtype for part in (*match.buffer.shape, match.buffer.elem_offset)} == {"int64"}
    assert sch.get(sch.get_loops("element")[0]).loop_var.dtype == "int64"
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    a = np.arange(64 * 64, dtype="float32").reshape(64, 64)
    arrays = mlcweb.nd.array(a), mlcweb.nd.array(np.zeros_like(a))
    mlcweb.build(sch.mod, target="interpreter")["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), 2 * a)


STORE = (
    "B[vb_o, vi_o * 16 + vi_i, vj_o * 16 + vj_i] = "
    "A[vb_o, vi_o * 16 + vi_i, vj_o * 16 + vj_i] * T.float32(2)"
)

MISMATCHES = [
    (
        "T.float32(2)",
        "T.float32(3)",
        "T.float32(2) and T.float32(3) differ",
        (STORE, "B[vi, vj] = A[vi, vj] * T.float32(3)"),
    ),
    (
        "A[vi, vj] * T",
        "A[vi, vj] + T",
        "A[vb_o, vi_o * 16 + vi_i, vj_o * 16 + vj_i] * T.float32(2) and "
        "A[vi, vj] + T.float32(2) differ",
        (STORE, "B[vi, vj] = A[vi, vj] + T.float32(2)"),
    ),
    (
        "T.grid(16, 16)",
        "T.grid(16, 8)",
        'the loop "j_1" has the extent 16, and "j" 8',
        ("for j_1 in range(16):", "for j in range(8):"),
    ),
    (
        "for i, j in",
        "for j, i in",
        'the iterator "vi_i" is bound to i_1, where "vi" of the description asks for j_1',
        ('with T.block("B"):', 'with T.block("element"):'),
    ),
    (
        "T.reads(A[0:16, 0:16])",
        "T.reads(A[0:16, 0:8])",
        "the regions A[vb_o, vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16] and A[0:16, 0:8] "
        "have different extents",
        ('with T.block("B_o"):', 'with T.block("root"):'),
    ),
    (
        "T.writes(B[0:16, 0:16])",
        "T.writes(B[0:16, 0:16], A[0:16, 0:16])",
        "the program writes B[vb_o, vi_o * 16:vi_o * 16 + 16, vj_o * 16:vj_o * 16 + 16], and the "
        "description writes B[0:16, 0:16], A[0:16, 0:16]",
        ('with T.block("B_o"):', 'with T.block("root"):'),
    ),
    (
        '"SS"',
        '"SR"',
        "the iterators are vi_i (spatial), vj_i (spatial), and those of the description "
        "vi (spatial), vj (reduction)",
        ('with T.block("B"):', 'with T.block("element"):'),
    ),
    (
        "A[vi, vj] *",
        "A[vj, vi] *",
        "the regions A[vb_o, vi_o * 16 + vi_i, vj_o * 16 + vj_i] and A[vj, vi] are other elements",
        ('with T.block("B"):', 'with T.block("element"):'),
    ),
    (
        "for i, j in T.grid(16, 16):",
        "for i, j in T.grid(16, 16, annotations={'unit': 1}):",
        'the loop "i_1" and "i" are not of the same kind, or have different annotations',
        ("for i_1, j_1 in T.grid(16, 16):", ""),
    ),
    (
        '"float32", offset_factor=1)',
        '"float32", offset_factor=1, scope="shared")',
        'the buffer "B" has the storage scope "global", and "B" of the description "shared"',
        ('with T.block("B_o"):', 'with T.block("root"):'),
    ),
]


@pytest.mark.parametrize(("old", "new", "difference", "statements"), MISMATCHES)
def test_mismatch_names_both_statements(old, new, difference, statements):
    if "annotations" in new:
        new = "for i in T.serial(16, annotations={'unit': 1}):\n          for j in range(16):"
    description = UNARY.replace(old, new)
    register("scale", from_source(UNARY), from_source(description))
    sch = Schedule(from_source(BATCH))
    with pytest.raises(ScheduleError) as refusal:
        sch.tensorize(sch.get_loops("B")[3], "scale")
    lines = refusal.value.reason.splitlines()
    assert lines[0] == (
        'The block "B_o" does not compute what the tensor intrinsic "scale" describes: '
        + difference
    )
    assert lines[1] == "  in the program:      " + statements[0]
    assert lines[2].startswith("  in the description:  " + statements[1])
    assert refusal.value.primitive == "tensorize"
    assert "a reduction" in refusal.value.advice


def test_a_reduction_that_was_not_decomposed():
    register("product")
    sch, (_, _, _, ii, _, _) = tiled()
    with pytest.raises(ScheduleError, match=r"the program reads A.*and the description reads C"):
        sch.tensorize(ii, "product")


def test_refusal_leaves_the_program_as_it_was():
    register("product")
    sch, (_, _, _, ii, _, _) = tiled()
    before = sch.mod
    with pytest.raises(ScheduleError):
        sch.tensorize(ii, "product")
    assert sch.mod is before
    assert "tensorize" not in str(sch.trace)


def test_unknown_intrinsics():
    sch, (_, _, _, ii, _, _) = tiled()
    with pytest.raises(ValueError, match='"mm" is not registered; registered are: none'):
        sch.tensorize(ii, "mm")
    register("one")
    register("another")
    with pytest.raises(ValueError, match='registered are: "another", "one"'):
        sch.tensorize(ii, "mm")
    assert TensorIntrin.get("mm", allow_missing=True) is None


def test_registering_twice():
    register("product")
    with pytest.raises(
        ValueError, match='"product" has already been registered; pass override=True'
    ):
        register("product", by_call)
    TensorIntrin.register("product", intrinsics.description, by_call, override=True)
    found = TensorIntrin.get("product")
    assert found is not None
    assert found.impl is by_call


def test_an_intrinsic_itself_in_place_of_its_name():
    register("product")
    sch, (_, _, k, ii, _, _) = tiled()
    sch.decompose_reduction("C", k)
    sch.tensorize(ii, TensorIntrin.get("product"))
    assert 'tensor_intrin="product"' in str(sch.trace)
    with pytest.raises(ValueError, match="The TensorIntrin is not registered"):
        sch.tensorize(ii, TensorIntrin(intrinsics.description, by_call))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"float32"', '"float16"', "the implementation has 2 of float16"),
        ("(16, 16), ", "(16, 16, 1), ", "the description has 2 dimension"),
    ],
)
def test_description_and_implementation_have_the_same_buffers(old, new, message):
    other = UNARY.replace(old, new)
    if "16, 1" in new:
        other = other.replace("[vi, vj]", "[vi, vj, 0]").replace("0:16]", "0:16, 0]")
    with pytest.raises(ValueError, match=message):
        TensorIntrin.register("scale", from_source(UNARY), from_source(other))


def test_a_description_without_a_block():
    loops = from_source("""
@T.prim_func
def loops(A: T.Buffer((16,), "float32")):
    for i in range(16):
        A[i] = T.float32(0)
""")
    plain = from_source(UNARY)
    with pytest.raises(ValueError, match="buffer parameter"):
        TensorIntrin.register("scale", plain, loops)


def test_indices_that_the_domain_makes_simpler():
    """The program has `vi % 8` where the block's element is counted from its own start."""
    description = from_source("""
@T.prim_func
def unpack(x: T.handle, y: T.handle):
    X = T.match_buffer(x, (1,), "int32", offset_factor=1)
    Y = T.match_buffer(y, (8,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(X[0:1])
        T.writes(Y[0:8])
        for i in range(8):
            with T.block("unpack"):
                vi = T.axis.spatial(8, i)
                Y[vi] = T.bitwise_and(T.shift_right(X[vi // 8], vi % 8 * 4), 15)
""")
    sch = Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((32,), "int32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi = T.axis.spatial(32, i * 8 + j)
            B[vi] = T.bitwise_and(T.shift_right(A[vi // 8], vi % 8 * 4), 15)
""")
    )
    TensorIntrin.register("unpack", description, description)
    sch.tensorize(sch.get_loops("B")[1], "unpack")
    assert "T.match_buffer(A[v" in sch.mod.script()


def swapped(i, j):
    return j, i


LINE_BY_THREADS = from_source("""
@T.prim_func
def f(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 8), offset_factor=1, scope="shared")
    with T.block("root"):
        T.reads(A[0:8, 0:4])
        T.writes(B[0:4, 0:8])
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(tx, 8)
        for j in range(4):
            B[j, tx] = A[tx, j]
""")


def test_names_in_the_description_and_threads_in_the_implementation():
    """As scripts of the first tensor intrinsics have them."""

    @T.prim_func
    def description(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (8, 4), offset_factor=1)
        B = T.match_buffer(b, (4, 8), offset_factor=1, scope="shared")
        with T.block("root"):
            T.reads(A[0:8, 0:4])
            T.writes(B[0:4, 0:8])
            for i, j in T.grid(8, 4):
                with T.block("turned"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    row, column = swapped(vi, vj)
                    T.reads(A[column, row])
                    T.writes(B[row, column])
                    B[row, column] = A[column, row]

    @T.prim_func
    def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 8), "float32")):
        B = T.alloc_buffer((4, 8), scope="shared")
        for _o in T.thread_binding(1, "blockIdx.x"):
            for i, j in T.grid(8, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vj, vi] = A[vi, vj]
            for i in T.thread_binding(8, "threadIdx.x"):
                for j in range(4):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vj, vi] = B[vj, vi]

    register("turn", LINE_BY_THREADS, description)
    sch = Schedule(main)
    sch.tensorize(sch.get_loops("B")[1], "turn")
    for target in ("interpreter", "wasm"):
        a, c = np.arange(32, dtype="float32").reshape(8, 4), mlcweb.nd.empty((4, 8))
        mlcweb.build(sch.mod, target=target)["main"](mlcweb.nd.array(a), c)
        np.testing.assert_array_equal(c.numpy(), a.T)
