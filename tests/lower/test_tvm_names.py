"""Passes under TVM's names. The texts expected are what TVM 0.27 prints, in our spelling."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, tir
from mlcweb.lower import transform
from mlcweb.script import tir as T


@T.prim_func
def computed_at(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
    B = T.alloc_buffer((8, 8))
    for i in range(8):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func
def matmul(
    A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")
) -> None:
    for i, j, k in T.grid(4, 4, 4):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def loops(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32) -> None:
    for i in T.parallel(4):
        for j in T.vectorized(4):
            B[i * 4 + j] = A[i * 4 + j] + T.float32(1)
    for u in T.unroll(2):
        B[u] = A[u + 1]
    for k in range(2, 5):
        if n < 3:
            A[k] = T.float32(1)


def body(module: IRModule) -> str:
    """The text of a function without its head."""
    lines = module["main"].script().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line.removeprefix("    ") for line in lines[start + 1 :])


def after(function: tir.PrimFunc, *passes: tvm.transform.Pass) -> str:
    return body(tvm.transform.Sequential(passes)(IRModule({"main": function})))


def test_allocations_move_into_a_block_of_their_own() -> None:
    text = after(computed_at, transform.PlanAndUpdateBufferAllocationLocation())
    assert (
        """for i in range(8):
    with T.block(""):
        T.reads(A[i, 0:8])
        T.writes(C[i, 0:8])
        B = T.alloc_buffer((8, 8))
        for j in range(8):"""
        in text
    )


def test_regions_do_not_name_memory_that_the_block_allocates() -> None:
    @T.prim_func
    def reversed_by_index(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
        j = T.alloc_buffer((1,), "int32")
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                T.reads(A[j[0]])
                T.writes(j[0], C[v])
                j[0] = 7 - v
                C[v] = A[j[0]]

    text = after(reversed_by_index, transform.PlanAndUpdateBufferAllocationLocation())
    assert "T.reads(A[0:8])" in text
    assert "A[j[0]])" not in text


@T.prim_func
def differences(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")) -> None:
    B = T.alloc_buffer((4, 8))
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.opaque(8, j)
            C[vi, vj] = B[vi, vj] - T.if_then_else(vj > 0, B[vi, vj - 1], T.float32(0))


@T.prim_func
def through_views(C: T.Buffer((4, 8), "float32")) -> None:
    B = T.alloc_buffer((4, 8))
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            row = T.match_buffer(B[vi, 0:8], (8,), offset_factor=1)
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial(8, j)
                    row[vj] = T.Cast("float32", vi * 8 + vj)
            for j in range(8):
                with T.block("C"):
                    vj = T.axis.spatial(8, j)
                    C[vi, vj] = B[vi, vj]


@T.prim_func
def by_address(C: T.Buffer((4, 8), "float32")) -> None:
    B = T.alloc_buffer((4, 8))
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            with T.block("fill"):
                T.reads()
                T.writes(B[vi, 0:8])
                T.evaluate(T.call_extern("int32", "fill", B.data, vi))
            for j in range(8):
                with T.block("C"):
                    vj = T.axis.spatial(8, j)
                    C[vi, vj] = B[vi, vj]


@pytest.mark.parametrize(
    ("function", "before"),
    [(differences, "for j in"), (through_views, "row ="), (by_address, 'with T.block("fill")')],
)
def test_an_allocation_is_around_all_that_uses_it(function: tir.PrimFunc, before: str) -> None:
    planned = transform.PlanAndUpdateBufferAllocationLocation()(IRModule({"main": function}))
    tvm.tir.analysis.verify_well_formed(planned)
    lines = [line.strip() for line in body(planned).splitlines()]
    [at] = [number for number, line in enumerate(lines) if line.startswith("B = T.alloc_buffer")]
    assert lines[at + 1].startswith(before)
    assert not any(" B[" in line or "(B[" in line for line in lines[:at])
    if function is not by_address:
        results = []
        for program in (function, planned["main"]):
            squares = np.arange(32, dtype="float32").reshape(4, 8) ** 2
            arrays = [squares, np.zeros_like(squares)][-len(function.params) :]
            args = [tvm.nd.array(array) for array in arrays]
            tvm.build(program, "interpreter")(*args)
            results.append(args[-1].numpy())
        np.testing.assert_array_equal(*results)
        assert results[0].any()


def test_sums_are_not_allocated_inside_of_what_they_run_over() -> None:
    @T.prim_func
    def row_sums(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4,), "float32")) -> None:
        B = T.alloc_buffer((4,))
        for i in range(4):
            for k in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    planned = transform.PlanAndUpdateBufferAllocationLocation()(IRModule({"main": row_sums}))
    numbers = np.arange(16, dtype="float32").reshape(4, 4)
    a, c = tvm.nd.array(numbers), tvm.nd.empty((4,))
    tvm.build(planned["main"], target="interpreter")(a, c)
    assert c.numpy().tolist() == numbers.sum(1).tolist()


def test_iterators_are_known_in_the_body_of_their_block_only() -> None:
    @T.prim_func(check_well_formed=False)
    def func(A: T.Buffer((8,), "int32")) -> None:
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.where(vi < 6)
                A[vi] = 1

    with pytest.raises(TVMError, match='"vi" is known in the body of the block "B" only'):
        after(func, transform.ConvertBlocksToOpaque())


def test_blocks_step_by_step() -> None:
    assert "if vk == 0:" in after(matmul, transform.LowerInitBlock())
    opaque = after(matmul, transform.LowerInitBlock(), transform.ConvertBlocksToOpaque())
    assert "T.axis" not in opaque
    assert "C[i, j] = C[i, j] + A[i, k] * B[k, j]" in opaque
    assert 'with T.block("C"):' in opaque
    flat = after(
        matmul,
        transform.LowerInitBlock(),
        transform.ConvertBlocksToOpaque(),
        transform.LowerOpaqueBlock(),
        transform.FlattenBuffer(),
    )
    assert "T.block" not in flat
    assert "C_1[i * 4 + j] = C_1[i * 4 + j] + A_1[i * 4 + k] * B_1[k * 4 + j]" in flat


def test_a_block_with_an_init_says_by_its_axes_when_that_runs() -> None:
    with pytest.raises(TVMError, match='Block "C" has an init; lower it first'):
        after(matmul, transform.ConvertBlocksToOpaque())


def test_a_binding_that_the_body_overwrites_is_read_once() -> None:
    @T.prim_func
    def walk(A: T.Buffer((1,), "int32"), C: T.Buffer((8,), "int32")) -> None:
        for i in range(4):
            with T.block("C"):
                v = T.axis.opaque(8, A[0])
                w = T.axis.opaque(4, i)
                A[0] = (v * 3 + 1) % 8
                C[v] = w + 1

    opaque = transform.ConvertBlocksToOpaque()(IRModule({"main": walk}))
    assert "T.axis" not in opaque.script()
    a, c = tvm.nd.array(np.array([2], "int32")), tvm.nd.array(np.zeros(8, "int32"))
    tvm.build(opaque, "interpreter")["main"](a, c)
    assert a.numpy().tolist() == [2]
    assert c.numpy().tolist() == [0, 0, 1, 4, 0, 0, 3, 2]


def test_views_give_way_to_what_they_view() -> None:
    @T.prim_func
    def matched(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
        for i, j in T.grid(8, 8):
            with T.block("C"):
                T.reads(A[i, j])
                T.writes(C[i, j])
                s = T.match_buffer(A[i, j], (), elem_offset=T.int32())
                C[i, j] = s[()] + T.float32(1)

    text = after(matched, transform.LowerMatchBuffer())
    assert "match_buffer" not in text
    assert "C[i, j] = A[i, j] + T.float32(1)" in text


def test_loops() -> None:
    vectors = after(loops, transform.VectorizeLoop())
    assert "B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4] + T.Broadcast(T.float32(1), 4)" in vectors
    written_out = after(loops, transform.UnrollLoop(), transform.StmtSimplify())
    assert "B[0] = A[1]\nB[1] = A[2]" in written_out
    assert "T.parallel" not in after(loops, transform.ConvertForLoopsToSerial())
    assert "A[k + 2] = T.float32(1)" in after(loops, transform.CanonicalizeLoop())
    assert "if n < 3:\n    for k in range(2, 5):" in after(loops, transform.HoistIfThenElse())


@T.prim_func
def tiles(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")) -> None:
    B = T.alloc_buffer((20,), "int32")
    D = T.alloc_buffer((20,), "int32")
    for i in range(5):
        for j in range(4):
            with T.block("B"):
                vi = T.axis.spatial(20, i * 4 + j)
                B[vi] = A[vi] * 2
        for j in range(4):
            with T.block("D"):
                vi = T.axis.spatial(20, i * 4 + j)
                whole = T.match_buffer(D[0:20], (20,), "int32")
                whole[vi] = B[vi] + 1
        for j in range(4):
            with T.block("C"):
                vi = T.axis.spatial(20, i * 4 + j)
                C[vi] = B[vi] + D[vi]


def test_buffers_are_compacted_in_blocks_as_in_tvm_s_order() -> None:
    """A buffer of which a block has a view stays as it is."""
    before = IRModule({"main": tiles})
    with pytest.raises(TVMError, match="run ConvertBlocksToOpaque"):
        transform.CompactBufferAllocation()(before)
    module = before
    for name in (
        "PlanAndUpdateBufferAllocationLocation",
        "ConvertBlocksToOpaque",
        "CompactBufferAllocation",
    ):
        module = getattr(transform, name)()(module)
    text = module.script()
    assert 'B = T.alloc_buffer((4,), "int32")' in text
    assert "T.writes(B[i * 4 + j - i * 4])" in text
    assert 'D = T.alloc_buffer((20,), "int32")' in text
    a, c = np.arange(20, dtype="int32"), tvm.nd.array(np.zeros(20, "int32"))
    for name in ("LowerMatchBuffer", "LowerOpaqueBlock"):
        module = getattr(transform, name)()(module)
    tvm.build(module, target="interpreter")["main"](tvm.nd.array(a), c)
    np.testing.assert_array_equal(c.numpy(), a * 4 + 1)


def test_passes_of_functions() -> None:
    @transform.prim_func_pass(opt_level=1)
    def marked(func: tir.PrimFunc, mod: IRModule, ctx: object) -> tir.PrimFunc:
        return func.with_attr("marked", len(mod.functions))

    @transform.prim_func_pass(opt_level=0, name="numbered")
    class Numbered:
        def __init__(self, number: int) -> None:
            self.number = number

        def transform_function(
            self, func: tir.PrimFunc, mod: IRModule, ctx: object
        ) -> tir.PrimFunc:
            return func.with_attr("number", self.number)

    module = IRModule({"main": matmul})
    assert marked(module)["main"].attrs["marked"] == 1
    assert (marked.info.name, marked.info.opt_level) == ("marked", 1)
    assert Numbered(5)(module)["main"].attrs["number"] == 5
    assert transform.Filter(lambda func: False)(module).functions == {}
    assert transform.Apply(lambda func: func.with_attr("a", 7))(module)["main"].attrs["a"] == 7


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
def test_a_pass_of_a_program_joins_the_lowering(phase: int) -> None:
    seen = []

    @transform.prim_func_pass(opt_level=0)
    def doubled(func: tir.PrimFunc, mod: IRModule, ctx: object) -> tir.PrimFunc:
        seen.append("T.block" in func.script())
        stores = []
        tir.stmt_functor.post_order_visit(
            func.body, lambda n: stores.append(n) if isinstance(n, tir.BufferStore) else None
        )
        assert len(stores) == 1

        def twice(node: tir.Stmt) -> tir.Stmt:
            assert isinstance(node, tir.BufferStore)
            return tir.BufferStore(node.buffer, node.value * 2.0, node.indices)

        new = tir.stmt_functor.ir_transform(func.body, None, twice, ["tir.BufferStore"])
        return func.with_body(new)

    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(phase, doubled)]}):
        kernel = tvm.build(copy)
    a, b = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.empty((4,))
    kernel(a, b)
    assert b.numpy().tolist() == [0, 2, 4, 6]
    assert seen == [phase == 0]


def test_dissolved_blocks_launch_threads_and_leave_pragmas() -> None:
    @T.prim_func
    def blocks(A: T.Buffer((8,), "float32")) -> None:
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for v in T.thread_binding(2, thread="vthread"):
                for one, i in T.grid(1, 2):
                    with T.block("A"):
                        T.block_attr({"pragma_kept": 3, "dropped": 4})
                        A[bx * 4 + v * 2 + i + one] = T.float32(1)
        for i in T.serial(2, 4, annotations={"pragma_auto_unroll_max_step": 16}):
            with T.block("more"):
                A[i] = A[i] + T.float32(1)

    mod = IRModule({"main": blocks})
    lowered = transform.LowerOpaqueBlock()(mod)
    assert (
        body(lowered)
        == """with T.launch_thread("blockIdx.x", 2) as bx:
    with T.launch_thread("vthread", 2) as v:
        for i in range(2):
            with T.attr(0, "pragma_kept", 3):
                A[T.Add(bx * 4 + v * 2 + i, 0)] = T.float32(1)
