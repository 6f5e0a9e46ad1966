"""The graph-level listings of the MLC course: chapters 3, 5 and 7, as far as nothing is run."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.script import ir as I
from mlcweb.script import parse
from mlcweb.script import relax as R
from tests.relax_vm.programs import MyModule


def reads_back(module):
    """Whether what a module prints is the same module, and prints alike."""
    text = module.script(show_meta=True)
    again = parse(text)
    assert_structural_equal(again, module)
    return again.script(show_meta=True) == text


def test_chapter_3_module():
    assert MyModule["main"].script() == (
        "# from tvm.script import tir as T\n"
        "# from tvm.script import relax as R\n"
        "\n"
        "@R.function\n"
        'def main(x: R.Tensor((1, "m"), dtype="float32"), '
        'w0: R.Tensor(("n", "m"), dtype="float32"), b0: R.Tensor(("n",), dtype="float32"), '
        'w1: R.Tensor(("k", "n"), dtype="float32"), b1: R.Tensor(("k",), dtype="float32")) '
        '-> R.Tensor((1, "k"), dtype="float32"):\n'
        "    k = T.int64()\n"
        "    m = T.int64()\n"
        "    n = T.int64()\n"
        "    with R.dataflow():\n"
        '        lv0 = R.call_dps_packed("linear0", (x, w0, b0), '
        'out_sinfo=R.Tensor((1, n), dtype="float32"))\n'
        '        lv1 = R.call_dps_packed("relu0", (lv0,), '
        'out_sinfo=R.Tensor((1, n), dtype="float32"))\n'
        '        out = R.call_dps_packed("linear0", (lv1, w1, b1), '
        'out_sinfo=R.Tensor((1, k), dtype="float32"))\n'
        "        R.output(out)\n"
        "    return out"
    )
    assert reads_back(MyModule)


def test_chapter_3_module_in_two_dataflow_blocks():
    module = parse(
        """
@R.function
def main(x: R.Tensor((1, "m"), "float32"), w0: R.Tensor(("n", "m"), "float32"),
         b0: R.Tensor(("n", ), "float32"), w1: R.Tensor(("k", "n"), "float32"),
         b1: R.Tensor(("k", ), "float32")):
    m, n, k = T.int64(), T.int64(), T.int64()

    with R.dataflow():
        lv0 = R.call_dps_packed("linear0", (x, w0, b0), R.Tensor((1, n), "float32"))
        gv0 = R.call_dps_packed("relu0", (lv0, ), R.Tensor((1, n), "float32"))
        R.output(gv0)

    with R.dataflow():
        out = R.call_dps_packed("linear0", (gv0, w1, b1), R.Tensor((1, k), "float32"))
        R.output(out)
    return out
"""
    )
    [block] = module.body.blocks  # neighbours become one block, as in TVM
    assert isinstance(block, relax.DataflowBlock)
    assert [type(b.var).__name__ for b in block.bindings] == ["DataflowVar", "Var", "Var"]
    assert "R.output(gv0, out)" in module.script()
    assert reads_back(module)


def test_chapter_3_old_form_with_bare_names():
    """`R.call_tir(linear0, …, shape, dtype=…)`, `Tensor` without `R`, and `relax.output`."""
    text = """
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def linear0(X: T.Buffer((1, 784), "float32"), W: T.Buffer((128, 784), "float32"),
                B: T.Buffer((128,), "float32"), Z: T.Buffer((1, 128), "float32")):
        for j in range(128):
            with T.block("Z"):
                vj = T.axis.spatial(128, j)
                Z[0, vj] = X[0, 0] * W[vj, 0] + B[vj]

    @R.function
    def main(x: Tensor((1, 784), "float32"), w0: Tensor((128, 784), "float32"),
             b0: Tensor((128,), "float32")):
        with R.dataflow():
            lv0 = R.call_tir(linear0, (x, w0, b0), (1, 128), dtype="float32")
            out = R.call_tir("linear0", (x, w0, b0), (1, 128), dtype="float32")
            relax.output(out)
        return out
