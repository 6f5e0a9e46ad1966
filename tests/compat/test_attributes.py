"""Attributes of objects that TVM's users read."""

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb import relax
from mlcweb.ir.transform import PassContext, Sequential
from mlcweb.runtime.nd import array
from tests.programs import matmul


def test_of_passes():
    legalize = relax.transform.LegalizeOps()
    assert legalize.pass_info.name == legalize.info.name == "LegalizeOps"
    assert Sequential([legalize]).pass_info.opt_level == 0
    configs = PassContext.list_configs()
    assert configs["tir.disable_vectorize"] == {"type": "bool"}


def test_of_arrays_devices_and_modules():
    x = array([[1, 2, 3], [4, 5, 6]])
    assert x.strides == (3, 1) and x.is_contiguous()
    assert tvm.cpu().warp_size is None and tvm.cpu().max_threads_per_block is None
    module = tvm.build(matmul(), "numpy")
    assert module.kind == module.type_key


def test_of_loops_and_databases():
    func = matmul()["main"]
    assert func.body.block.body.step is None
    database = ms.database.MemoryDatabase()
    workload = database.commit_workload(tvm.IRModule({"main": func}))
    assert database.workloads == [workload] and database.records == []
