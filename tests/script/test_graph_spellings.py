"""What functions of the graph level may say besides calls of operators."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb import relax, topi
from mlcweb.ir import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.runtime import array, cpu
from mlcweb.script import ir as I
from mlcweb.script import parse
from mlcweb.script import relax as R
from mlcweb.script.parser.compile_time import NotRun

HEAD = '@R.function\ndef main(x: R.Tensor((2, 2), "float32")):\n'


def read(body: str, head: str = HEAD, **names):
    return parse(head + "".join(f"    {line}\n" for line in body.splitlines()), names)


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("return R.add(x, 1.5)", 'return R.add(x, R.const(1.5, "float32"))'),
        ("return R.multiply(2, R.nn.relu(x))", 'return R.multiply(R.const(2, "float32"), '
         "R.nn.relu(x))"),
        ("return R.maximum(x, s)", 'return R.maximum(x, R.const(3.0, "float32"))'),
        ("y = R.tuple(x, x)\nreturn R.TupleGetItem(y, 1)", "y = (x, x)\nreturn y[1]"),
        ("return R.reshape(x, R.ShapeExpr([4]))", "return R.reshape(x, R.shape([4]))"),
        ("return getattr(R.nn, 'relu')(x)", "return R.nn.relu(x)"),
    ],
)  # fmt: skip
def test_means_what_is_written_out(body, plain):
    assert structural_equal(read(body, s=3.0), read(plain))


def test_modules_get_the_functions_of_emit_te():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 2), "float32")):
            y = R.emit_te(topi.add, x, x)
            z = R.emit_te(lambda a: topi.multiply(a, a), y, primfunc_name_hint="square")
            w = R.emit_te(topi.add, z, z)
            return w

    assert [var.name_hint for var in Module.functions] == ["main", "add", "square"]
    assert structural_equal(parse(Module.script()), Module)
    x = np.arange(4, dtype="float32").reshape(2, 2)
    vm = relax.VirtualMachine(relax.build(Module, "llvm"), mlcweb.cpu())
    np.testing.assert_array_equal(vm["main"](mlcweb.nd.array(x)).numpy(), 8 * x * x)


def test_emit_te_needs_a_module():
    with pytest.raises(DiagnosticError, match=r"in a class with @I\.ir_module"):
        read("return R.emit_te(f, x)", f=topi.exp)


def test_nothing_is_computed_for_a_module_that_nobody_has_run():
    text = """@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        return R.emit_te(f, x)
"""
    parse(text, {"f": topi.exp}, runs=False)
    with pytest.raises(NotRun, match="when the script runs"):
        parse(text, {"f": print}, runs=False)


def test_modules_name_functions_from_elsewhere():
    @I.ir_module
    class Module:
        scale = R.ExternFunc("test.scale")

        @R.function(pure=False)
        def main(x: R.Tensor((2, 2), "float32")):
            y = scale(x)
            return y

    assert 'scale = R.ExternFunc("test.scale")' in Module.script()
    assert structural_equal(parse(Module.script()), Module)


def test_virtual_devices_are_annotations():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(
            x: R.Tensor((2, 2), "float32", "llvm"), y: R.Tensor((2, 2), "float32", "vdevice:1")
        ):
            z = R.to_vdevice(R.add(x, x), "cuda:0")
            return R.add(R.hint_on_device(z, "cuda"), y)

    module = relax.transform.FoldConstant()(Module)
    assert module.global_infos["vdevice"][1] == I.vdevice("cuda")
    text = module.script()
    assert 'y: R.Tensor((2, 2), dtype="float32", vdevice="cuda:0:global")' in text
    assert 'R.to_vdevice(gv, dst_vdevice="cuda:0:global")' in text
    assert structural_equal(parse(text), Module)
    other = parse(
        text.replace('I.vdevice("cuda", 0, "global")', 'I.vdevice("cuda", 0, "local")', 1).replace(
            "cuda:0:global", "cuda:0:local"
        )
    )
    assert not structural_equal(other, Module)
    ones = array(np.ones((2, 2), "float32"))
    result = relax.VirtualMachine(relax.build(Module, "numpy"), cpu())["main"](ones, ones)
    np.testing.assert_array_equal(result.numpy(), 3)
    with pytest.raises(DiagnosticError, match='no virtual device "metal"; it has llvm:0:global'):
        parse(text.replace('vdevice="llvm:0:global"', 'vdevice="metal"'))


def test_what_is_refused():
    with pytest.raises(DiagnosticError, match="x2 must be a tensor"):
        read("return R.add(x, R.shape([1]))")


def test_what_modules_do_not_have_says_what_is_written_instead():
    with pytest.raises(AttributeError, match="I has no no_such_name"):
        _ = I.no_such_name


def test_names_that_mean_nothing_else_are_extents():
    """As scripts of 2022 wrote them, whose annotations Python does not evaluate."""
    older = parse(
        """@R.function
def main(x: Tensor((n, m), "float32"), y: R.Tensor[(m, 4), "float32"], z: R.Tensor(_, "float32")):
    w = R.matmul(x, y)
    return R.reshape(w, (n * 4,))""",
        {"Tensor": R.Tensor},
    )
    newer = parse("""@R.function