"""
    module = parse(text, {"tvm": tvm, "Tensor": R.Tensor, "relax": relax})
    by_name, by_string = module["main"].body.blocks[0].bindings
    assert by_name.value.args[0] == by_string.value.args[0] == module.get_global_var("linear0")
    assert by_name.var.struct_info == relax.TensorStructInfo((1, 128), "float32")
    assert "lv0 = R.call_tir(cls.linear0, (x, w0, b0), out_sinfo=" in module.script()
    assert reads_back(module)


def test_chapter_3_bound_parameters():
    """What `BindParams` does to each function, and how large constants are printed."""
    rng = np.random.default_rng(0)
    params = {
        "w0": tvm.nd.array(rng.normal(size=(128, 784)).astype("float32")),
        "b0": tvm.nd.array(rng.normal(size=(128,)).astype("float32")),
        "w1": tvm.nd.array(rng.normal(size=(10, 128)).astype("float32")),
        "b1": tvm.nd.array(rng.normal(size=(10,)).astype("float32")),
    }
    bound = MyModule["main"].bind_params(params)
    assert [p.name_hint for p in bound.params] == ["x"]
    assert bound.params[0].struct_info == relax.TensorStructInfo((1, 784), "float32")
    assert bound.ret_struct_info == relax.TensorStructInfo((1, 10), "float32")
    text = bound.script()
    assert (
        'lv0 = R.call_dps_packed("linear0", (x, metadata["relax.expr.Constant"][0], '
        'metadata["relax.expr.Constant"][1]), out_sinfo=R.Tensor((1, 128), dtype="float32"))'
    ) in text
    assert text.endswith("# Metadata omitted. Use show_meta=True in script() method to show it.")
    assert bound.body.blocks[0].bindings[0].value.args[1][1].data is params["w0"]
    assert reads_back(bound)


def te_matmul(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    assert A.shape[1] == B.shape[0] or A.shape[1].value == B.shape[0].value
    n = A.shape[0]
    m = B.shape[1]
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")


def te_relu(A: te.Tensor) -> te.Tensor:
    return te.compute(A.shape, lambda *i: te.max(A(*i), 0), name="relu")


CHAPTER_5 = """
@tvm.script.ir_module
class Module:
    @R.function
    def main(A: R.Tensor((128, 128), "float32"), B: R.Tensor((128, 128), "float32")):
        with R.dataflow():
            lv = R.call_tir(te_matmul, (A, B), (128, 128), dtype="float32")
            lv1 = R.call_tir(te_relu, (lv,), (128, 128), dtype="float32")
            gv: R.Tensor((128, 128), "float32") = lv1
            R.output(gv)
        return gv

    @T.prim_func(private=True)
    def te_matmul(A: T.Buffer((T.int64(128), T.int64(128)), "float32"),
                  B: T.Buffer((T.int64(128), T.int64(128)), "float32"),
                  matmul: T.Buffer((T.int64(128), T.int64(128)), "float32")):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(T.int64(128), T.int64(128), T.int64(128)):
            with T.block("matmul"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                T.reads(A[v_i, v_k], B[v_k, v_j])
                T.writes(matmul[v_i, v_j])
                with T.init():
                    matmul[v_i, v_j] = T.float32(0)
                matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

    @T.prim_func(private=True)
    def te_relu(lv: T.Buffer((T.int64(128), T.int64(128)), "float32"),
                relu: T.Buffer((T.int64(128), T.int64(128)), "float32")):
        T.func_attr({"tir.noalias": True})
        for i0, i1 in T.grid(T.int64(128), T.int64(128)):
            with T.block("relu"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(lv[v_i0, v_i1])
                T.writes(relu[v_i0, v_i1])
                relu[v_i0, v_i1] = T.max(lv[v_i0, v_i1], T.float32(0))
"""


@pytest.mark.parametrize("when", ["at the end", "at the beginning", "inside the dataflow block"])
def test_chapter_5_block_builder(when):
    A = relax.Var("A", relax.TensorStructInfo((128, 128), "float32"))
    B = relax.Var("B", relax.TensorStructInfo((128, 128), "float32"))
    bb = relax.BlockBuilder()
    early = when == "at the beginning"
    with bb.function("main", params=[A, B] if early else None):
        with bb.dataflow():
            C = bb.emit_te(te_matmul, A, B)
            D = bb.emit_te(te_relu, C)
            result = bb.emit_output(D)
            assert type(C) is relax.DataflowVar
            assert isinstance(C, relax.Var)
            if when == "inside the dataflow block":
                bb.emit_func_output(D, [A, B])
        if when == "at the end":
            bb.emit_func_output(result, params=[A, B])
        if early:
            bb.emit_func_output(result)
    module = bb.get()
    assert_structural_equal(module, parse(CHAPTER_5))
    assert relax.analysis.well_formed(module)
    assert reads_back(module)


@I.ir_module
class MultiplyAdd:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            lv0 = relax.op.multiply(x, y)
            gv0 = relax.op.add(lv0, y)
            R.output(gv0)
        return gv0


def test_chapter_7_the_parts_of_a_function():
    relax_func = MultiplyAdd["main"]
    assert type(relax_func) is relax.expr.Function
    assert [str(param) for param in relax_func.params] == ["x", "y"]
    assert type(relax_func.body) is relax.expr.SeqExpr
    dataflow_block = relax_func.body.blocks[0]
    assert str(dataflow_block) == (
        'x: R.Tensor((3, 4), dtype="float32")\n'
        'y: R.Tensor((3, 4), dtype="float32")\n'
        "with R.dataflow():\n"
        '    lv0: R.Tensor((3, 4), dtype="float32") = R.multiply(x, y)\n'
        '    gv0: R.Tensor((3, 4), dtype="float32") = R.add(lv0, y)\n'
        "    R.output(gv0)"
    )
    binding = dataflow_block.bindings[0]
    assert str(dataflow_block.bindings[1]) == (
        'lv0: R.Tensor((3, 4), dtype="float32")\n'
        'y: R.Tensor((3, 4), dtype="float32")\n'
        'gv0: R.Tensor((3, 4), dtype="float32") = R.add(lv0, y)'
    )
    assert repr(binding.var) == "lv0"
    assert repr(binding.value) == "R.multiply(x, y)"


@relax.expr_functor.mutator
class EwiseFMARewriter(relax.PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        add_op = tvm.ir.Op.get("relax.add")
        multiply_op = tvm.ir.Op.get("relax.multiply")
        ewise_fma_op = tvm.ir.Op.get("relax.ewise_fma")

        if call.op != add_op:
            return call

        value = self.lookup_binding(call.args[0])
        if not isinstance(value, relax.Call) or value.op != multiply_op:
            return call

        fma_call = relax.Call(
            ewise_fma_op, [value.args[0], value.args[1], call.args[1]], None, None
        )
        return fma_call


def test_chapter_7_rewrites_multiply_and_add():
    updated = EwiseFMARewriter().visit_expr(MultiplyAdd["main"])
    values = [str(b.value) for b in updated.body.blocks[0].bindings]
    assert values == ["R.multiply(x, y)", "R.ewise_fma(x, y, y)"]
    pruned = relax.analysis.remove_all_unused(updated)
    assert [str(b.var) for b in pruned.body.blocks[0].bindings] == ["gv0"]
    assert pruned.struct_info == MultiplyAdd["main"].struct_info


@relax.expr_functor.mutator
class MatmulAddFusor(relax.PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.mod_ = mod
        # cache pre-defined ops
        self.add_op = tvm.ir.Op.get("relax.add")
        self.matmul_op = tvm.ir.Op.get("relax.matmul")
        self.counter = 0

    def transform(self) -> IRModule:
        for global_var, func in self.mod_.functions.items():
            if not isinstance(func, relax.Function):
                continue
            # avoid already fused primitive functions
            if (
                func.attrs is not None
                and "Primitive" in func.attrs.keys()  # noqa: SIM118
                and func.attrs["Primitive"] != 0
            ):
                continue
            updated_func = self.visit_expr(func)
            updated_func = relax.analysis.remove_all_unused(updated_func)
            self.builder_.update_func(global_var, updated_func)

        return self.builder_.get()

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)

        def match_call(node, op):
            if not isinstance(node, relax.Call):
                return False
            return node.op == op

        # pattern match matmul => add
        if not match_call(call, self.add_op):
            return call
        value = self.lookup_binding(call.args[0])
        if value is None:
            return call
        if not match_call(value, self.matmul_op):
            return call

        x = value.args[0]
        w = value.args[1]
        b = call.args[1]

        # construct a new fused primitive function
        param_x = relax.Var("x", relax.TensorStructInfo(x.struct_info.shape, x.struct_info.dtype))
        param_w = relax.Var("w", relax.TensorStructInfo(w.struct_info.shape, w.struct_info.dtype))
        param_b = relax.Var("b", relax.TensorStructInfo(b.struct_info.shape, b.struct_info.dtype))

        bb = relax.BlockBuilder()

        fn_name = "fused_matmul_add%d" % (self.counter)  # noqa: UP031
        self.counter += 1
        with bb.function(fn_name, [param_x, param_w, param_b]):
            with bb.dataflow():
                lv0 = bb.emit(relax.op.matmul(param_x, param_w))
                gv = bb.emit_output(relax.op.add(lv0, param_b))
            bb.emit_func_output(gv)

        # Add Primitive attribute to the fused functions
        fused_fn = bb.get()[fn_name].with_attr("Primitive", 1)
        global_var = self.builder_.add_func(fused_fn, fn_name)

        # construct call into the fused function
        return relax.Call(global_var, [x, w, b], None, None)


def create_model():
    rng = np.random.default_rng(1)
    shapes = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
    mlp_params = {k: rng.normal(size=s).astype("float32") for k, s in shapes.items()}
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 784), "float32"))
    w0 = relax.const(mlp_params["w0"], "float32")
    b0 = relax.const(mlp_params["b0"], "float32")
    w1 = relax.const(mlp_params["w1"], "float32")
    b1 = relax.const(mlp_params["b1"], "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            lv0 = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w0)))
            lv1 = bb.emit(relax.op.add(lv0, b0))
            lv2 = bb.emit(relax.op.nn.relu(lv1))
            lv3 = bb.emit(relax.op.matmul(lv2, relax.op.permute_dims(w1)))
            lv4 = bb.emit(relax.op.add(lv3, b1))
            gv = bb.emit_output(lv4)
        bb.emit_func_output(gv)
    return bb.get()


MODEL_BODY = """\
    with R.dataflow():
        lv: R.Tensor((784, 128), dtype="float32") = R.permute_dims({0}, axes=None)
        lv1: R.Tensor((1, 128), dtype="float32") = R.matmul(x, lv, out_dtype="void")
        lv2: R.Tensor((1, 128), dtype="float32") = R.add(lv1, {1})
        lv3: R.Tensor((1, 128), dtype="float32") = R.nn.relu(lv2)
        lv4: R.Tensor((128, 10), dtype="float32") = R.permute_dims({2}, axes=None)
        lv5: R.Tensor((1, 10), dtype="float32") = R.matmul(lv3, lv4, out_dtype="void")
        lv6: R.Tensor((1, 10), dtype="float32") = R.add(lv5, {3})
        gv: R.Tensor((1, 10), dtype="float32") = lv6
        R.output(gv)
    return gv"""


def test_chapter_7_model_from_operators():
    model = create_model()
    constants = [f'metadata["relax.expr.Constant"][{i}]' for i in range(4)]
    assert MODEL_BODY.format(*constants) in model["main"].script()
    assert reads_back(model)


def test_chapter_7_fuses_matmul_and_add():
    fused = MatmulAddFusor(create_model()).transform()
    assert {v.name_hint for v in fused.functions} == {
        "main",
        "fused_matmul_add0",
        "fused_matmul_add1",
    }
    assert str(fused["fused_matmul_add1"]) == (
        "# from tvm.script import relax as R\n"
        "\n"
        "@R.function\n"
        'def fused_matmul_add1(x: R.Tensor((1, 128), dtype="float32"), '
        'w: R.Tensor((128, 10), dtype="float32"), b: R.Tensor((10,), dtype="float32")) '
        '-> R.Tensor((1, 10), dtype="float32"):\n'
        '    R.func_attr({"Primitive": 1})\n'
        "    with R.dataflow():\n"
        '        lv: R.Tensor((1, 10), dtype="float32") = R.matmul(x, w, out_dtype="void")\n'
        '        gv: R.Tensor((1, 10), dtype="float32") = R.add(lv, b)\n'
        "        R.output(gv)\n"
        "    return gv"
    )
    values = [str(b.value) for b in fused["main"].body.blocks[0].bindings]
    assert [value.split("(")[0] for value in values] == [
        "R.permute_dims",
        "fused_matmul_add0",
        "R.nn.relu",
        "R.permute_dims",
        "fused_matmul_add1",
        "lv6",
    ]
    assert relax.analysis.well_formed(fused)
    assert reads_back(fused)


@relax.expr_functor.mutator
class LowerToTensorIR(relax.PyExprMutator):
    def __init__(self, mod: IRModule, op_map) -> None:
        super().__init__()
        self.mod_ = mod
        self.op_map = {tvm.ir.Op.get(k): v for k, v in op_map.items()}

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)

        if call.op in self.op_map:
            return self.op_map[call.op](self.builder_, call)
        return call

    def transform(self) -> IRModule:
        for global_var, func in self.mod_.functions.items():
            if not isinstance(func, relax.Function):
                continue
            updated_func = self.visit_expr(func)
            self.builder_.update_func(global_var, updated_func)

        return self.builder_.get()


def add(a, b):
    return te.compute(a.shape, lambda i, j: a[i, j] + b[j], name="T_add")


def transpose(a):
    return te.compute(a.shape[::-1], lambda i, j: a[j, i], name="T_transpose")


def relu(a):
    return te.compute(a.shape, lambda *i: te.max(a(*i), te.const(0, a.dtype)), name="compute")


OP_MAP = {
    "relax.matmul": lambda bb, call: bb.call_te(te_matmul, *call.args),
    "relax.add": lambda bb, call: bb.call_te(add, *call.args),
    "relax.nn.relu": lambda bb, call: bb.call_te(relu, call.args[0]),
    "relax.permute_dims": lambda bb, call: bb.call_te(transpose, call.args[0]),
}


def test_chapter_7_lowers_to_tensor_ir():
    fused = MatmulAddFusor(create_model()).transform()
    lowered = LowerToTensorIR(fused, OP_MAP).transform()
    assert sorted(v.name_hint for v in lowered.functions) == [
        "add", "add1", "fused_matmul_add0", "fused_matmul_add1", "main", "relu", "te_matmul",
        "te_matmul1", "transpose", "transpose1",
    ]  # fmt: skip
    inner = lowered["fused_matmul_add0"]
    assert inner.attrs["Primitive"] == 1
    assert [str(b.value).split("(")[1].split(",")[0] for b in inner.body.blocks[0].bindings] == [
        "te_matmul",
        "add",
    ]
    assert relax.analysis.well_formed(lowered)
    assert reads_back(lowered)
