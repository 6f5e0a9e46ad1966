"""Programs compiled to WebAssembly in the page."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e.programs import MATMUL

SCHEDULED = (
    "import numpy as np\n"
    + MATMUL
    + """

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
)

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

EXTERNAL = """\
import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        T.evaluate(
            T.call_extern(
                "row_sum",
                B.access_ptr("rw", offset=i, extent=1),
                A.access_ptr("r", offset=i * 8, extent=8),
                8,
                dtype="int32",
            )
        )


@T.prim_func
def micro(out: T.handle, row: T.handle, n: T.int32):
    Out = T.match_buffer(out, (1,), "float32")
    Row = T.match_buffer(row, (n,), "float32")
    Out[0] = T.float32(0)
    for k in range(n):
        Out[0] = Out[0] + Row[k]


def in_python(out, row, n):
    assert len(row) == n
    out[0] = row.sum()
"""

CORPUS = (Path(__file__).parents[1] / "tests" / "codegen" / "corpus.py").read_text("utf8")


def test_matmul_computes_what_numpy_computes_beside_other_targets(run):
    run(
        SCHEDULED
        + """
for sch in (tvm.tir.Schedule(MyModule), schedule_mm(4), schedule_mm(16), schedule_mm(32)):
    C.copyfrom(np.full_like(a, np.nan))
    module = tvm.build(sch.mod, target="wasm")
    module["main"](A, B, C)
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
assert "f32x4.mul" in module.get_source() or "f32x4.relaxed_madd" in module.get_source()

# Kernels of the wasm target work on addresses, all others on NumPy's arrays.
for target in ("wasm", "numpy", "wasm"):
    C.copyfrom(np.zeros_like(a))
    tvm.build(schedule_mm(16).mod, target=target)["main"](A, B, C)
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
"""
    )


@pytest.mark.thorough
def test_numbers_are_passed_by_value(run):
    cases = [("int64", 3), ("int64", -(2**53) - 2), ("float64", 0.5), ("int32", -3)]
    run(
        "".join(
            SCALE.format(dtype=dtype)
            + f"""
A, B = (tvm.nd.array(np.arange(1000, dtype="float32")) for _ in "AB")
tvm.build(scale, target="wasm")["scale"](A, B, {factor})
np.testing.assert_array_equal(B.numpy(), A.numpy() * np.float32({factor}))
"""
            for dtype, factor in cases
        )
    )


@pytest.mark.thorough
def test_a_trap_is_an_error_at_its_line_and_costs_nothing_else(used_playground):
    playground = used_playground()
    playground.run_to_end(DIVIDE + 'module["divide"](A, B)')
    playground.expect_state("error")
    console = playground["console"]
    expect(console).to_contain_text("KernelTrap")
    expect(console).to_contain_text("was stopped: it divided an integer by zero")
    expect(playground.underlined_line()).to_have_text('module["divide"](A, B)')
    # Module and arrays are as good as before.
    playground.run_to_end(
        DIVIDE
        + """
try:
    module["divide"](A, B)
except tvm.TVMError:
    A.copyfrom(np.array([1, 2, 3, 4], "int32"))
    module["divide"](A, B)
    print(B.numpy().tolist())
"""
    )
    expect(console).to_contain_text("[12, 6, 4, 3]")