def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m", 4), "float32"),
         z: R.Tensor(dtype="float32")):
    n = T.int64()
    w = R.matmul(x, y)
    return R.reshape(w, (n * 4,))""")
    assert structural_equal(older, newer)


def test_older_functions_say_what_took_their_place():
    with pytest.raises(DiagnosticError, match=r"replaced in 2023: R\.match_cast"):
        read("return R.match_shape(x, (2, 2))")


@pytest.mark.parametrize(
    ("operator", "compute"),
    [("add", np.add), ("less", np.less), ("multiply", np.multiply), ("power", np.power)],
)
def test_scalars_beside_tensors(operator, compute):
    mod = parse(f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), s: R.Prim("float32")):
        y = R.{operator}(x, s)
        z = R.{operator}(x, R.prim_value(T.float32(3)))
        return (y, z)""")
    info = mod["main"].ret_struct_info.fields[0]
    assert info.dtype == ("bool" if operator == "less" else "float32") and info.ndim == 2
    x = np.arange(6, dtype="float32").reshape(2, 3)
    vm = relax.VirtualMachine(relax.build(mod, "numpy"), mlcweb.cpu())
    y, z = vm["main"](mlcweb.nd.array(x), 2.0)
    np.testing.assert_allclose(y.numpy(), compute(x, np.float32(2)))
    np.testing.assert_allclose(z.numpy(), compute(x, np.float32(3)))


def test_two_scalars_make_a_number_that_no_function_computes():
    """As in TVM 0.27, which cannot run it either."""
    mod = parse(
        """@I.ir_module
class Module:
    @R.function
    def main(s: R.Prim('float32')):
        return R.add(s, s)"""
    )
    assert str(mod["main"].ret_struct_info) == 'R.Prim("float32")'
    with pytest.raises(DiagnosticError, match=r"relax\.add"):
        relax.build(mod, "numpy")


def test_memory_of_the_graph_takes_texts_and_numbers():
    head = HEAD.replace("R.function", "R.function(pure=False)")
    short = read(
        """s = R.memory.alloc_storage([16], 0, "global", "float32")
t = R.memory.alloc_tensor(s, 0, R.shape([2, 2]), "float32")
u = R.vm.alloc_storage(R.shape([16]), 0, "uint8")
v = R.builtin.alloc_tensor((2, 2), T.float32)
return t""",
        head,
    )
    in_full = read(
        """s = R.memory.alloc_storage(
    R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("float32"))
t = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([2, 2]), R.dtype("float32"))
u = R.vm.alloc_storage(R.shape([16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
v = R.builtin.alloc_tensor(
    R.shape([2, 2]), R.dtype("float32"), R.prim_value(0), R.str("global"))
return t""",
        head,
    )
    assert structural_equal(short, in_full)


def test_dataflow_of_2022_is_that_of_relax():
    """The first notebooks wrote `relax.dataflow()` and `relax.output(...)` inside of functions."""
    from mlcweb import compat

    compat.install()
    try:
        source = (
            "@R.function\n"
            "def main(x: R.Tensor((2, 3), 'float32')):\n"
            "    with relax.dataflow():\n"
            "        lv0 = relax.op.add(x, x)\n"
            "        lv1 = relax.op.nn.relu(lv0)\n"
            "        relax.output(lv1)\n"
            "    return lv1\n"
        )
        import tvm.relax

        func = parse(source, {"relax": tvm.relax, "R": R})
    finally:
        compat.uninstall()
    assert [type(b.var).__name__ for b in func.body.blocks[0].bindings] == ["DataflowVar", "Var"]


def test_empty_tuples_are_declared_and_given_by_the_statements_without_a_name() -> None:
    """So TVM prints what has effects only, and whose empty result is used."""
    func = read(
        """
lv: R.Tuple
gv: R.Tuple
R.print(x, format=R.str("{}"))
lv
return gv
""".strip(),
        HEAD.replace("@R.function", "@R.function(pure=False)"),
    )
    first, second = func.body.blocks[0].bindings
    assert (first.var.name_hint, second.var.name_hint) == ("lv", "gv")
    assert second.value is first.var
    assert func.body.body is second.var
    with pytest.raises(DiagnosticError, match="Only a variable of type R"):
        read("y: R.Tensor((2, 2))\nreturn x")


def test_numbers_in_types_are_written_as_scalars() -> None:
    """So TVM 0.27 prints what functions take, for one."""
    func = parse(
        HEAD.replace("):", ", f: R.Callable((T.int64, R.Any), R.Tuple(T.float32), True)):")
        + "    return x\n"
    )
    info = func.params[1].struct_info
    assert info.params[0] == relax.PrimStructInfo("int64")
    assert info.ret == relax.TupleStructInfo([relax.PrimStructInfo("float32")])


def test_virtual_devices_are_numbered_among_those_of_their_kind():
    @I.ir_module
    class Module:
        I.module_global_infos(
            {
                "vdevice": [
                    I.vdevice("llvm"),
                    I.vdevice("cuda", 1),
                    I.vdevice("cuda", 0, "shared"),
                    I.vdevice("cuda", 1, "shared"),
                ]
            }
        )

        @R.function
        def main(x: R.Tensor((2,), "float32", "cuda:1"), y: R.Tensor((2,), "float32", "cuda:0")):
            return (x, y, R.to_vdevice(x, "cuda:2"))

    _, first, second, third = Module.global_infos["vdevice"]
    infos = [field.vdevice for field in Module["main"].ret_struct_info.fields]
    assert infos == [second, first, third]
    text = Module.script()
    for name in ("cuda:1:shared", "cuda:0:global", "cuda:2:shared"):
        assert f'vdevice="{name}"' in text
    assert structural_equal(parse(text), Module)
