"""Memory that tensors share: the plan, its figures, and that results do not change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax import TensorStructInfo
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import vm_of
from tests.strategies import examples


@tvm.script.ir_module
class Kernels:
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi] * T.float32(0.5)

    @T.prim_func
    def joined(a: T.handle, b: T.handle, c: T.handle):
        """Both operands, one after the other."""
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        C = T.match_buffer(c, (n + m,), "float32")
        for i in range(n):
            with T.block("first"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi]
        for i in range(m):
            with T.block("second"):
                vi = T.axis.spatial(m, i)
                C[n + vi] = B[vi]


ADD, JOINED = (Kernels.get_global_var(name) for name in ("add", "joined"))


def call(func, args, size):
    return relax.call_tir(func, args, TensorStructInfo((size,), "float32"))


def chain(length):
    """x + x/2, and so on, `length` times."""
    bb = relax.BlockBuilder(Kernels)
    x = relax.Var("x", TensorStructInfo((16,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for _ in range(length):
                value = bb.emit(call(ADD, (value, value), 16))
            value = bb.emit_output(value)
        bb.emit_func_output(value)
    return bb.get()


def test_a_chain_needs_two_buffers_and_its_result():
    report = relax.build(chain(100)).memory_report()
    main = report.functions["main"]
    assert main.pieces == (64, 64)
    assert main.results == (64,)
    assert (main.bytes_before, main.bytes_after) == (6400, 192)
    assert "100 tensor(s) of constant size, 6400 bytes" in str(report)
    assert "3 allocation(s), 192 bytes" in str(report)


def test_one_kernel_with_many_addresses():
    x = np.linspace(0, 1, 16, dtype="float32")
    vm = vm_of(chain(100), reuse_memory=False)
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), x * 1.5**100, rtol=1e-4)


def test_pieces_grow_for_larger_tensors():
    bb = relax.BlockBuilder(Kernels)
    x = relax.Var("x", TensorStructInfo((16,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(call(ADD, (x, x), 16))
            b = bb.emit(call(JOINED, (a, a), 32))
            c = bb.emit(call(JOINED, (b, b), 64))  # in the place of a, which grows
            d = bb.emit_output(call(JOINED, (c, x), 80))
        bb.emit_func_output(d)
    main = relax.build(bb.get()).memory_report().functions["main"]
    assert sorted(main.pieces) == [128, 256]
    assert list(main.tensors.values()) == [64, 128, 256]


def test_symbolic_sizes_are_planned_when_they_are_known():
    bb = relax.BlockBuilder(Kernels)
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", TensorStructInfo((n,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for _ in range(6):
                value = bb.emit(call(ADD, (value, value), n))
            value = bb.emit_output(value)
        bb.emit_func_output(value)
    executable = relax.build(bb.get())
    assert executable.memory_report().functions["main"].dynamic == 6
    planned = executable.memory_report(n=1024).functions["main"]
    assert (planned.bytes_before, planned.bytes_after) == (6 * 4096, 3 * 4096)


def test_what_python_may_keep_is_not_reused():
    kept = []

    @tvm.register_func("test.keep", override=True)
    def keep(tensor):
        kept.append(tensor)
        return tensor

    @tvm.script.ir_module
    class Keeping:
        @T.prim_func
        def add(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    C[vi] = A[vi] + T.float32(1)

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            cls = Keeping
            a = R.call_tir(cls.add, (x,), R.Tensor((4,), "float32"))
            b = R.call_packed("test.keep", a, sinfo_args=R.Tensor((4,), "float32"))
            c = R.call_tir(cls.add, (b,), R.Tensor((4,), "float32"))
            d = R.call_tir(cls.add, (c,), R.Tensor((4,), "float32"))
            e = R.call_tir(cls.add, (d,), R.Tensor((4,), "float32"))
            return e

        @R.function(pure=False)
        def outer(x: R.Tensor((4,), "float32")):
            cls = Keeping
            a = R.call_tir(cls.add, (x,), R.Tensor((4,), "float32"))
            b = cls.main(a)
            return b

    vm = vm_of(Keeping)
    zero, ten = (tvm.nd.array(np.full(4, value, "float32")) for value in (0, 10))
    for function, offset in [("main", 1), ("outer", 2)]:
        kept.clear()
        vm[function](zero)
        vm[function](ten)
        assert [array.numpy()[0] for array in kept] == [offset, 10 + offset]
    tvm.runtime.remove_global_func("test.keep")


@st.composite
def programs(draw):
    """A graph of calls on earlier values of lengths that grow, with some of them returned."""
    bb = relax.BlockBuilder(Kernels)
    params = [relax.Var(f"p{i}", TensorStructInfo((4,), "float32")) for i in range(2)]
    values = [(param, 4) for param in params]
    with bb.function("main", params):
        with bb.dataflow():
            for _ in range(draw(st.integers(1, 12))):
                a, size = draw(st.sampled_from(values))
                same = [value for value in values if value[1] == size]
                b, other = draw(st.sampled_from(values if size < 64 else same))
                if other == size and draw(st.booleans()):
                    values.append((bb.emit(call(ADD, (a, b), size)), size))
                elif size + other <= 128:
                    values.append((bb.emit(call(JOINED, (a, b), size + other)), size + other))
            chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
            chosen = [bb.emit_output(value) for value, _ in chosen]
        bb.emit_func_output(relax.Tuple(chosen))
    return bb.get()


@examples(40)
@given(programs(), st.sampled_from(["wasm", "numpy"]))
def test_sharing_memory_changes_no_result(mod, target):
    executable = relax.build(mod, target)
    shared, apart = (
        relax.VirtualMachine(executable, tvm.cpu(), reuse_memory=reuse) for reuse in (True, False)
    )
    plan = executable.memory_report().functions["main"]
    assert plan.bytes_after <= plan.bytes_before + 64 * len(plan.pieces)
    calls = []
    for seed in (0, 1, 0):
        rng = np.random.default_rng(seed)
        inputs = [tvm.nd.array(rng.random(4, "float32")) for _ in range(2)]
        calls.append((shared["main"](*inputs), apart["main"](*inputs)))
    for ours, theirs in calls:
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one.numpy(), two.numpy())
