"""The options of `build`: checked accesses, fused operations, and what a target's name means."""

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.errors import IndexOutOfBounds
from mlcweb.codegen.registry import find_target
from mlcweb.ir.transform import PassContext, option_names
from mlcweb.runtime import build, nd
from mlcweb.runtime.build import reset_warnings
from mlcweb.runtime.host.engine import available
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from tests.programs import matmul

needs_engine = pytest.mark.skipif(not available(), reason="no WebAssembly engine")

SHIFTED = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj + 1]
""")
CHECKED = {"mlcweb.bounds_check": True}


def arrays():
    return [nd.array(np.arange(32, dtype="float32").reshape(4, 8)) for _ in "AB"]


def build_in_context():
    with PassContext(opt_level=3, config=CHECKED):
        return build(SHIFTED, "wasm")


def build_in_target():
    with Target("wasm -bounds_check=1"):
        return build(SHIFTED)


@needs_engine
@pytest.mark.parametrize(
    "make",
    [
        lambda: build(SHIFTED, "wasm", config=CHECKED),
        lambda: build(SHIFTED, "wasm -bounds_check=1"),
        lambda: build(SHIFTED, {"kind": "wasm", "bounds-check": True}),
        build_in_context,
        build_in_target,
    ],
)
def test_an_access_out_of_bounds_is_named(make):
    with pytest.raises(IndexOutOfBounds) as caught:
        make()["main"](*arrays())
    message = 'Reading "A" out of bounds: index 8 of axis 1, which has extent 8'
    assert message in str(caught.value)
    assert "B[vi, vj] = A[vi, vj + 1]" in str(caught.value)


@needs_engine
def test_after_a_failed_check_the_module_is_still_good():
    lib = build(matmul(), "wasm", config=CHECKED)
    a, b = np.random.default_rng(0).random((2, 128, 128), dtype="float32")
    c = nd.empty((128, 128))
    shifted = build(SHIFTED, "wasm", config=CHECKED)
    for _ in range(2):
        with pytest.raises(IndexOutOfBounds):
            shifted["main"](*arrays())
        lib["main"](nd.array(a), nd.array(b), c)
        np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


@needs_engine
def test_the_nearest_setting_counts():
    unchecked = {"mlcweb.bounds_check": False}
    with PassContext(config=CHECKED):
        build(SHIFTED, "wasm -bounds_check=0")["main"](*arrays())
        build(SHIFTED, "wasm", config=unchecked)["main"](*arrays())
        with PassContext(config=unchecked):
            build(SHIFTED, "wasm")["main"](*arrays())
    build(SHIFTED, "wasm")["main"](*arrays())


@needs_engine
@pytest.mark.parametrize(("start", "index"), [(-1, -1), (5, 5)])
def test_vector_accesses_are_checked(start, index):
    func = from_source(
        "@T.prim_func\n"
        "def main(A: T.Buffer((8,), 'float32'), B: T.Buffer((8,), 'float32'), n: T.int32):\n"
        "    B[T.Ramp(n, 1, 4)] = A[T.Ramp(0, 1, 4)]\n"
    )
    lib = build(func, "wasm", config=CHECKED)
    a, b = (nd.array(np.arange(8, dtype="float32")) for _ in "ab")
    lib["main"](a, b, 4)
    assert b.numpy().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    with pytest.raises(IndexOutOfBounds, match=f'Writing "B" out of bounds: index {index} of'):
        lib["main"](a, b, start)


@pytest.mark.parametrize("target", ["interpreter", "numpy"])
def test_targets_that_are_not_compiled_always_check(target):
    for config in ({}, CHECKED):
        with pytest.raises(IndexOutOfBounds):
            build(SHIFTED, target, config=config)["main"](*arrays())


@needs_engine
def test_fused_operations_can_be_switched_off():
    one = build(matmul(), "wasm", config={"mlcweb.relaxed_madd": False}).get_source()
    other = build(matmul(), "wasm -relaxed_madd=0").get_source()
    assert "relaxed_madd" not in one
    assert one == other
    assert "f32x4.relaxed_madd" in build(vectorized(), "wasm -relaxed_madd=1").get_source()


def vectorized():
    sch = mlcweb.tir.Schedule(matmul())
    i, j, k = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i, j0, k, j1)
    return sch.mod


@pytest.mark.parametrize(
    "make", [lambda c: build(SHIFTED, config=c), lambda c: PassContext(config=c)]
)
def test_unknown_options_are_refused(make):
    with pytest.raises(AttributeError) as caught:
        make({"mlcweb.bound_check": True})
    assert isinstance(caught.value, mlcweb.TVMError)
    known = ", ".join(option_names())
    assert str(caught.value) == f'Unknown option "mlcweb.bound_check"; there are {known}'
    assert {"mlcweb.bounds_check", "mlcweb.relaxed_madd"} <= set(option_names())


def test_an_option_has_a_type():
    assert PassContext(config={"mlcweb.bounds_check": 1}).config == CHECKED
    with pytest.raises(ValueError, match="takes a bool, not 'yes'"):
        PassContext(config={"mlcweb.bounds_check": "yes"})


def test_contexts_nest():
    assert PassContext.current().config == {}
    with PassContext(opt_level=3, config=CHECKED) as outer:
        with PassContext(opt_level=0):
            assert PassContext.current().opt_level == 0
        assert PassContext.current() is outer
    assert PassContext.current().opt_level == 2
    assert mlcweb.transform.PassContext is PassContext


def test_another_compilers_name_is_explained_once(capsys):
    reset_warnings()
    meant = find_target("c").name
    for _ in range(2):
        build(SHIFTED, target="c")
        build(SHIFTED, target="c -march=native")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        f'target="c" means "{meant}" here, the fastest code generator of this machine; '
        "get_source() gives C\n"
    )
    reset_warnings()
    build(SHIFTED, target="c")
    build(SHIFTED, target=meant)
    assert capsys.readouterr().err.count("\n") == 1
