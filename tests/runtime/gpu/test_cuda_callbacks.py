"""Functions of a program's own that change CUDA source, and compile it for a GPU."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.runtime.cuda_callbacks import COMPILE, POSTPROC
from mlcweb.runtime.host import cuda_device
from mlcweb.runtime.registry import remove_global_func
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from tests.runtime.gpu.test_kinds import MemoryOfThisMachine

ONES = from_source("""
@T.prim_func
def main(A: T.Buffer((32,), "float32")):
    for i in T.thread_binding(32, thread="threadIdx.x"):
        A[i] = T.float32(1)
""")


@pytest.fixture
def register():
    names = []

    def add(name, function):
        names.append(name)
        tvm.register_func(name, function, override=True)

    yield add
    for name in names:
        remove_global_func(name)


def source(target="cuda"):
    return tvm.build(ONES, target=f"{target} -device=simulated").imported_modules[0].get_source()


def test_the_source_is_what_the_function_returns(register):
    plain, calls = source(), []

    def postproc(code, target):
        calls.append((code, target))
        return "// mine\n" + code

    register(POSTPROC, postproc)
    assert source() == "// mine\n" + plain
    ((code, target),) = calls
    assert code == plain
    assert isinstance(target, Target)
    assert target.kind.name == "cuda"
    # Other languages are not CUDA.
    assert "mine" not in source("opencl")


def test_a_function_may_take_the_source_alone(register):
    register(POSTPROC, lambda code: code.upper())
    assert source().isupper()


def test_a_function_that_returns_no_text_is_named(register):
    register(POSTPROC, lambda code, target: None)
    with pytest.raises(TypeError, match='"tvm_callback_cuda_postproc" gave NoneType'):
        source()


def test_without_a_gpu_nothing_is_compiled(register):
    def compiler(code, target):
        raise AssertionError("compiled")

    register(COMPILE, compiler)
    ones = tvm.nd.array(np.zeros(32, "float32"), tvm.cuda())
    tvm.build(ONES, target="cuda -device=simulated")["main"](ones)
    np.testing.assert_array_equal(ones.numpy(), np.ones(32))


class Loads(MemoryOfThisMachine):
    """Such a driver which notes what code is loaded."""

    def __init__(self):
        super().__init__()
        self.loaded = []

    def cuModuleLoadData(self, code):
        self.loaded.append(code)
        return 0, "module"


@pytest.mark.parametrize("code", ["ptx", b"ptx", bytearray(b"ptx")])
def test_a_gpu_loads_what_the_functions_made(register, code):
    driver = Loads()
    device = cuda_device.CudaDevice(driver)
    calls = []

    def compiler(text, target):
        calls.append((text, target.arch))
        return code

    register(POSTPROC, lambda text: text + "// mine")
    register(COMPILE, compiler)
    device.create_pipeline("kernel ", "main_kernel")
    assert calls == [("kernel // mine", "sm_90")]
    assert driver.loaded == [b"ptx\0"]
    register(COMPILE, lambda text: 3)
    with pytest.raises(TypeError, match='"tvm_callback_cuda_compile" gave int'):
        device.create_pipeline("kernel ", "main_kernel")
