"""Building and calling: names, argument checks, measuring."""

from pathlib import Path

import numpy as np
import pytest

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.errors import InternalError
from mlcweb.runtime import (
    NDArray,
    Target,
    build,
    cpu,
    cuda,
    load_module,
    nd,
    register_func,
    remove_global_func,
)
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source
from mlcweb.script import tir as T
from tests.programs import matmul

TARGETS = ["interpreter", "numpy", *(["wasm"] if available() else [])]
TARGETS += ["llvm -mcpu=host"] if has_llvm() else []


@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "double", "tir.noalias": True})
    for i in range(4):
        B[i] = A[i] * T.float32(2)


def four(value=1.0, dtype="float32"):
    return nd.array(np.full(4, value, dtype))


def elsewhere():
    """An array of another device."""
    return NDArray((4,), "float32", cuda(), four().storage)


def test_functions_are_found_by_the_symbol_that_others_call():
    lib = build(IRModule({"twice": double}))
    b = nd.empty((4,))
    lib["double"](four(3), b)
    assert lib["twice"].kernel is lib["double"].kernel and (b.numpy() == 6).all()
    with pytest.raises(AttributeError, match='no function "triple"; there are: twice'):
        lib["triple"]


def test_functions_are_found_by_name():
    lib = build(double)
    assert "double" in lib
    assert lib["double"].name == lib.entry_func.name == "double"
    assert lib["main"] is lib["double"]
    with pytest.raises(AttributeError, match='no function "triple"; there are: double') as caught:
        lib["triple"]
    assert isinstance(caught.value, TVMError)


def test_imported_modules_are_asked_and_exported(tmp_path):
    lib, other = build(double, "numpy"), build(double, "numpy", name="again")
    lib.import_module(other)
    assert lib.imported_modules == [other] and "again" not in lib
    assert lib.implements_function("again", query_imports=True)
    lib.export_library(str(tmp_path / "both.wasm"))
    for module in (lib, load_module(str(tmp_path / "both.wasm"))):
        out = nd.empty((4,))
        module.get_function("again", query_imports=True)(four(3.0), out)
        assert out.numpy().tolist() == [6.0] * 4
    with pytest.raises(TVMError, match='"numpy" cannot import one for "interpreter"'):
        lib.import_module(build(double, "interpreter"))
    lib.clear_imports()
    assert not lib.implements_function("again", query_imports=True)


def test_names_of_single_functions():
    assert list(build(double, name="f").functions) == ["f"]
    assert list(build(IRModule({"g": double})).functions) == ["g"]


@pytest.mark.parametrize(
    "target", [None, "llvm", "c", "cpu", "numpy", "interpreter", "llvm -num-cores=1"]
)
def test_targets(target):
    b = nd.empty((4,))
    build(double, target)(four(), b)
    assert b.numpy().tolist() == [2, 2, 2, 2]


def test_the_surrounding_target_is_the_default():
    with Target("interpreter"):
        assert build(double).target == "interpreter"
    assert build(double).target != "interpreter"


def test_what_cannot_be_built():
    names = r"targets are c, cpu, cuda, .*metal, .*opencl, .*wasm, webgpu"
    with pytest.raises(RuntimeError, match=f'Nothing here builds for "rocm"; {names}'):
        build(double, "rocm")
    with pytest.raises(ValueError, match="not defined"):
        build(double, "abacus")
    with pytest.raises(RuntimeError, match="IRModule or a PrimFunc, not int"):
        build(3)
    with pytest.raises(RuntimeError, match="no functions"):
        build(IRModule())


def test_the_source_can_be_read():
    assert "def main(A, B, C):" in build(matmul(), "numpy").get_source()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((four(),), TypeError, r"Expected 2 argument\(s\) but got 1"),
        ((four(), np.ones(4)), TypeError, "Expected dtype float32 but got float64"),
        ((four(), np.ones(8, "float32")[::2]), ValueError, "a compact array that may be written"),
        ((four(), [1.0] * 4), TypeError, "Expected an NDArray but got list"),
        ((four(), 3), TypeError, "Expected an NDArray but got int"),
        ((four(), four(dtype="float64")), TypeError, "Expected dtype float32 but got float64"),
        (
            (four(), nd.empty((4, 1))),
            ValueError,
            r"Expected 1 dimension\(s\) but got shape \(4, 1\)",
        ),
        ((four(), nd.empty((5,))), ValueError, r"Expected B.shape\[0\] == 4 but got shape \(5,\)"),
        ((four(), four(), four()), TypeError, r"Expected 2 argument\(s\) but got 3"),
        ((four(), None), TypeError, "Expected an NDArray but got NoneType"),
        (
            (four(), elsewhere()),
            ValueError,
            "Expected an array on cpu:0 but got one on cuda:0: argument 1",
        ),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_wrong_arguments_are_refused_before_the_call(arguments, error, message, target):
    with pytest.raises(error, match=message) as caught:
        build(double, target)["double"](*arguments)
    assert isinstance(caught.value, TVMError)
    assert 'double(A: Tensor((4,), "float32"), B: Tensor((4,), "float32"))' in str(caught.value)


