"""What `print(type(x))` shows under `import tvm`."""

from __future__ import annotations

import pickle

import pytest

import mlcweb
from mlcweb import compat, relax, te
from mlcweb.compat.node_json import from_table, to_table
from mlcweb.ir import structural
from mlcweb.script import from_source
from mlcweb.tir import PrimFunc

MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((8,), "float32")):
        with R.dataflow():
            y = R.call_tir(Module.f, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(y)
        return y
"""


@pytest.fixture
def tvm():
    compat.install(force=True)
    yield
    compat.uninstall()


def things() -> dict[str, object]:
    """Values, by the names that TVM gives to their classes."""
    mod = from_source(MODULE)
    func, main = mod["f"], mod["main"]
    inner = func.body.block.body.body.block
    binding = main.body.blocks[0].bindings[0]
    sch = mlcweb.tir.Schedule(mod)
    block = sch.get_block("B", "f")
    tensor = te.compute((8,), lambda i: te.placeholder((8,), "float32", "A")[i])
    return {
        "tvm.ir.module.IRModule": mod,
        "tvm.tir.function.PrimFunc": func,
        "tvm.tir.stmt.BlockRealize": func.body,
        "tvm.tir.stmt.For": func.body.block.body,
        "tvm.tir.expr.Var": func.params[0],
        "tvm.tir.buffer.Buffer": func.buffer_map[func.params[0]],
        "tvm.relax.expr.Function": main,
        "tvm.relax.expr.DataflowBlock": main.body.blocks[0],
        "tvm.relax.expr.VarBinding": binding,
        "tvm.relax.expr.Call": binding.value,
        "tvm.relax.struct_info.TensorStructInfo": binding.var.struct_info,
        "tvm.ir.expr.GlobalVar": mod.get_global_var("f"),
        "tvm.ir.expr.Range": inner.iter_vars[0].dom,
        "tvm.tir.expr.IterVar": inner.iter_vars[0],
        "tvm.te.tensor.Tensor": tensor,
        "tvm.te.tensor.ComputeOp": tensor.op,
        "tvm.tir.schedule.schedule.Schedule": sch,
        "tvm.tir.schedule.schedule.BlockRV": block,
        "tvm.tir.schedule.schedule.LoopRV": sch.get_loops(block)[0],
        "tvm.tir.schedule.trace.Trace": sch.trace,
        "tvm.relax.block_builder.BlockBuilder": relax.BlockBuilder(),
        "tvm.target.target.Target": mlcweb.target.Target("llvm"),
    }


@pytest.mark.usefixtures("tvm")
def test_classes_have_the_names_of_tvm() -> None:
    assert [str(type(value)) for value in things().values()] == [
        f"<class '{name}'>" for name in things()
    ]


@pytest.mark.usefixtures("tvm")
def test_classes_of_programs_keep_their_names() -> None:
    class Own(relax.BlockBuilder):
        pass

    assert str(Own).endswith("test_classes_of_programs_keep_their_names.<locals>.Own'>")
    assert "tvm." not in str(Own)


@pytest.mark.usefixtures("tvm")
def test_values_are_still_pickled_by_where_their_classes_are() -> None:
    written = pickle.dumps(from_source(MODULE)["f"])
    assert b"mlcweb.tir.function" in written
    assert b"tvm.tir" not in written


def test_what_is_pickled_under_the_alias_is_read_without_it() -> None:
    func = from_source(MODULE)["f"]
    compat.install(force=True)
    written = pickle.dumps((func, func.params[0], func.buffer_map))
    saved = to_table(func)
    compat.uninstall()
    again, parameter, buffers = pickle.loads(written)
    structural.assert_structural_equal(again, func)
    assert again.params[0] is parameter
    assert again.buffer_map[parameter] is buffers[parameter]
    structural.assert_structural_equal(from_table(saved), func)


def test_without_the_alias_classes_have_their_own_names() -> None:
    assert str(PrimFunc) == "<class 'mlcweb.tir.function.PrimFunc'>"
