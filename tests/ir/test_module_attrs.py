"""Copies of modules, and attributes as a whole."""

import mlcweb as tvm
from mlcweb.runtime.build import compile
from mlcweb.script import ir as I
from mlcweb.script import tir as T


@I.ir_module
class Two:
    @T.prim_func
    def b(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)

    @T.prim_func
    def a(A: T.Buffer((4,), "float32")):
        A[1] = T.float32(1)


def test_a_clone_is_a_module_of_its_own():
    mod = Two.with_attr("key", 1)
    mod.update_global_info("vdevice", ["cpu"])
    clone = mod.clone()
    clone["c"] = Two["a"]
    assert len(mod.functions) == 2 and clone.attrs == {"key": 1}
    assert clone.global_infos == {"vdevice": ["cpu"]}
    assert [var.name_hint for var, _ in clone.functions_items()] == ["a", "b", "c"]


def test_attributes_are_replaced_as_a_whole():
    func = Two["a"].with_attrs({"tir.noalias": True})
    assert dict(func.attrs) == {"tir.noalias": True}
    assert dict(func.with_attr({"x": 1}).attrs) == {"tir.noalias": True, "x": 1}
    mod = Two.with_attr(attr_key="key", attr_value=1).with_attrs({"other": 2})
    assert mod.attrs == {"other": 2} and mod.get_attr(attr_key="key") is None


def test_a_pipeline_runs_before_the_lowering():
    seen = []

    def pipeline(mod):
        seen.append(sorted(var.name_hint for var in mod.functions))
        return mod

    tvm.build(Two, "numpy", pipeline)
    compile(Two["a"], "numpy", tir_pipeline=pipeline)
    assert seen == [["a", "b"], ["a"]]
    assert tvm.device(dev="cpu", dev_id=1) == tvm.device("cpu:1") == tvm.cpu(dev_id=1)
