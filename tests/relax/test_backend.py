"""Patterns of external compilers by name, and the pipelines of targets."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax.backend import pattern_registry, patterns, pipelines
from mlcweb.relax.backend.utils import BackendDispatcher, has_leaking_intermediate_variables
from mlcweb.relax.dpl import is_op, wildcard
from mlcweb.relax.transform import FuseOpsByPattern, FusionPattern
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from tests.relax.transform.running import arguments, run


def module(body: str, params: str = "", results: str = "gv"):
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    return from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32"){params}):
        with R.dataflow():
{lines}
            R.output({results})
        return {results}
""")


def composites(mod, *pattern) -> list[str]:
    fused = FuseOpsByPattern([FusionPattern("mine.op", *pattern)])(mod)
    return [f.attrs["Composite"] for f in fused.functions.values() if "Composite" in f.attrs]


@pytest.fixture
def registered():
    add, multiply = (is_op(f"relax.{name}")(wildcard(), wildcard()) for name in ("add", "multiply"))
    names = ["my.add", "my.mul", "my.mm"]
    pattern_registry.register_patterns([
        ("my.add", add), ("my.mul", multiply, {}), ("my.add", multiply, {}, lambda context: True),
    ])  # fmt: skip
    product = patterns.make_matmul_pattern(True, "relax.nn.relu")
    pattern_registry.register_patterns([FusionPattern("my.mm", *product)])
    yield multiply
    pattern_registry.remove_patterns(names)
    assert not pattern_registry.get_patterns_with_prefix("my.")


def test_patterns_are_ordered_as_in_tvm(registered) -> None:
    """What TVM 0.27 gives for the same registrations."""
    there = pattern_registry.get_patterns_with_prefix("my.")
    assert [each.name for each in there] == ["my.mm", "my.add", "my.mul", "my.add"]
    assert pattern_registry.get_pattern("my.add").pattern is registered
    assert pattern_registry.get_pattern("none") is None
    assert pattern_registry.get_patterns_with_prefix("zz") == []
    with pytest.raises(TypeError, match="Cannot register type <class 'str'> as pattern"):
        pattern_registry.register_patterns(["add"])


def test_registered_patterns_partition(registered) -> None:
    mod = module("a = R.matmul(x, w)\nb = R.add(a, x)\ngv = R.nn.relu(b)")
    fused = FuseOpsByPattern(pattern_registry.get_patterns_with_prefix("my."))(mod)
    names = [f.attrs.get("Composite") for f in fused.functions.values()]
    assert sorted(filter(None, names)) == ["my.mm"]


MATMUL, CONV = patterns.make_matmul_pattern, patterns.make_conv2d_pattern
_IMAGE = ', i: R.Tensor((1, 3, 8, 8), "float32"), k: R.Tensor((2, 3, 3, 3), "float32")'
_QKV = ", ".join(f'{n}: R.Tensor((1, 4, 2, 8), "float32")' for n in "qkv")


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ("gv = R.matmul(x, w)", MATMUL()),
        ("a = R.matmul(x, w)\nb = R.add(a, x)\ngv = R.nn.relu(b)", MATMUL(True, "relax.nn.relu")),
        ("a = R.permute_dims(w)\ngv = R.matmul(x, a)", MATMUL(transposed_rhs=True)),
        ("a = R.nn.conv2d(i, k)\ngv = R.nn.relu(a)", CONV(activation="relax.nn.relu")),
        (
            "a = R.matmul(x, w)\nb = R.reshape(w, (1, 4, 4))\ngv = R.add(a, b)",
            patterns.make_fused_bias_activation_pattern("relax.matmul", True, allow_reshape=True),
        ),
        ("a = R.matmul(x, w)\ngv = R.add(x, a)", patterns.make_residual_block_pattern(MATMUL())),
        (
            "a = R.matmul(x, w)\nb = R.add(a, x)\ngv = R.nn.relu(b)",
            patterns.make_residual_block_pattern(MATMUL(), activation="relax.nn.relu"),
        ),
        ("gv = R.nn.attention(q, k_, v)", patterns.make_attention_pattern()),
        ("gv = R.nn.layer_norm(x, g, g, axes=[-1])", patterns.make_layer_norm_pattern()),
        (
            "a = R.split(s, 3, axis=2)\nb = R.reshape(a[0], (1, 4, 2, 8))\n"
            "c = R.reshape(a[1], (1, 4, 2, 8))\nd = R.reshape(a[2], (1, 4, 2, 8))\n"
            "gv = R.nn.attention(b, c, d)",
            patterns.make_stacked_attention_pattern("split"),
        ),
    ],
)
def test_patterns_match(body: str, pattern) -> None:
    params = (
        f"{_IMAGE}, {_QKV.replace('k:', 'k_:')}, g: R.Tensor((4,), 'float32'), "
        's: R.Tensor((1, 4, 48), "float32")'
    )
    assert composites(module(body, params), *pattern) == ["mine.op"]


