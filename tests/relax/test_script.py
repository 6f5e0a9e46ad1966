"""Functions of the graph level as text: what is read, what is printed, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import DiagnosticError, TVMError, assert_structural_equal, structural_hash
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.script import ir as I
from mlcweb.script import parse
from mlcweb.script import relax as R
from mlcweb.script import tir as T


def round_trip(program):
    text = program.script(show_meta=True)
    again = parse(text)
    assert_structural_equal(again, program)
    assert structural_hash(again) == structural_hash(program)
    assert again.script(show_meta=True) == text
    return program.script()


@R.function(private=True)
def everything(
    x: R.Tensor((3, "n"), "float32"),
    c: R.Tensor((), "bool"),
    s: R.Shape(["n", 4]),
    t: R.Tuple(R.Tensor, R.Object),
    f: R.Callable((R.Tensor((1,), "int32"),), R.Tensor, True),
    p: R.Prim(value="n"),
) -> R.Tensor(ndim=2):
    n = T.int64()
    R.func_attr({"relax.force_pure": True, "Primitive": 1})
    if c:
        z = R.add(x, R.const(1, "float32"))
        q = z
    else:
        z = R.multiply(x, x)
        q = z
    y = R.match_cast(q, R.Tensor((n, 4), "float32"))
    u = (x, (q, t[1]), R.shape([n, 4]), R.prim_value(3), R.str("abc"), R.dtype("float32"))
    v = u[1][0]
    w = R.call_packed("my.f", x, sinfo_args=R.Tensor((3, 4), "float32"))
    w1 = R.call_packed("my.f", x, sinfo_args=(R.Tensor(ndim=2),))
    w2 = R.call_pure_packed("my.f", x, sinfo_args=R.Tensor((3, 4)))
    w3 = R.null_value()
    R.print(x, format="a{}")
    a = R.matmul(R.permute_dims(x), v)
    d = R.call_dps_packed("g", x, [R.Tensor((1, n), "float32"), R.Tensor((1, n), "float32")])
    e = R.astype(x, "float16")
    g = f(R.const([1], "int32"))
    h = R.add(R.const([1.0, 2]), R.add(R.const(1.0), R.const(float("inf"), "float32")))
    return a


def test_every_kind_of_expression_prints_as_in_tvm():
    text = round_trip(everything)
    for line in (
        "@R.function(private=True)",
        'def main(x: R.Tensor((3, "n"), dtype="float32"), c: R.Tensor((), dtype="bool"), '
        's: R.Shape(["n", 4]), t: R.Tuple(R.Tensor, R.Object), '
        'f: R.Callable((R.Tensor((1,), dtype="int32"),), R.Tensor, True), p: R.Prim(value="n")) '
        '-> R.Tensor(("n", "n"), dtype="float32"):',
        "    n = T.int64()",
        '    R.func_attr({"Primitive": 1, "relax.force_pure": True})',
        "    if c:",
        '        z: R.Tensor((3, n), dtype="float32") = R.add(x, R.const(1.0, "float32"))',
        '        q: R.Tensor((3, n), dtype="float32") = z',
        "    else:",
        '        z: R.Tensor((3, n), dtype="float32") = R.multiply(x, x)',
        '    y: R.Tensor((n, 4), dtype="float32") = '
        'R.match_cast(q, R.Tensor((n, 4), dtype="float32"))',
        "    gv: R.Object = t[1]",
        '    w: R.Tensor((3, 4), dtype="float32") = '
        'R.call_packed("my.f", x, sinfo_args=(R.Tensor((3, 4), dtype="float32"),))',
        '    w2: R.Tensor((3, 4)) = R.call_pure_packed("my.f", x, sinfo_args=(R.Tensor((3, 4)),))',
        "    w3: R.Object = R.null_value()",
        '    R.print(x, format=R.str("a{}"))',
        '    gv2: R.Tensor((n, 3), dtype="float32") = R.permute_dims(x, axes=None)',
        '    a: R.Tensor((n, n), dtype="float32") = R.matmul(gv2, v, out_dtype="void")',
        '    d = R.call_dps_packed("g", (x,), out_sinfo=[R.Tensor((1, n), dtype="float32"), '
        'R.Tensor((1, n), dtype="float32")])',
        '    e: R.Tensor((3, n), dtype="float16") = R.astype(x, dtype="float16")',
        '    g: R.Tensor = f(metadata["relax.expr.Constant"][0])',
        '    gv3: R.Tensor((), dtype="float32") = R.add(R.const(1.0, "float32"), '
        'R.const(float("inf"), "float32"))',
        "    return a",
    ):
        assert line in text.splitlines()


@I.ir_module
class Calls:
    @R.function
    def dims(
        x: R.Tensor(("n*2", "m+1"), "float32"), s: R.Shape(["n", "m"]), e: R.Tuple()
    ) -> R.Tensor(("n*2 + 3", "m"), "float32"):
        n, m = T.int64(), T.int64()
        y = x + x
        z = R.call_dps_packed("ff", (y, x), R.Tensor((n * 2 + 3, m), "float32"))
        w = R.shape([n + 1, 4, n * 2, n // 2, n % 3])
        v = ()
        return z

    @R.function
    def caller(x: R.Tensor(("n", 4)), y: R.Tensor((3, 4))):
        n = T.int64()
        a = cls.callee(x, R.shape([n]))
        b = callee(y, R.shape([3]))
        return a, b

    @R.function
    def callee(x: R.Tensor(("k", 4)), y: R.Shape(["k"])):
        k = T.int64()
        return R.call_dps_packed("u", x, R.Tensor((k * 2,)))

    @R.function
    def closure(x: R.Tensor((4,), "float32")):
        @R.function
        def inner(a: R.Tensor((4,), "float32")):
            return R.add(a, a)

        return inner(x)

    @R.function(pure=False)
    def impure(x: R.Tensor) -> R.Tensor:
        R.print(x, format="x")
        c = cls.impure(x)
        c = R.add(c, c)
        return c


def test_functions_of_a_module_call_each_other():
    text = round_trip(Calls)
    assert relax.analysis.well_formed(Calls)
    assert Calls["caller"].ret_struct_info.fields[1] == Tensor((6,), "")
    assert "        a: R.Tensor((n * 2,)) = cls.callee(x, R.shape([n]))" in text.splitlines()
    assert "        c_1: R.Tensor = R.add(c, c)" in text.splitlines()
    assert (
        "        w: R.Shape([n + 1, 4, n * 2, n // 2, n % 3]) = "
        "R.shape([n + 1, 4, n * 2, n // 2, n % 3])"
    ) in text.splitlines()
    assert str(Calls["impure"].body) == (
        "x: R.Tensor\n"
        'R.print(x, format=R.str("x"))\n'
        "c: R.Tensor = impure(x)\n"
        "c_1: R.Tensor = R.add(c, c)\n"
        "c_1"
    )


NEW_SPELLING = """
# from typing import TypeVar
n = TypeVar("n")
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), dtype="float32"), t: R.Tuple(R.Any)) -> R.Tensor(("n * 2",)):
        cls = Module
        a: R.Tensor((n, 4), dtype="float32") = R.matmul(x, R.const(1.0, "float32"), out_dtype=None)
        gv = R.call_dps_packed("u", (x,), out_ty=R.Tensor((n * 2,)))
        return gv