@pytest.mark.thorough
def test_too_large_an_array_is_an_error_and_what_there_was_stays(run):
    run(
        SCHEDULED
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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_many_modules_and_arrays_leave_memory_bounded(run):
    run(
        SCHEDULED
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


@pytest.mark.thorough
def test_a_page_that_is_not_isolated(open_playground):
    playground = open_playground(isolated=False)
    playground.run_to_end(
        SCHEDULED
        + """
module = tvm.build(schedule_mm(16).mod, target="wasm")
module["main"](A, B, C)
np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
assert module.time_evaluator("main", tvm.cpu())(A, B, C).mean > 0
print("the end")
"""
    )
    expect(playground["console"]).to_contain_text("the end")


@pytest.mark.thorough
def test_the_page_computes_what_the_interpreter_computes(run):
    """All programs that try the paths of the code generators, in the browser's engine."""
    run(
        CORPUS
        + """
import tvm
from tvm import nd

TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}
fallen_back = []

def results(func, target):
    arrays = [nd.array(values) for values in inputs(func)]
    lib = tvm.build(func, target=target)
    lib.entry_func(*arrays)
    if target.startswith("wasm") and "(module" not in lib.get_source():
        fallen_back.append(name)
    return [array.numpy() for array in arrays]

for name, func in PROGRAMS.items():
    expected = results(func, "interpreter")
    for target in ("wasm", "wasm -bounds_check=1"):
        for one, other in zip(expected, results(func, target), strict=True):
            tolerance = TOLERANCE.get(one.dtype.name, 0)
            np.testing.assert_allclose(other, one, tolerance, tolerance, err_msg=name)
assert len(PROGRAMS) >= 15 and not fallen_back, fallen_back
"""
    )


@pytest.mark.thorough
def test_kernels_call_python_and_micro_kernels(run):
    run(
        EXTERNAL
        + """
import gc

values = np.arange(64, dtype="float32").reshape(8, 8)
for function in (in_python, micro):
    tvm.register_func("row_sum", function, override=True)
    A, B = tvm.nd.array(values), tvm.nd.array(np.zeros(8, "float32"))
    lib = tvm.build(main, target="wasm")
    lib["main"](A, B)
    assert B.numpy().tolist() == values.sum(axis=1).tolist()
    assert ("(import \\"python\\"" in lib.get_source()) == (function is in_python)

def fail(*arguments):
    raise KeyError("the reason")

tvm.register_func("row_sum", fail, override=True)
lib = tvm.build(main, target="wasm")
for _ in range(2):
    try:
        lib["main"](A, B)
    except KeyError as error:
        assert error.args == ("the reason",)
    else:
        raise AssertionError
tvm.register_func("row_sum", in_python, override=True)
lib["main"](A, B)
assert B.numpy().tolist() == values.sum(axis=1).tolist()
del lib
gc.collect()
"""
    )


def test_a_checked_kernel_names_buffer_and_index(used_playground):
    playground = used_playground()
    playground.run_to_end(
        """\
import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def shift(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = A[i + 1]


A, B = (tvm.nd.array(np.zeros(8, "int32")) for _ in "AB")
with tvm.transform.PassContext(opt_level=3, config={"mlcweb.bounds_check": True}):
    module = tvm.build(shift, target="llvm")
module["shift"](A, B)
"""
    )
    playground.expect_state("error")
    console = playground["console"]
    expect(console).to_contain_text('target="llvm" means "wasm" here')
    expect(console).to_contain_text("IndexOutOfBounds")
    expect(console).to_contain_text('Reading "A" out of bounds: index 8 of axis 0')


@pytest.mark.thorough
def test_wrong_arguments_are_refused_before_the_call(run):
    run(
        SCHEDULED
        + """
module = tvm.build(schedule_mm(16).mod, target="wasm")
module["main"](A, B, C)
c_np = np.zeros((128, 128), "float32")
for arguments, error, message in [
    ((A, B), TypeError, "Expected 3 argument(s) but got 2"),
    ((A, B, c_np), TypeError, "pass tvm.nd.array(x)"),
    ((A, B, tvm.nd.empty((128, 128), "float64")), TypeError, "Expected dtype float32 but got"),
    ((A, B, tvm.nd.empty((128, 127))), ValueError, "Expected C.shape[1] == 128 but got"),
    ((A, A, A), ValueError, "are the same array"),
]:
    try:
        module["main"](*arguments)
    except error as caught:
        assert isinstance(caught, tvm.TVMError) and message in str(caught), caught
    else:
        raise AssertionError(message)
"""
    )


@pytest.mark.thorough
def test_borrowed_arrays_that_overlap_stay_one_memory(run):
    run(
        """\
import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def shift(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(7):
        B[i + 1] = A[i] + 1


memory = np.zeros(12, "int32")
a, b = (tvm.runtime.from_dlpack(memory[start : start + 8]) for start in (0, 1))
tvm.build(shift, target="wasm")["shift"](a, b)
assert memory.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 0, 0, 0]
tvm.build(shift, target="wasm")["shift"](a, a)
assert memory.tolist()[:8] == [0, 1, 2, 3, 4, 5, 6, 7]
"""
    )