i = T.int32()
with T.attr(i, "pragma_auto_unroll_max_step", 16):
    for i in range(2, 4):
        A[i] = A[i] + T.float32(1)"""
    )
    for function in (blocks, lowered["main"]):
        a = tvm.nd.array(np.zeros(8, "float32"))
        tvm.build(function, target="interpreter")(a)
        assert a.numpy().tolist() == [1, 1, 2, 2, 1, 1, 1, 1]


def test_indices_of_launched_threads_begin_at_zero() -> None:
    @T.prim_func
    def shifted(A: T.Buffer((8,), "float32")) -> None:
        for tx in T.thread_binding(2, 6, thread="threadIdx.x"):
            A[tx] = T.float32(1)

    lowered = transform.LowerOpaqueBlock()(IRModule({"main": shifted}))
    assert (
        body(lowered)
        == """with T.launch_thread("threadIdx.x", 4) as tx:
    A[tx + 2] = T.float32(1)"""
    )
    a = tvm.nd.array(np.zeros(8, "float32"))
    tvm.build(lowered["main"], target="interpreter")(a)
    assert a.numpy().tolist() == [0, 0, 1, 1, 1, 1, 0, 0]


def test_barriers_are_put_between_threads_that_are_launched() -> None:
    @T.prim_func
    def reversed_in_place(A: T.Buffer((64,), "float32")) -> None:
        tx = T.launch_thread("threadIdx.x", 64)
        B = T.decl_buffer((64,), "float32", scope="shared")
        B[tx] = A[tx]
        A[tx] = B[63 - tx]

    text = after(reversed_in_place, transform.ThreadSync("shared"))
    assert 'with T.launch_thread("threadIdx.x", 64) as tx:' in text
    barrier = text.index('T.tvm_storage_sync("shared")')
    assert text.index("B[tx] = A[tx]") < barrier < text.index("A[tx] = B[63 - tx]")


def test_views_have_the_strides_of_what_they_view() -> None:
    @T.prim_func
    def by_parameter(A: T.Buffer((8, 8), "float32"), m: T.int32) -> None:
        for i, j in T.grid(8, 2):
            with T.block(""):
                B = T.match_buffer(A[i, j * 4 : j * 4 + 4], (4,), strides=[m], offset_factor=1)
                for k in range(4):
                    B[k] = T.float32(1)

    for lowered in (transform.LowerMatchBuffer(), transform.LowerOpaqueBlock()):
        with pytest.raises(TVMError, match=r'"B" of "A" has strides m, but its region has 1'):
            after(by_parameter, lowered)


def test_a_kernel_has_one_loop_for_each_axis() -> None:
    @T.prim_func
    def two_loops(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
        for i in T.thread_binding(8, "blockIdx.x"):
            for j in T.thread_binding(4, "threadIdx.x", annotations={"kept": 1}):
                for k in range(2):
                    A[i, j * 2 + k] = A[i, j * 2 + k] * T.float32(2)
            for j in T.thread_binding(T.int64(4), "threadIdx.x"):
                C[i, j] = A[i, j] + T.float32(1)

    assert (
        after(two_loops, transform.UnifyThreadBinding())
        == """for blockIdx_x in T.thread_binding(8, thread="blockIdx.x"):
    for threadIdx_x in T.thread_binding(4, thread="threadIdx.x"):
        for var in T.serial(1, annotations={"kept": 1}):
            for k in range(2):
                A[blockIdx_x, threadIdx_x * 2 + k] = A[blockIdx_x, threadIdx_x * 2 + k] * \
