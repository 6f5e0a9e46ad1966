"""Programs compiled to WebAssembly in the page."""

import pytest
from playwright.sync_api import expect

MATMUL = """\
import numpy as np
import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def schedule_mm(jfactor):
    sch = tvm.tir.Schedule(MyModule)
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block)
    j_0, j_1 = sch.split(j, factors=[None, jfactor])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    return sch


a, b = np.random.rand(2, 128, 128).astype("float32")
A, B, C = (tvm.nd.array(x) for x in (a, b, np.zeros_like(a)))
"""

SCALE = """\
import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def scale(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), factor: T.{dtype}):
    for i in range(1000):
        with T.block("B"):
            vi = T.axis.spatial(1000, i)
            B[vi] = A[vi] * T.cast(factor, "float32")
"""


DIVIDE = """\
import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def divide(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.truncdiv(12, A[vi])


module = tvm.build(divide, target="wasm")
A, B = (tvm.nd.array(np.zeros(4, "int32")) for _ in "AB")
"""


@pytest.fixture
def run(playground):
    """A function that runs a program to its good end and returns what it printed."""

    def printed(program: str) -> str:
        playground.run_to_end(program + "\nprint('the end')")
        expect(playground["console"]).to_contain_text("the end")
        playground.expect_state("ready")
        return playground["console"].inner_text()

    return printed


def test_matmul_computes_what_numpy_computes(run):
    run(
        MATMUL
        + """
for sch in (tvm.tir.Schedule(MyModule), schedule_mm(4), schedule_mm(16), schedule_mm(32)):
    C.copyfrom(np.full_like(a, np.nan))
    module = tvm.build(sch.mod, target="wasm")
    module["main"](A, B, C)
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
assert "f32x4.mul" in module.get_source()
"""
    )


def test_a_schedule_changes_the_speed(run):
    run(
        MATMUL
        + """
def seconds(sch):
    module = tvm.build(sch.mod, target="wasm")
    return module.time_evaluator("main", tvm.cpu(), number=20, repeat=5)(A, B, C).median

plain, tiled = seconds(tvm.tir.Schedule(MyModule)), seconds(schedule_mm(16))
print(plain, tiled)
assert tiled < plain / 3
"""
    )


def test_arrays_of_every_target_mix(run):
    """Kernels of the wasm target work on addresses, all others on NumPy's arrays."""
    run(
        MATMUL
        + """
for target in ("wasm", "numpy", "wasm"):
    C.copyfrom(np.zeros_like(a))
    tvm.build(schedule_mm(16).mod, target=target)["main"](A, B, C)
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
"""
    )


@pytest.mark.parametrize(
    ("dtype", "factor"), [("int64", 3), ("int64", -(2**53) - 2), ("float64", 0.5), ("int32", -3)]
)
def test_numbers_are_passed_by_value(run, dtype, factor):
    run(
        SCALE.format(dtype=dtype)
        + f"""
A, B = (tvm.nd.array(np.arange(1000, dtype="float32")) for _ in "AB")
tvm.build(scale, target="wasm")["scale"](A, B, {factor})
np.testing.assert_array_equal(B.numpy(), A.numpy() * np.float32({factor}))
"""
    )


def test_a_trap_is_an_error_at_its_line(playground):
    playground.run_to_end(DIVIDE + 'module["divide"](A, B)')
    playground.expect_state("error")
    console = playground["console"]
    expect(console).to_contain_text("KernelTrap")
    expect(console).to_contain_text("was stopped: it divided an integer by zero")
    expect(playground.underlined_line()).to_have_text('module["divide"](A, B)')


def test_after_a_trap_module_and_arrays_are_still_good(run):
    run(
        DIVIDE
        + """
try:
    module["divide"](A, B)
except tvm.TVMError as error:
    print(type(error).__name__, error)
else:
    raise AssertionError
A.copyfrom(np.array([1, 2, 3, 4], "int32"))
module["divide"](A, B)
assert B.numpy().tolist() == [12, 6, 4, 3]
"""
    )


def test_too_large_an_array_is_an_error_and_what_there_was_stays(run):
    run(
        MATMUL
        + """
try:
    tvm.nd.empty((2**31, 4), "float32")
except MemoryError as error:
    assert isinstance(error, tvm.TVMError)
    print(error)
np.testing.assert_array_equal(A.numpy(), a)
big = tvm.nd.array(np.ones(40_000_000, "float32"))
assert big.numpy().sum() == 40_000_000
np.testing.assert_array_equal(A.numpy(), a)
tvm.build(MyModule, target="wasm")["main"](A, B, C)
np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
"""
    )


def test_arrays_cannot_be_viewed_but_copied(run):
    text = run(
        """\
import numpy as np
import tvm

array = tvm.nd.array(np.arange(6, dtype="int16").reshape(2, 3))
try:
    array.view()
except tvm.TVMError as error:
    print(error)
array[0, 1] = 7
assert array.numpy().tolist() == [[0, 7, 2], [3, 4, 5]]
assert tvm.nd.empty((0, 3)).numpy().shape == (0, 3)
"""
    )
    assert "copy them out by .numpy()" in text


def test_many_modules_and_arrays_leave_memory_bounded(run):
    run(
        MATMUL
        + """
from mlcweb.runtime.host.engine import engine

def work(modules, arrays):
    for index in range(modules):
        module = tvm.build(schedule_mm(4).mod, target="wasm")
        module["main"](A, B, C)
    for index in range(arrays):
        tvm.nd.array(a)

work(2, 200)
before = engine().nbytes
work(60, 5000)
assert engine().nbytes == before
"""
    )


def test_a_page_that_is_not_isolated(open_playground):
    playground = open_playground(isolated=False)
    playground.expect_state("ready", timeout_ms=90_000)
    playground.run_to_end(
        MATMUL
        + """
module = tvm.build(schedule_mm(16).mod, target="wasm")
module["main"](A, B, C)
np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
assert module.time_evaluator("main", tvm.cpu())(A, B, C).mean > 0
print("the end")
"""
    )
    expect(playground["console"]).to_contain_text("the end")
