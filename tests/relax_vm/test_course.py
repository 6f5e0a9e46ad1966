"""The models of chapters 3 and 4, built and run as there."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from tests.relax_vm.programs import (
    MyModule,
    MyModuleMixture,
    MyModuleWithExternCall,
    image,
    numpy_mlp,
    on_device,
    vm_of,
    weights,
)

PARAMS = weights()
DATA = image()
EXPECTED = numpy_mlp(DATA, **PARAMS)


@pytest.fixture
def environment():
    """The course's library functions, through DLPack and without a copy."""

    @tvm.register_func("env.linear", override=True)
    def linear(x: tvm.nd.NDArray, w: tvm.nd.NDArray, b: tvm.nd.NDArray, out: tvm.nd.NDArray):
        x_np, w_np, b_np, out_np = (np.from_dlpack(array) for array in (x, w, b, out))
        np.matmul(x_np, w_np.T, out=out_np)
        np.add(out_np, b_np, out=out_np)

    @tvm.register_func("env.relu", override=True)
    def relu(x: tvm.nd.NDArray, out: tvm.nd.NDArray):
        np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))

    yield
    tvm.runtime.remove_global_func("env.linear")
    tvm.runtime.remove_global_func("env.relu")


def close(result, expected=EXPECTED):
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("module", [MyModule, MyModuleWithExternCall, MyModuleMixture])
@pytest.mark.parametrize("target", ["wasm", "numpy"])
def test_models_of_chapter_3(environment, module, target):
    vm = vm_of(module, target)
    params = on_device(PARAMS)
    for _ in range(2):
        result = vm["main"](tvm.nd.array(DATA), *params.values())
        assert isinstance(result, tvm.nd.NDArray)
        close(result)
        assert np.argmax(result.numpy(), axis=1) == np.argmax(EXPECTED, axis=1)


def test_symbolic_model_at_several_sizes():
    vm = vm_of(MyModule)
    for sizes in [(784, 128, 10), (5, 3, 2), (784, 128, 10), (1, 1, 1)]:
        params, data = weights(3, *sizes), image(4, sizes[0])
        result = vm["main"](tvm.nd.array(data), *on_device(params).values())
        close(result, numpy_mlp(data, **params))


def test_parameters_bound_as_constants(environment):
    for params in (on_device(PARAMS), PARAMS):
        bound = relax.transform.BindParams("main", params)(MyModuleMixture)
        close(vm_of(bound)["main"](tvm.nd.array(DATA)))
    by_build = relax.build(MyModuleMixture, "llvm", params=PARAMS)
    close(relax.VirtualMachine(by_build, tvm.cpu())["main"](tvm.nd.array(DATA)))


def test_an_error_beside_constants_shows_the_binding(environment):
    bound = relax.transform.BindParams("main", PARAMS)(MyModuleMixture)
    vm = vm_of(bound)

    @tvm.register_func("env.linear", override=True)
    def linear(*arguments):
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError) as raised:
        vm["main"](tvm.nd.array(DATA))
    assert raised.value.__notes__[0].startswith('In the function "main": out')


def test_chapter_4_replaces_a_function_and_times_both(environment):
    data = tvm.nd.array(DATA)
    mod = tvm.IRModule(MyModuleMixture.functions)
    mod["main"] = mod["main"].bind_params(on_device(PARAMS))
    single = tvm.IRModule.from_expr(MyModuleMixture["linear0"].with_attr("global_symbol", "main"))
    sch = tvm.tir.Schedule(single)
    i, j, k = sch.get_loops(sch.get_block("Y"))
    outer, inner = sch.split(j, [None, 16])
    sch.reorder(outer, k, inner)
    new_func = sch.mod["main"].with_attr("global_symbol", "linear0")
    before = mod["linear0"]
    mod.update_func(mod.get_global_var("linear0"), new_func)
    assert mod["linear0"] is not before
    vm = vm_of(mod)
    close(vm["main"](data))
    timed = vm.module.time_evaluator("main", tvm.cpu(), number=2, repeat=3)(data)
    assert len(timed.results) == 3
    assert min(timed.results) > 0


def test_builds_by_every_name(environment):
    for build in (relax.build, relax.vm.build, relax.vm_build.build):
        executable = build(MyModule, target="llvm")
        assert isinstance(executable, relax.Executable)
        assert isinstance(executable, relax.VMExecutable)
    compile(executable.as_python(), "<executable>", "exec")
    close(executable["main"](tvm.nd.array(DATA), *on_device(PARAMS).values()))


def test_dynamic_by_hand_and_by_call_tir_are_the_same():
    bb = relax.BlockBuilder(MyModule)
    linear, relu = (MyModule.get_global_var(name) for name in ("linear0", "relu0"))
    info = relax.TensorStructInfo
    shapes = {"x": (1, 784), "w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
    x, w0, b0, w1, b1 = params = [relax.Var(n, info(s, "float32")) for n, s in shapes.items()]
    with bb.function("static", params):
        with bb.dataflow():
            a = bb.emit(relax.call_tir(linear, (x, w0, b0), info((1, 128), "float32")))
            b = bb.emit(relax.call_tir(relu, (a,), (1, 128), dtype="float32"))
            c = bb.emit_output(relax.call_tir(linear, (b, w1, b1), info((1, 10), "float32")))
        bb.emit_func_output(c)
    vm = vm_of(bb.get())
    arguments = [tvm.nd.array(DATA), *on_device(PARAMS).values()]
    np.testing.assert_array_equal(vm["static"](*arguments).numpy(), vm["main"](*arguments).numpy())
