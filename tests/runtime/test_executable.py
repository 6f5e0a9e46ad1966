"""`tvm.runtime.Executable` around modules, and as the class of what compiling gives."""

import numpy as np

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.runtime import build, empty, nd
from mlcweb.runtime.build import compile
from mlcweb.runtime.executable import Executable
from mlcweb.runtime.library import load_module
from mlcweb.script import from_source

DOUBLE = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * T.float32(2)
""")


def model() -> IRModule:
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    return builder.get()


def test_a_module_in_the_form_of_an_executable(tmp_path):
    module = build(DOUBLE, "wasm")
    executable = Executable(module)
    assert executable.mod is executable.jit() is executable.jit(force_recompile=True) is module
    executable.export_library(tmp_path / "lib.so", workspace_dir=tmp_path)
    for run in (executable, executable["main"], load_module(tmp_path / "lib.so")["main"]):
        result = empty((4,))
        run(nd.array(np.arange(4, dtype="float32")), result)
        assert result.numpy().tolist() == [0, 2, 4, 6]


def test_what_compiling_gives_is_one():
    assert isinstance(compile(DOUBLE, "wasm"), Executable)
    assert isinstance(compile(model(), "wasm"), Executable)
    assert not isinstance(DOUBLE, Executable)