"""


def test_the_spelling_of_tvm_since_2026_is_read_and_printed():
    text = NEW_SPELLING.replace("R.matmul(x, R.const(1.0, \"float32\"), out_dtype=None)",
                                "R.add(x, x)")  # fmt: skip
    module = parse(text)
    [n] = relax.analysis.defined_symbolic_vars(module["main"])
    assert n.name == "n"
    new = module.script(dialect="s_tir")
    assert "out_ty=R.Tensor((n * 2,))" in new
    assert "t: R.Tuple(R.Any)" in new
    assert_structural_equal(parse(new), module)
    round_trip(module)


@R.function
def branches_that_name_the_result(
    x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")
) -> R.Tensor((2,), "float32"):
    if c:
        y = R.add(x, x)
        z = y
    else:
        w = R.multiply(x, x)
        if c:
            z = R.add(w, w)
        else:
            z = R.add(w, x)
    return z


def test_branches_that_name_the_result_read_back():
    lines = round_trip(branches_that_name_the_result).splitlines()
    assert '        z: R.Tensor((2,), dtype="float32") = y' in lines


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return R.add(x, z)", '"z" is not defined'),
        ("return R.ad(x, x)", "R has no ad; did you mean add"),
        ("y = R.add(x, R.const([1.0, 2.0]))\n    return y", "cannot be broadcast"),
        ("y: R.Tensor((5, 5)) = R.add(x, x)\n    return y", '"y" is said to be'),
        ("y = R.add(x, x)", "returns nothing"),
        ("for i in range(3):\n        pass\n    return x", "For cannot be used"),
        ("return R.matmul(x)", "missing"),
        (
            "with R.dataflow():\n        y = R.add(x, x)\n        R.output(z)\n    return x",
            '"z" is not bound',
        ),
        (
            "with R.dataflow():\n        y = R.add(x, x)\n        R.output()\n    return y",
            r"outside of its dataflow block; end that with R.output\(y\)",
        ),
        ("R.print(x, format='')\n    return x", r"pure=False"),
        ("R.add(x, x)\n    return x", "must be bound to a variable"),
        ("y = R.call_tir(cls.f, (x,))\n    return y", "say what the call writes|not defined"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(body, message):
    text = f'@R.function\ndef main(x: R.Tensor((3, 4), "float32")):\n    {body}\n'
    with pytest.raises(DiagnosticError, match=message) as caught:
        parse(text)
    assert caught.value.span is not None


SHAPES = st.lists(st.integers(1, 3) | st.sampled_from(["n", "m"]), max_size=3)


def named(name, value, info):
    """A branch that binds its value to a variable."""
    var = relax.Var(name, info)
    return relax.SeqExpr([relax.BindingBlock([relax.VarBinding(var, value)])], var)


@st.composite
def functions(draw):
    """Random functions: elementwise operators, tuples, casts, dataflow blocks, branches."""
    extents = {name: tvm.tir.Var(name, "int64") for name in ("n", "m")}
    shape = [extents.get(extent, extent) for extent in draw(SHAPES)]
    info = Tensor(shape, "float32")
    params = [relax.Var(name, info) for name in ("x", "y")]
    cond = relax.Var("c", Tensor((), "bool"))
    bb = relax.BlockBuilder()
    with bb.function("main", [*params, cond]):
        values = list(params)

        def step():
            kind = draw(st.sampled_from(["add", "exp", "const", "nested", "tuple", "cast", "dps"]))
            a, b = draw(st.sampled_from(values)), draw(st.sampled_from(values))
            if kind == "add":
                return bb.emit(relax.op.add(a, b))
            if kind == "exp":
                return bb.emit(relax.op.exp(a))
            if kind == "const":
                number = draw(st.floats(width=32, allow_nan=False))
                data = draw(st.sampled_from([number, [number]] if shape else [number]))
                return bb.emit(relax.op.multiply(a, relax.const(data, "float32")))
            if kind == "nested":
                return bb.emit(relax.op.maximum(relax.op.nn.relu(a), relax.op.negative(b)))
            if kind == "tuple":
                return bb.emit(bb.emit((a, (b,)))[0])
            if kind == "cast":
                return bb.match_cast(a, info)
            return bb.emit(relax.op.call_dps_packed("f", (a, b), info))

        for _ in range(draw(st.integers(0, 2))):
            values.append(step())
        if draw(st.booleans()):
            branches = [relax.op.add(params[0], params[1]), relax.op.exp(params[1])]
            # Inside, the result may have the name that it has outside.
            name = draw(st.sampled_from(["gv", "q"]))
            branches[0] = draw(st.sampled_from([branches[0], named(name, branches[0], info)]))
            values.append(bb.emit(relax.If(cond, *branches), "q"))
        with bb.dataflow():
            outside = list(values)
            for _ in range(draw(st.integers(1, 4))):
                values.append(step())
            outside.append(bb.emit_output(values[-1]))
        values = outside
        for _ in range(draw(st.integers(0, 2))):
            values.append(step())
        bb.emit_func_output(draw(st.sampled_from([values[-1], tuple(values[-2:])])))
    return bb.get()


@given(functions())
def test_what_prints_reads_back(module):
    assert relax.analysis.well_formed(module)
    round_trip(module)


@given(functions())
def test_rewriting_nothing_gives_the_same_object_and_pruning_keeps_the_result(module):
    func = module["main"]
    assert relax.PyExprMutator().visit_expr(func) is func
    pruned = relax.analysis.remove_all_unused(func)
    assert relax.analysis.well_formed(pruned)
    assert pruned.struct_info == func.struct_info
    assert relax.analysis.remove_all_unused(pruned) is pruned


def test_a_return_annotation_without_details_stands_over_any_result():
    @R.function
    def pair(x: R.Tensor((4,), "float32")) -> R.Tensor:
        return (x, x)

    @R.function
    def nested(x: R.Tensor((4,), "float32")) -> R.Tuple:
        return (x, (x,))

    four = 'R.Tensor((4,), dtype="float32")'
    assert str(pair.ret_struct_info) == f"R.Tuple({four}, {four})"
    assert str(nested.ret_struct_info) == f"R.Tuple({four}, R.Tuple({four}))"
    with pytest.raises(TVMError, match="is said to return"):

        @R.function
        def wrong(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return (x, x)


def test_an_annotation_says_what_calls_give_and_is_checked_of_others():
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        called: R.Tensor(ndim=2) = R.add(x, x)
        renamed: R.Object = x
        return (called, renamed)

    called, renamed = (binding.var for binding in main.body.blocks[0].bindings)
    assert called.struct_info == Tensor(ndim=2, dtype="")
    assert renamed.struct_info == Tensor((2, 3), "float32")
    assert round_trip(main)


def test_the_body_says_more_of_the_result_than_its_annotation():
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor(ndim=2):
        return x

    @R.function
    def less(x: R.Tensor(ndim=2)) -> R.Tensor((2, 3), "float32"):
        return x

    assert main.ret_struct_info == Tensor((2, 3), "float32")
    assert less.ret_struct_info == Tensor((2, 3), "float32")


def test_a_private_function_has_no_global_symbol():
    with pytest.raises(DiagnosticError, match='"f" is private, and has a global symbol'):
        parse(
            "@R.function(private=True)\ndef f(x: R.Tensor((2,))):\n"
            '    R.func_attr({"global_symbol": "g"})\n    return x'
        )


def test_branches_may_end_with_what_has_effects_only(capfd):
    @I.ir_module
    class Module:
        @R.function(pure=False)
        def main(x: R.Tensor((), "int32"), c: R.Tensor((), "bool")) -> R.Tensor((), "int32"):
            if c:
                R.print(x, format="yes {}")
            else:
                R.print(x, format="no {}")
            return x

    run = relax.VirtualMachine(relax.build(Module, target="numpy"), tvm.cpu())["main"]
    for condition in (True, False):
        assert run(*map(tvm.nd.array, (np.array(5, "int32"), np.array(condition)))).numpy() == 5
    assert capfd.readouterr().out.split() == ["yes", "5", "no", "5"]


def test_branches_may_end_with_a_match_cast():
    @R.function
    def main(pair: R.Tuple(R.Tensor, R.Tensor), c: R.Tensor((), "bool")):
        if c:
            y = R.match_cast(pair[0], R.Tensor((4,), "float32"))
        else:
            y = R.match_cast(pair[1], R.Tensor((4,), "float32"))
        return y

    assert main.ret_struct_info == R.Tensor((4,), "float32")
    mod = relax.VirtualMachine(relax.build(tvm.IRModule({"main": main}), target="numpy"), tvm.cpu())
    pair = [tvm.nd.array(np.full(4, value, "float32")) for value in (1, 2)]
    for condition, value in ((True, 1), (False, 2)):
        assert (mod["main"](pair, tvm.nd.array(np.array(condition))).numpy() == value).all()


def test_external_functions_print_with_their_types():
    known = relax.ExternFunc("f", relax.FuncStructInfo([], R.Tensor((2,), "float32"), True))
    mod = tvm.IRModule({"f": known, "g": relax.ExternFunc("g")})
    text = mod.script()
    assert 'f = R.ExternFunc("f", R.Callable((), R.Tensor((2,), dtype="float32"), True))' in text
    assert 'g = R.ExternFunc("g")\n' in text + "\n"
    assert_structural_equal(parse(text), mod)


def test_extents_of_calls_in_place_are_a_shape():
    x, n = relax.Var("x", R.Tensor((2,), "float32")), tvm.tir.Var("n", "int64")
    func = relax.GlobalVar("f")
    for extents in ([n], n, relax.ShapeExpr([n])):
        call = relax.op.call_tir_inplace(func, (x,), [0], x.struct_info, tir_vars=extents)
        assert "tir_vars=R.shape([n])" in str(call)


def test_any_is_a_type_outside_of_scripts_too():
    assert R.Any is R.NAMES["Any"]


def test_a_module_says_what_is_known_of_its_functions():
    @I.ir_module
    class Module:
        @R.function
        def double(x: R.Tensor(("n",), "float32")):
            return R.add(x, x)

    double = Module.get_global_var("double")
    assert double.struct_info == double.ty == Module["double"].struct_info

    @R.function
    def main(y: R.Tensor((5,), "float32")):
        return double(y)

    assert main.ret_struct_info == Tensor((5,), "float32")


def test_allocations_have_no_side_effects():
    @R.function
    def main(n: R.Shape(["n"])):
        a = R.builtin.alloc_tensor(n, R.dtype("float32"), R.prim_value(0))
        b = R.builtin.alloc_tensor(n, R.dtype("float32"), R.prim_value(0))
        return (b, b)

    mod = tvm.IRModule({"main": main})
    assert_structural_equal(relax.transform.EliminateCommonSubexpr()(mod), mod)
    (left,) = relax.transform.DeadCodeElimination()(mod)["main"].body.blocks[0].bindings
    assert left.var.name_hint == "b"


def test_a_function_inside_of_another_gives_more_than_its_annotation():
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        @R.function
        def outer(a: R.Tensor((2, 3), "float32")) -> R.Callable((R.Tensor(ndim=2),), R.Tensor):
            @R.function
            def inner(b: R.Tensor(ndim=2)) -> R.Tensor((2, 3), "float32"):
                return a

            return inner

        return outer(x)

    assert main.body.blocks[0].bindings[0].var.struct_info.ret.ret == Tensor((2, 3), "float32")
    assert round_trip(main)