def test_symbolic_sizes_have_to_agree():
    func = from_source(
        """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, n), "float32")
    B = T.match_buffer(b, (n * 2,), "float32")
    for i in range(n):
        B[i * 2] = A[i, i]
"""
    )
    call = build(func, "interpreter")
    call(nd.empty((3, 3)), nd.empty((6,)))
    with pytest.raises(ValueError, match=r"Expected A.shape\[1\] == 3"):
        call(nd.empty((3, 4)), nd.empty((6,)))
    with pytest.raises(ValueError, match=r"Expected B.shape\[0\] == 6"):
        call(nd.empty((3, 3)), nd.empty((5,)))


def test_scalars_are_checked():
    @T.prim_func
    def main(n: T.int8, x: T.float32, A: T.Buffer((1,), "float32")):
        A[0] = T.cast(n, "float32") * x

    call, out = build(main, "interpreter"), nd.empty((1,))
    call(np.int64(3), 2, out)
    assert out.numpy()[0] == 6
    with pytest.raises(ValueError, match="300 does not fit int8"):
        call(300, 2.0, out)
    with pytest.raises(TypeError, match="Expected int8 but got float"):
        call(1.5, 2.0, out)


def test_a_written_array_passed_twice_breaks_the_promise_of_noalias():
    same = four()
    with pytest.raises(ValueError, match='A and B are the same array, but "double"'):
        build(double)(same, same)


def test_reading_the_same_array_twice_is_fine():
    a, c = nd.array(np.eye(128, dtype="float32")), nd.empty((128, 128))
    build(matmul())["main"](a, a, c)
    np.testing.assert_array_equal(c.numpy(), np.eye(128))


def test_time_evaluator_counts_its_calls():
    calls = []
    register_func("test_count", lambda *_: calls.append(1))
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    T.evaluate(T.call_packed("test_count"))
"""
    )
    try:
        timer = build(func, "interpreter").time_evaluator("main", cpu(), number=1000, repeat=2)
        result = timer(four())
    finally:
        remove_global_func("test_count")
    assert len(result.results) == 2
    assert len(calls) >= 1 + 2 * 1000


@pytest.mark.parametrize("target", ["llvm", "wasm", "numpy"])
def test_what_calls_python_is_warmed_up_by_one_call(target, monkeypatch):
    monkeypatch.setattr("mlcweb.runtime.benchmark.STEPS_PER_BATCH", 0)
    calls = []
    register_func("test_count", lambda *_: calls.append(1))
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n"
        "    T.evaluate(T.call_packed('test_count'))\n"
    )
    try:
        build(func, target).time_evaluator("main", cpu(), number=3, repeat=2)(four())
    finally:
        remove_global_func("test_count")
    assert len(calls) == 1 + 2 * 3


def test_time_evaluator_knows_its_device():
    with pytest.raises(RuntimeError, match="built for cpu:0, not for cuda:0"):
        build(double).time_evaluator("double", cuda())


def test_preprocessing_runs_before_each_repeat():
    seen = []
    register_func("test_before", lambda *arrays: seen.append(len(arrays)))
    try:
        lib = build(double)
        lib.time_evaluator("double", cpu(), number=1, repeat=3, f_preproc="test_before")(
            four(), nd.empty((4,))
        )
    finally:
        remove_global_func("test_before")
    assert seen == [2, 2, 2]
    flushed = lib.time_evaluator(
        "double", cpu(), number=1, repeat=2, f_preproc="cache_flush_cpu_non_first_arg"
    )
    assert len(flushed(four(), nd.empty((4,))).results) == 2


def test_two_functions_do_not_share_a_symbol() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def first(A: T.Buffer((1,), "float32")):
        T.func_attr({"global_symbol": "same"})
        A[0] = T.float32(1)

    @T.prim_func
    def second(A: T.Buffer((1,), "float32")):
        T.func_attr({"global_symbol": "same"})
        A[0] = T.float32(2)
""")
    with pytest.raises(InternalError, match=r"global_symbol 'same': \"first\" and \"second\""):
        build(module, "interpreter")


def test_what_a_module_writes_depends_on_the_suffix(tmp_path: Path) -> None:
    module = build(double, "wasm")
    module.write_to_file(tmp_path / "add.wat")
    assert (tmp_path / "add.wat").read_text() == module.get_source("wat")
    module.write_to_file(tmp_path / "add.wasm")
    assert (tmp_path / "add.wasm").read_bytes().startswith(b"\0asm")


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_of_numpy_are_read_and_written_in_place(target):
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    fixed = a.copy()
    fixed.flags.writeable = False
    kernel = build(double, target)
    kernel(a, b)
    assert b.tolist() == [0, 2, 4, 6]
    kernel(fixed[::-1], b)  # what is only read may lie as it likes
    assert b.tolist() == [6, 4, 2, 0]
    kernel(four(3), b)
    assert b.tolist() == [6] * 4
    with pytest.raises(ValueError, match="a compact array that may be written"):
        kernel(a, fixed)
    with pytest.raises(ValueError, match="share memory"):
        kernel(a, a)
    assert a.tolist() == [0, 1, 2, 3]
