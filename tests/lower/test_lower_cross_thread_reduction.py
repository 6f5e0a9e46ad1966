"""LowerCrossThreadReduction: the programs expected are what TVM 0.27 makes, and what is computed
stays."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, tir
from mlcweb.lower import transform
from mlcweb.lower.lower_cross_thread_reduction import ReductionError
from mlcweb.script import from_source

HEAD = '@T.prim_func\ndef main(A: T.Buffer((4, 30), "float32"), B: T.Buffer((4,), "float32")):\n'

PADDED_ROWS = """
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for ko in range(4):
            for ki in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("sum"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(30, ko * 8 + ki)
                    T.where(ko * 8 + ki < 30)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
"""
PADDED_ROWS_LOWERED = """
    cross_thread_B = T.alloc_buffer((1,), strides=(1,), scope="local")
    in_thread_B = T.alloc_buffer((1,), strides=(1,), scope="local")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for ki in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("sum_in_thread_init"):
                T.reads()
                T.writes(in_thread_B[0])
                in_thread_B[0] = T.float32(0)
            for ko in range(4):
                with T.block("sum_in_thread"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(30, ko * 8 + ki)
                    T.where(ko * 8 + ki < 30)
                    T.reads(A[vi, vk])
                    T.writes(in_thread_B[0])
                    in_thread_B[0] = in_thread_B[0] + A[vi, vk]
            with T.block("sum_cross_thread"):
                T.reads(in_thread_B[0])
                T.writes(cross_thread_B[0])
                T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0)
                T.tvm_thread_allreduce(
                    T.uint32(1), in_thread_B[0], T.bool(True), cross_thread_B[0], ki
                )
            with T.block("sum_write_back"):
                vi = T.axis.spatial(4, i)
                T.where(ki == 0)
                T.reads(cross_thread_B[0])
                T.writes(B[vi])
                B[vi] = cross_thread_B[0]
"""
OWN_RESULTS = """
    M = T.alloc_buffer((4,), scope="local")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for ko in T.thread_binding(3, thread="threadIdx.y"):
            for ki in T.thread_binding(10, thread="threadIdx.x"):
                with T.block("max"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(30, ko * 10 + ki)
                    with T.init():
                        M[vi] = T.min_value("float32")
                    M[vi] = T.max(M[vi], A[vi, vk])
        with T.block("add"):
            vi = T.axis.spatial(4, i)
            B[vi] = M[vi] + T.float32(1)
"""
OWN_RESULTS_LOWERED = """
    M = T.alloc_buffer((4,), scope="local")
    cross_thread_M = T.alloc_buffer((1,), strides=(1,), scope="local")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for ko in T.thread_binding(3, thread="threadIdx.y"):
            for ki in T.thread_binding(10, thread="threadIdx.x"):
                with T.block("max_cross_thread"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(30, ko * 10 + ki)
                    T.reads(A[vi, vk])
                    T.writes(cross_thread_M[0])
                    T.attr(
                        T.comm_reducer(lambda x, y: T.max(x, y), [T.min_value("float32")]),
                        "reduce_scope",
                        0,
                    )
                    T.tvm_thread_allreduce(
                        T.uint32(1), A[vi, vk], T.bool(True), cross_thread_M[0], ko, ki
                    )
                with T.block("max_write_back"):
                    vi = T.axis.spatial(4, i)
                    T.reads(cross_thread_M[0])
                    T.writes(M[vi])
                    M[vi] = cross_thread_M[0]
        for ty in T.thread_binding(3, thread="threadIdx.y"):
            for tx in T.thread_binding(10, thread="threadIdx.x"):
                with T.block("add"):
                    vi = T.axis.spatial(4, i)
                    T.where(ty == 0 and tx == 0)
                    T.reads(M[vi])
                    T.writes(B[vi])
                    B[vi] = M[vi] + T.float32(1)
"""


def module(text: str) -> IRModule:
    return IRModule({"main": from_source(text)})


def lowered(mod: IRModule) -> IRModule:
    return transform.LowerCrossThreadReduction()(mod)


def results(mod: IRModule, arrays: list[np.ndarray], target: str = "interpreter") -> list:
    tensors = [tvm.nd.array(array) for array in arrays]
    tvm.build(mod, target)["main"](*tensors)
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize(
    ("body", "expected"), [(PADDED_ROWS, PADDED_ROWS_LOWERED), (OWN_RESULTS, OWN_RESULTS_LOWERED)]
)
def test_a_block_becomes_those_that_threads_run(body: str, expected: str) -> None:
    mod = module(HEAD + body)
    new = lowered(mod)
    tvm.ir.assert_structural_equal(new, module(HEAD + expected), map_free_vars=True)
    tir.analysis.verify_well_formed(new)
    a = np.arange(120, dtype="float32").reshape(4, 30) % 17
    rows = a.sum(1) if body is PADDED_ROWS else a.max(1) + 1
    for program in (mod, new):
        for target in ("interpreter", "simulated"):
            np.testing.assert_array_equal(results(program, [a, a[:, 0]], target)[1], rows)


def test_tuples_are_reduced_in_the_order_of_their_reducer() -> None:
    new = lowered(
        module(
            """
@T.prim_func
def main(A: T.Buffer((3, 16), "float32"), P: T.Buffer((3,), "int32"), V: T.Buffer((3,), "float32")):
    for i in range(3):
        for k in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    V[vi] = T.min_value("float32")
                    P[vi] = -1
                position: T.int32 = T.Select(V[vi] >= A[vi, vk], P[vi], vk)
                value: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
                V[vi] = value
                P[vi] = position
"""
        )
    )
    assert "T.tvm_thread_allreduce(T.uint32(2), vk, A[vi, vk], T.bool(True)," in new.script()
    a = np.random.default_rng(0).permutation(48).reshape(3, 16).astype("float32")
    for target in ("interpreter", "simulated"):
        arrays = [a, np.zeros(3, "int32"), np.zeros(3, "float32")]
        _, positions, values = results(new, arrays, target)
        assert positions.tolist() == a.argmax(1).tolist()
        assert values.tolist() == a.max(1).tolist()


BLOCK = """
                with T.block("sum"):
                    vi = T.axis.spatial(4, {spatial})
                    vk = T.axis.reduce(30, {reduced})
                    T.where({where})
                    with T.init():
                        B[vi] = T.float32({init})
                    B[vi] = {update}
"""


@pytest.mark.parametrize(
    ("loops", "changes", "reason"),
    [
        (["blockIdx.x 30"], {}, 'bound to "blockIdx.x", and only threads of one block'),
        (["threadIdx.x 30", "i 4"], {}, 'The loop "i" stands between the block "sum"'),
        (["i 4", "threadIdx.x 30"], {"init": 3}, "is not the identity"),
        (["i 4", "threadIdx.x 30"], {"update": "B[vi] - A[vi, vk]"}, "not one of the reducers"),
        (["i 4", "threadIdx.x 30"], {"update": "A[vi, vk] + B[vi]"}, "with the old value first"),
        (["i 4", "threadIdx.x 30"], {"where": "k <= i"}, "about its reduction and other loops"),
        (["i 4", "threadIdx.x 30"], {"where": "k > 2"}, "once each, beginning with its init"),
        (["i 4", "threadIdx.x 30"], {"reduced": "k // 2"}, "once each, beginning with its init"),
        (["i 4", "threadIdx.x 30"], {"spatial": "k % 4"}, "depends on its reduction, too"),
    ],
)
def test_what_threads_cannot_do_together_is_refused(
    loops: list[str], changes: dict[str, object], reason: str
) -> None:
    body = HEAD
    for depth, loop in enumerate(loops):
        tag, extent = loop.split()
        how = f"range({extent})" if tag == "i" else f'T.thread_binding({extent}, thread="{tag}")'
        body += f"{'    ' * (depth + 1)}for {'i' if tag == 'i' else 'k'} in {how}:\n"
    parts = {"spatial": "i" if "i 4" in loops else "0", "reduced": "k", "where": "True"}
    parts |= {"init": "0", "update": "B[vi] + A[vi, vk]"}
    block = BLOCK.format_map(parts | changes)
    mod = module(body + block)
    with pytest.raises(ReductionError, match=reason) as refusal:
        lowered(mod)
    assert isinstance(refusal.value, ValueError)


def test_a_reduction_is_the_last_of_its_loops_and_its_result_waits() -> None:
    after = '                with T.block("next"):\n                    A[0, ki] = T.float32(1)\n'
    with pytest.raises(ReductionError, match='block "next" comes after it'):
        lowered(module(HEAD + PADDED_ROWS + after))
    before = '            with T.block("use"):\n                A[0, 0] = B[0]\n'
    body = PADDED_ROWS.replace("            for ki", f"{before}            for ki")
    with pytest.raises(ReductionError, match='its result "B" is used before'):
        lowered(module(HEAD + body))


def test_reductions_without_an_init_and_without_threads_stay() -> None:
    plain = module(
        HEAD + PADDED_ROWS.replace('T.thread_binding(8, thread="threadIdx.x")', "range(8)")
    )
    assert lowered(plain)["main"] is plain["main"]
    init = "                    with T.init():\n                        B[vi] = T.float32(0)\n"
    update = module(HEAD + PADDED_ROWS.replace(init, ""))
    assert lowered(update)["main"] is update["main"]


REDUCERS = ("sum", "max", "two sums")


@pytest.mark.parametrize("seed", range(40))
def test_random_reductions_compute_the_same(seed: int) -> None:
    """Integers, so that another order of sums gives the same."""
    random = Random(seed)
    rows, columns = random.choice([1, 3, 4]), random.choice([5, 8, 12])
    kind = random.choice(REDUCERS)
    two = kind == "two sums"
    update = {
        "sum": "B[vi] = B[vi] + A[vi, vj, vk]",
        "max": "B[vi] = T.max(B[vi], A[vi, vj, vk])",
        "two sums": "x: T.int32 = B[vi] + A[vi, vj, vk]\n            "
        "y: T.int32 = C[vi] + A[vi, vj, vk] * 2\n            B[vi] = x\n            C[vi] = y",
    }[kind]
    start = 'T.min_value("int32")' if kind == "max" else "0"
    init = f"B[vi] = {start}" + ("\n                C[vi] = 0" if two else "")
    shape, vector = f'T.Buffer(({rows}, 3, {columns}), "int32")', f'T.Buffer(({rows},), "int32")'
    source = f"""
@T.prim_func
def main(A: {shape}, B: {vector}, C: {vector}):
    for i, j, k in T.grid({rows}, 3, {columns}):
        with T.block("reduce"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                {init}
            {update}
"""
    sch = tir.Schedule(from_source(source))
    i, j, k = sch.get_loops("reduce")
    if random.random() < 0.7:
        sch.bind(i, "blockIdx.x")
    outer, inner = sch.split(k, [None, random.choice([1, 2, 4, 5])])
    loops = [j, outer, inner]
    random.shuffle(loops)
    sch.reorder(*loops)
    threads = random.sample(loops, random.choice([1, 1, 2]))
    for loop, tag in zip(threads, ("threadIdx.x", "threadIdx.y"), strict=False):
        sch.bind(loop, tag)
    a = np.random.default_rng(seed).integers(-9, 9, (rows, 3, columns)).astype("int32")
    arrays = [a, np.zeros(rows, "int32"), np.zeros(rows, "int32")]
    new = lowered(sch.mod)
    assert new["main"] is not sch.mod["main"]
    expected = [a, a.max((1, 2)) if kind == "max" else a.sum((1, 2))]
    expected.append(a.sum((1, 2)) * 2 if two else arrays[2])
    for mod, target in ((sch.mod, "interpreter"), (new, "interpreter"), (new, "simulated")):
        for result, numbers in zip(results(mod, arrays, target), expected, strict=True):
            np.testing.assert_array_equal(result, numbers, err_msg=mod.script())


def test_a_reduction_over_a_symbolic_extent() -> None:
    mod = module(
        """
@T.prim_func
def main(a: T.handle, B: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for ko in range((n + 7) // 8):
            for ki in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("sum"):
                    vi = T.axis.spatial(3, i)
                    vk = T.axis.reduce(n, ko * 8 + ki)
                    T.where(ko * 8 + ki < n)
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vi, vk]
"""
    )
    new = lowered(mod)
    for columns in (1, 8, 13):
        a = np.arange(3 * columns, dtype="int32").reshape(3, columns)
        for target in ("interpreter", "simulated"):
            assert results(new, [a, a[:, 0]], target)[1].tolist() == a.sum(1).tolist()