def test_a_pattern_of_no_such_operator_matches_nothing() -> None:
    mod = module("a = R.add(x, w)\ngv = R.nn.relu(a)")
    assert composites(mod, *patterns.make_matmul_pattern()) == []
    with pytest.raises(NotImplementedError, match='"split" or "strided_slice"'):
        patterns.make_stacked_attention_pattern("concat")


def test_leaking_intermediates_are_seen() -> None:
    def check(context) -> bool:
        return not has_leaking_intermediate_variables(context)

    pattern, parts = patterns.make_matmul_pattern(activation="relax.nn.relu")
    inside = module("a = R.matmul(x, w)\ngv = R.nn.relu(a)")
    assert composites(inside, pattern, parts, check) == ["mine.op"]
    outside = module("a = R.matmul(x, w)\nb = R.nn.relu(a)\ngv = R.add(a, b)")
    assert composites(outside, pattern, parts, check) == []


SORTS = """
a = R.sort(x, axis=-1, descending=True)
b = R.argsort(x, axis=0)
c = R.topk(x, k=2, axis=-1)
d = R.cumsum(w, axis=1)
e = R.cumprod(w, axis=0)
f = R.add(d, e)
gv = (a, b, c[0], f)
"""


def test_sorts_and_scans_are_lowered_alone() -> None:
    mod = module(SORTS)
    given = arguments(mod["main"])
    lowered = relax.backend.DispatchSortScan()(mod)
    text = lowered["main"].script()
    assert "R.add(" in text
    assert not any(f"R.{name}(" in text for name in ("sort", "argsort", "topk", "cumsum"))
    assert relax.backend.DispatchSampling()(mod)["main"].script() == mod["main"].script()
    x, w = given
    expected = [
        -np.sort(-x), np.argsort(x, axis=0), -np.sort(-x)[:, :2],
        np.cumsum(w, axis=1) + np.cumprod(w, axis=0),
    ]  # fmt: skip
    for result, wanted in zip(run(lowered, given), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5)
    with pytest.raises(ValueError, match="index_bits is 32, 64 or None, not 16"):
        relax.backend.DispatchSortScan(16)


@pytest.mark.parametrize("name", ["numpy", "cuda"])
def test_pipelines_of_targets_keep_the_results(name: str) -> None:
    mod = module("a = R.matmul(x, w)\nb = R.reshape(a, (16,))\nc = R.exp(b)\ngv = R.cumsum(c, 0)")
    given = arguments(mod["main"])
    pipeline = pipelines.get_default_pipeline(Target(name))
    executable = relax.build(mod, target="numpy", relax_pipeline=pipeline)
    vm = relax.VirtualMachine(executable, tvm.cpu())
    result = vm["main"](*map(tvm.nd.array, given)).numpy()
    np.testing.assert_allclose(result, np.cumsum(np.exp((given[0] @ given[1]).ravel())), rtol=1e-5)


@pytest.mark.parametrize("target", ["numpy", "wasm"])
def test_numbers_of_extents_are_computed_in_a_pipeline(target: str) -> None:
    mod = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        if R.prim_value(n % 2 == 0):
            y = R.add(x, x)
        else:
            y = R.multiply(x, x)
        z = (y, R.prim_value(n * m), R.prim_value(n - m))
        return z
""")
    pipeline = pipelines.get_default_pipeline(Target(target))
    assert "compute_symbolic_expr" in pipeline(mod).script()
    vm = relax.VirtualMachine(relax.build(mod, target, relax_pipeline=pipeline), tvm.cpu())
    for shape, factor in (((2, 3), 6), ((3, 5), 9)):
        tensor, product, difference = vm["main"](tvm.nd.array(np.full(shape, 3, "float32")))
        np.testing.assert_array_equal(tensor.numpy(), np.full(shape, factor, "float32"))
        assert (product, difference) == (shape[0] * shape[1], shape[0] - shape[1])


def test_a_function_of_numbers_takes_those_of_extents() -> None:
    mod = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(n: T.int64) -> T.int64:
        T.func_attr({"tir.is_host_func": True})
        T.ret(n * 2)

    @R.function
    def main(n: R.Prim("int64")):
        cls = Module
        a = cls.double(n)
        return a
""")
    with pytest.raises(DiagnosticError, match=r"takes 1 number.* that follow from extents"):
        relax.build(mod, "numpy")


def test_a_dispatcher_asks_for_the_target_of_a_value() -> None:
    mod = from_source("""
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice({"kind": "cuda"}, 0)]})

    @R.function
    def main(x: R.Tensor((4,), "float32", "cuda"), y: R.Tensor((4,), "float32")):
        return (x, y)
""")
    placed, plain = mod["main"].params
    dispatcher = BackendDispatcher(mod)
    assert dispatcher.is_gpu_target(dispatcher._get_target(placed.struct_info))
    with pytest.raises(ValueError, match="Target not found"):
        dispatcher._get_target(plain.struct_info)
    with Target("llvm"):
        assert dispatcher._get_target(plain.struct_info).kind.name == "llvm"
    shape, dtype = dispatcher.get_shape_dtype(placed)
    assert (len(shape.values), dtype) == (1, "float32")
