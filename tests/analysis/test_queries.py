"""The questions of `tvm.tir.analysis`, and the functors of `tvm.tir.stmt_functor`."""

from __future__ import annotations

import pytest

from mlcweb import IRModule, TVMError, analysis, tir
from mlcweb.ir import structural_equal
from mlcweb.script import tir as T
from mlcweb.tir import stmt_functor
from mlcweb.tir.arithmetic import const
from tests.lower.test_tvm_names import computed_at, loops, matmul

X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")


def block_of(function: tir.PrimFunc, name: str) -> tir.Block:
    found: list[tir.Block] = []
    stmt_functor.post_order_visit(
        function.body, lambda n: found.append(n) if isinstance(n, tir.Block) else None
    )
    return next(block for block in found if block.name_hint == name)


def test_expressions() -> None:
    assert analysis.expr_deep_equal(X + 1, X + 1)
    assert not analysis.expr_deep_equal(X + 1, Y + 1)
    assert analysis.undefined_vars(tir.Evaluate(X + Y), [X]) == [Y]
    assert analysis.undefined_vars(loops) == []


def test_verification() -> None:
    assert analysis.verify_well_formed(matmul)
    assert analysis.verify_well_formed(IRModule({"main": matmul}))
    loose = tir.PrimFunc((), tir.Evaluate(X))
    assert not analysis.verify_well_formed(loose, assert_mode=False)
    with pytest.raises(TVMError, match='"x" has no value'):
        analysis.verify_well_formed(loose)
    loop = tir.For(X, const(0), const(4), tir.ForKind.SERIAL, tir.Evaluate(X))
    assert analysis.verify_ssa(tir.PrimFunc((), loop))
    assert not analysis.verify_ssa(tir.PrimFunc((), tir.SeqStmt([loop, loop])))


def test_regions_of_a_block() -> None:
    buffers = {buffer.data: buffer for buffer in matmul.buffer_map.values()}
    reads, writes = analysis.get_block_read_write_region(block_of(matmul, "C"), buffers)
    assert [region.buffer.name for region in reads] == ["A", "B"]
    assert [region.buffer.name for region in writes] == ["C"]
    assert len(analysis.get_block_access_region(block_of(matmul, "C"), buffers)) == 3


def test_common_ancestors() -> None:
    found = {b.name: s for b, s in analysis.detect_buffer_access_lca(computed_at).items()}
    loop = found["B"]
    assert isinstance(loop, tir.For)
    assert loop.loop_var.name == "i"
    assert found["A"] is block_of(computed_at, "B")


def test_values_end_with_the_statement_that_gives_them() -> None:
    loop = tir.For(X, const(0), const(4), tir.ForKind.SERIAL, tir.Evaluate(X))
    for definition in (loop, tir.LetStmt(X, const(4), tir.Evaluate(X))):
        analysis.verify_well_formed(tir.PrimFunc((), definition))
        late = tir.PrimFunc((), tir.SeqStmt([definition, tir.Evaluate(X)]))
        with pytest.raises(TVMError, match='"x" is used outside of the statement'):
            analysis.verify_well_formed(late)


def test_memory_of_all_blocks_of_threads_is_accessed_by_their_loop() -> None:
    @T.prim_func
    def copy(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")) -> None:
        for i in T.thread_binding(4, "blockIdx.x"):
            for j in T.thread_binding(8, "threadIdx.x"):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    found = {b.name: s for b, s in analysis.detect_buffer_access_lca(copy).items()}
    root = copy.root_block
    assert root is not None and found == {"A": root.body, "B": root.body}


def test_a_function_may_store_in_memory_of_its_own() -> None:
    @T.prim_func
    def total(A: T.Buffer((4,), "float32")) -> T.float32:
        sum_of = T.decl_buffer((), "float32")
        sum_of[()] = T.float32(0)
        for i in range(4):
            sum_of[()] = sum_of[()] + A[i]
        return sum_of[()]

    assert analysis.is_pure_function(total)


def test_effects_and_work() -> None:
    assert not analysis.is_pure_function(matmul)
    with pytest.raises(AssertionError, match='a store to "C"'):
        analysis.assert_pure_function(matmul)
    assert analysis.estimate_tir_flops(matmul) == 2 * 4**3
    anchor = analysis.find_anchor_block(IRModule({"main": matmul}))
    assert anchor is not None
    assert anchor.name_hint == "C"
    assert analysis.find_anchor_block(IRModule({"main": computed_at})) is None


def test_memory() -> None:
    from mlcweb.lower import lower

    lowered = lower(computed_at)
    assert analysis.calculate_allocated_bytes(lowered) == {"main": {"global": 32}}
    assert analysis.calculate_workspace_bytes(lowered, 128) == 128
    assert analysis.verify_memory(matmul)


def test_accesses_outside_of_a_buffer() -> None:
    @T.prim_func
    def beyond(A: T.Buffer((4,), "float32")) -> None:
        for i in range(5):
            A[i] = T.float32(0)

    @T.prim_func
    def guarded(A: T.Buffer((4,), "float32"), n: T.int32) -> None:
        A[n] = T.float32(0)  # which may be right
        for i in range(5):
            A[3 - i % 4] = T.if_then_else(i < 4, A[i], T.float32(0))
            if i > 3:
                A[0] = T.float32(0)
            else:
                A[i] = T.float32(0)

    checker = analysis.OOBChecker()
    for func in (matmul, guarded):
        assert checker(IRModule({"main": func}))["main"] is func
    with pytest.raises(TVMError, match='"A" reaches from 0 to 4'):
        checker(IRModule({"main": beyond}))


def test_functors() -> None:
    outermost: list[str] = []

    def seen(node: object) -> bool:
        outermost.append(type(node).__name__)
        return len(outermost) < 2

    stmt_functor.pre_order_visit(matmul.body, seen)
    assert outermost[0] == "BlockRealize"
    assert str(stmt_functor.substitute(X + 1, {X: Y * 2})) == "y * 2 + 1"
    emptied = stmt_functor.ir_transform(
        loops.body, lambda node: tir.Evaluate(const(0)), None, ["tir.For"]
    )
    assert "T.parallel" not in loops.with_body(emptied).script()


def test_renewed_definitions() -> None:
    renewed = stmt_functor.renew_defs(matmul)
    assert structural_equal(renewed, matmul)
    assert not set(renewed.params) & set(matmul.params)
    assert not set(renewed.buffer_map.values()) & set(matmul.buffer_map.values())


def test_a_variable_that_is_defined_twice_is_not_well_formed() -> None:
    i = tir.Var("i", "int32")
    loops_of = [
        tir.For(i, const(0), const(extent), tir.ForKind.SERIAL, tir.Evaluate(i))
        for extent in (8, 4)
    ]
    twice = tir.PrimFunc((), tir.SeqStmt(loops_of))
    assert not analysis.verify_well_formed(twice, assert_mode=False)
    with pytest.raises(TVMError, match="main defines a variable more than once"):
        analysis.verify_well_formed(twice)