T.float32(2)
        C[blockIdx_x, T.Cast("int64", threadIdx_x)] = A[blockIdx_x, T.Cast("int64", threadIdx_x)] \
+ T.float32(1)"""
    )

    @T.prim_func
    def launched(A: T.Buffer((8, 4), "float32")) -> None:
        for i in range(2):
            bx = T.launch_thread("blockIdx.x", 4)
            tx = T.launch_thread("threadIdx.x", 4)
            A[i * 4 + bx, tx] = T.float32(1)

    text = after(launched, transform.UnifyThreadBinding())
    assert 'for blockIdx_x in T.thread_binding(4, thread="blockIdx.x"):' in text
    assert "A[i * 4 + blockIdx_x, threadIdx_x] = T.float32(1)" in text


def test_axes_that_are_not_one_are_refused() -> None:
    @T.prim_func
    def unequal(A: T.Buffer((8,), "float32")) -> None:
        for i in T.thread_binding(8, "threadIdx.x"):
            A[i] = T.float32(1)
        for b in T.thread_binding(1, "blockIdx.x"):
            for i in T.thread_binding(8, "threadIdx.x"):
                A[i + b] = T.float32(1)
            for i in T.thread_binding(4, "threadIdx.x"):
                A[i] = T.float32(2)

    @T.prim_func
    def pairs(A: T.Buffer((4, 4), "float32")) -> None:
        for i in T.thread_binding(4, "threadIdx.x"):
            for j in T.thread_binding(4, "threadIdx.x"):
                A[i, j] = T.float32(1)

    for func, reason in ((unequal, "has extent 8 .* and 4"), (pairs, "both over")):
        with pytest.raises(ValueError, match=reason):
            after(func, transform.UnifyThreadBinding())


@pytest.mark.parametrize(
    "name", ["RemoveNoOp", "LowerInitBlock", "StorageRewrite", "InferFragment", "CanonicalizeLoop"]
)
def test_a_pass_without_options_takes_none(name: str) -> None:
    assert name in dir(transform)
    with pytest.raises(TypeError, match=rf"{name}\(\) takes 0 positional arguments"):
        getattr(transform, name)(3)


def test_a_variant_of_hoisting_without_the_options() -> None:
    @T.prim_func
    def launched(A: T.Buffer((64,), "float32"), n: T.int32) -> None:
        b = T.launch_thread("blockIdx.x", 8)
        for i in range(8):
            if n < 3:
                A[b * 8 + i] = T.float32(1)

    outside = {"tir.HoistIfThenElse": {"support_block_scope_hoisting": True}}
    with tvm.transform.PassContext(config=outside):
        basic = after(launched, transform.HoistIfThenElse(variant="basic"))
        by_options = after(launched, transform.HoistIfThenElse())
    assert basic.index("T.launch_thread") < basic.index("if n < 3")
    assert by_options.index("if n < 3") < by_options.index("T.launch_thread")
    with pytest.raises(ValueError, match=r"the variants None and .basic., not .all."):
        transform.HoistIfThenElse("all")
    same = after(launched, transform.InjectPTXLDG32(enable_inject_ptx_intrin=False))
    assert same == after(launched)
