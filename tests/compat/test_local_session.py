"""The session of TVM's tutorial on remote machines, on this one."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.compat.local_session import LocalSession


@pytest.fixture
def library(tmp_path):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    path = tmp_path / "lib.tar"
    func = te.create_prim_func([A, B]).with_attr("global_symbol", "add_one")
    tvm.build(tvm.IRModule({"add_one": func}), target="llvm").export_library(str(path))
    return str(path)


def test_a_library_is_uploaded_loaded_and_run(library):
    remote = LocalSession()
    remote.upload(library)
    assert remote.listdir("") == "lib.tar"
    dev = remote.cpu()
    assert dev == remote.device("cpu") == tvm.cpu()
    assert remote.cl(1) == tvm.opencl(1)
    a = tvm.nd.array(np.arange(8, dtype="float32"), dev)
    b = tvm.nd.array(np.zeros(8, "float32"), dev)
    func = remote.load_module("lib.tar")
    func["add_one"](a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(1, 9, dtype="float32"))
    assert func.time_evaluator("add_one", dev, number=1)(a, b).mean > 0


def test_files_go_to_the_session_and_back(tmp_path):
    remote = LocalSession()
    remote.upload(b"weights", "w.bin")
    assert remote.download("w.bin") == b"weights"
    remote.remove("w.bin")
    assert remote.listdir("") == ""
    with pytest.raises(ValueError, match="target"):
        remote.upload(b"weights")
    with pytest.raises(ValueError, match="outside"):
        remote.upload(b"weights", "../w.bin")
    with pytest.raises(AttributeError, match="no fpga"):
        remote.fpga()
    tvm.register_func("test.answer", lambda: 42, override=True)
    assert remote.get_function("test.answer")() == 42
