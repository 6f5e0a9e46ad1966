"""External compilers written in Python: what they are given, and models that call their code."""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.ir.errors import TVMError
from mlcweb.ir.transform import Sequential
from mlcweb.relax.dpl import is_op, wildcard
from mlcweb.runtime.build import build
from mlcweb.runtime.device import cpu
from mlcweb.runtime.nd import array
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

WEIGHTS = np.arange(4, dtype="float32")


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.multiply(x, w)
            b = R.nn.relu(a)
            c = R.add(b, b)
            R.output(c)
        return c


PATTERNS = [
    ("halves.relu", is_op("relax.nn.relu")(wildcard())),
    ("halves.multiply", is_op("relax.multiply")(wildcard(), wildcard())),
]


@pytest.fixture
def calls():
    """What the compiler `halves` was called with. It compiles everything to x * w / 2."""
    found = []

    def compiler(functions, options, constants):
        found.append((functions, options, constants))

        @T.prim_func
        def half(
            A: T.Buffer((4,), "float32"), W: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")
        ):
            for i in range(4):
                B[i] = A[i] * W[i] * T.float32(0.5)

        names = [func.attrs["global_symbol"] for func in functions]
        return [build(IRModule({name: half.with_attr("global_symbol", name) for name in names}))]

    register_func("relax.ext.halves", compiler)
    yield found
    remove_global_func("relax.ext.halves")


def partitioned(mod, **options):
    passes = [
        relax.transform.FuseOpsByPattern(PATTERNS, bind_constants=True),
        relax.transform.MergeCompositeFunctions(),
        relax.transform.RunCodegen(**options),
    ]
    return Sequential(passes)(mod)


def test_models_call_what_external_compilers_give(calls):
    new = partitioned(Model, target_options={"halves": {"fast": True}})
    ((functions, options, constants),) = calls
    assert [func.attrs["Codegen"] for func in functions] == ["halves"]
    assert options == {"fast": True}
    assert constants == {}
    assert len(new.attrs["external_mods"]) == 1
    assert [var.name_hint for var in new.functions] == ["main"]
    vm = relax.VirtualMachine(relax.build(new, "numpy"), cpu())
    x = np.array([-2, 2, 4, 6], "float32")
    result = vm["main"](array(x), array(WEIGHTS)).numpy()
    np.testing.assert_allclose(result, x * WEIGHTS)  # half of it twice, and no relu


def test_constants_are_given_by_name(calls):
    bound = relax.transform.BindParams("main", {"w": WEIGHTS})(Model)
    new = partitioned(bound)
    ((functions, _, constants),) = calls
    symbol = functions[0].attrs["global_symbol"]
    assert list(constants.values()) == [f"{symbol}_halves_const_0"]
    (value,) = new.attrs["const_name_to_constant"].values()
    np.testing.assert_array_equal(np.asarray(value), WEIGHTS)


def test_a_compiler_that_is_not_registered_is_named():
    with pytest.raises(TVMError, match=r"Codegen is not found: relax\.ext\.halves"):
        partitioned(Model)


def test_composite_functions_say_their_compiler():
    named = [("relu", PATTERNS[0][1])]
    fused = relax.transform.FuseOpsByPattern(named)(Model)
    with pytest.raises(TVMError, match=r"compiler\.pattern"):
        relax.transform.MergeCompositeFunctions()(fused)


def test_a_model_with_code_of_other_compilers_is_not_saved(calls, tmp_path):
    executable = relax.build(partitioned(Model), "numpy")
    with pytest.raises(TVMError, match="external compilers"):
        executable.export_library(tmp_path / "model.so")


@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * T.float32(2)


class Doubles:
    """A module from elsewhere."""

    def load(self):
        return build(IRModule({"double": double.with_attr("global_symbol", "double")}))


@I.ir_module
class CallsDouble:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.call_dps_packed("double", (x,), R.Tensor((4,), "float32"))
        return R.add(x, y)


def test_compiled_functions_from_elsewhere_are_linked() -> None:
    mod = relax.transform.AttachExternModules([Doubles()])(CallsDouble)
    result = relax.VirtualMachine(relax.build(mod), cpu())["main"](array(WEIGHTS))
    np.testing.assert_array_equal(result.numpy(), 3 * WEIGHTS)
    twice = relax.transform.AttachExternModules([Doubles()])(mod)
    assert len(twice.attrs["external_mods"]) == 2


def test_without_modules_from_elsewhere_a_model_can_be_saved(tmp_path) -> None:
    mod = relax.transform.AttachExternModules([])(Model)
    relax.build(mod).export_library(tmp_path / "model.so")
    with pytest.raises(TypeError, match="have a method load"):
        relax.transform.AttachExternModules([double])
