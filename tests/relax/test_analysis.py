"""Variables and uses, well-formedness, binding, and visitors."""

import pytest

import mlcweb as tvm
from mlcweb import relax, te, tir
from mlcweb.ir import DiagnosticError
from mlcweb.ir.module import IRModule
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import relax as R
from mlcweb.script import tir as T


@R.function
def chain(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
    n = T.int64()
    with R.dataflow():
        a = R.add(x, y)
        b = R.multiply(a, a)
        unused = R.exp(a)
        c = R.add(b, y)
        R.output(c)
    return c


def names(variables):
    return [var.name_hint for var in variables]


def test_variables():
    assert names(relax.analysis.bound_vars(chain)) == ["x", "y", "a", "b", "unused", "c"]
    assert relax.analysis.free_vars(chain) == []
    assert names(relax.analysis.free_vars(chain.body)) == ["x", "y"]
    assert names(relax.analysis.used_vars(chain)) == ["x", "y", "a", "b", "c"]
    assert [v.name for v in relax.analysis.defined_symbolic_vars(chain)] == ["n"]
    assert relax.analysis.free_symbolic_vars(chain) == []
    values = relax.analysis.get_var2val(chain)
    assert {var.name_hint: str(value) for var, value in values.items()}["b"] == "R.multiply(a, a)"
    assert list(relax.analysis.name_to_binding(chain)) == ["a", "b", "unused", "c"]


def test_definition_use_chain():
    chains = relax.analysis.udchain(chain.body.blocks[0])
    assert {var.name_hint: names(users) for var, users in chains.items()} == {
        "a": ["b", "unused"],
        "x": ["a"],
        "y": ["a", "c"],
        "b": ["c"],
        "unused": [],
        "c": [],
    }


def test_unused_bindings_are_dropped_and_side_effects_kept():
    pruned = relax.analysis.remove_all_unused(chain)
    assert names(b.var for b in pruned.body.blocks[0].bindings) == ["a", "b", "c"]

    @R.function(pure=False)
    def impure(x: R.Tensor((2,), "float32")):
        R.print(x, format="")
        a = R.add(x, x)
        b = R.call_packed("side.effect", a, sinfo_args=R.Tensor)
        return x

    assert relax.analysis.contains_impure_call(impure)
    assert relax.analysis.remove_all_unused(impure) is impure


def test_an_extent_that_is_used_keeps_its_match_cast():
    @R.function
    def func(x: R.Tensor(ndim=1, dtype="float32")):
        m = T.int64()
        y = R.match_cast(x, R.Tensor((m,), "float32"))
        z = R.match_cast(x, R.Tensor((4,), "float32"))
        return R.shape([m])

    pruned = relax.analysis.remove_all_unused(func)
    assert names(b.var for b in pruned.body.blocks[0].bindings) == ["y"]


def test_well_formedness():
    x = relax.Var("x", Tensor((2,)))
    lv = relax.DataflowVar("lv", Tensor((2,)))
    n = tir.Var("n", "int64")
    add = relax.op.add(x, x)
    binding = relax.VarBinding(lv, add)
    block, dataflow = relax.BindingBlock([binding]), relax.DataflowBlock([binding])
    twice = relax.DataflowBlock([binding, relax.VarBinding(lv, x)])
    unknown = relax.Var("y", Tensor((n + 1,)))
    wrong = {
        "bound outside of a dataflow block": relax.Function([x], relax.SeqExpr([block], x)),
        r"outside of its dataflow block; end that with R\.output\(lv\)": relax.Function(
            [x], relax.SeqExpr([dataflow], lv)
        ),
        "not defined": relax.Function([], x),
        "defined twice": relax.Function([x], relax.SeqExpr([twice], x)),
        "not in normal form": relax.Function([x], add),
        "extent n is not defined": relax.Function([unknown], unknown),
    }
    for message, func in wrong.items():
        assert relax.analysis.well_formed(func) is relax.analysis.check_well_formed(func) is False
        with pytest.raises(DiagnosticError, match=message):
            refuse_ill_formed(func)
    fine = relax.Function([x], relax.SeqExpr([dataflow], x)).with_attr("global_symbol", "f")
    assert relax.analysis.well_formed(fine) is relax.analysis.check_well_formed(fine) is True
    assert relax.analysis.well_formed(IRModule({"f": fine}))
    with pytest.raises(DiagnosticError, match='"f" is not "g"'):
        refuse_ill_formed(IRModule({"g": fine}))


def test_an_extent_of_a_bound_variable_is_defined():
    x = relax.Var("x", Tensor((4,)))
    y = relax.Var("y", Tensor((tir.Var("n", "int64"),)))
    block = relax.BindingBlock([relax.VarBinding(y, relax.op.add(x, x))])
    func = relax.Function([x], relax.SeqExpr([block], y), Tensor(ndim=1))
    assert not relax.analysis.well_formed(func, check_struct_info=False)


def reshape_of(shape, index):
    """A function that copies `shape` to a line of 4 * n elements; `index(i)` says from where."""
    n = tir.Var("n", "int64")
    source = te.placeholder(shape(n), "float32", "source")
    line = te.compute((4 * n,), lambda i: source(*index(i, n)))
    return te.create_prim_func([source, line])


def test_reshapes_of_symbolic_shapes():
    plain = reshape_of(lambda n: (n, 4), lambda i, n: (i // 4 % n, i % 4))
    with_one = reshape_of(lambda n: (1, n, 4), lambda i, n: (0, i // 4, i % 4))
    other = reshape_of(lambda n: (n, 4), lambda i, n: (n - 1 - i // 4, i % 4))
    found = [relax.analysis.has_reshape_pattern(func) for func in (plain, with_one, other)]
    assert found == [True, True, False]


def test_shapes_where_they_are_known():
    n = tir.Var("n", "int64")
    shape = relax.op.base.get_shape_of(relax.Var("x", Tensor((4, n))))
    assert isinstance(shape, relax.ShapeExpr) and list(shape) == [4, n]
    assert isinstance(relax.op.base.get_shape_of(relax.Var("y", Tensor(ndim=2))), relax.Call)


def test_binding_parameters_and_extents():
    bound = chain.bind_symbolic_vars({"n": 3})
    assert bound.params[0].struct_info == Tensor((3, 4), "float32")
    assert bound.ret_struct_info == Tensor((3, 4), "float32")
    assert relax.analysis.well_formed(bound)
    with_y = chain.bind_params({"y": relax.const([1.0, 2.0, 3.0, 4.0])})
    assert names(with_y.params) == ["x"]
    assert relax.analysis.well_formed(with_y)
    with pytest.raises(DiagnosticError, match='no parameter "z"; it has x, y'):
        chain.bind_params({"z": relax.const(1.0)})
    with pytest.raises(DiagnosticError, match='value for the parameter "y"'):
        chain.bind_params({"y": relax.const([1.0])})
    with pytest.raises(DiagnosticError, match='no symbolic extent "m"'):
        chain.bind_symbolic_vars({"m": 3})


@relax.expr_functor.visitor
class Counter(relax.PyExprVisitor):
    def __init__(self):
        self.calls = []
        self.definitions = []

    def visit_call_(self, call):
        super().visit_call_(call)
        self.calls.append(call.op.name)

    def visit_var_def_(self, var):
        self.definitions.append(var.name_hint)

    def visit_dataflow_var_def_(self, var):
        self.definitions.append(f"%{var.name_hint}")


def test_visitor():
    counter = Counter()
    counter.visit_expr(chain)
    assert counter.calls == ["relax.add", "relax.multiply", "relax.exp", "relax.add"]
    assert counter.definitions == ["x", "y", "%a", "%b", "%unused", "c"]


@relax.expr_functor.mutator
class ToHalf(relax.PyExprMutator):
    """Changes a struct info, which must reach every use."""

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op == tvm.ir.Op.get("relax.exp"):
            return relax.op.astype(relax.op.exp(call.args[0]), "float16")
        return call


def test_mutator_renews_variables_whose_struct_info_changes():
    @R.function
    def func(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.add(a, a)
            R.output(b)
        return b

    new = ToHalf().visit_expr(func)
    assert [str(b.var.struct_info) for b in new.body.blocks[0].bindings] == [
        'R.Tensor((2,), dtype="float32")',
        'R.Tensor((2,), dtype="float16")',
        'R.Tensor((2,), dtype="float16")',
    ]
    assert new.ret_struct_info == Tensor((2,), "float16")
    assert relax.analysis.well_formed(new)


def test_decorators_check_the_class():
    with pytest.raises(TypeError, match="must be a subclass of PyExprMutator"):
        relax.expr_functor.mutator(Counter)


def test_extents_that_are_never_negative():
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    collected = relax.analysis.collect_non_negative_expressions
    shaped = relax.TupleStructInfo([relax.ShapeStructInfo([n + 1, m]), Tensor([m - 1], "int8")])
    function = relax.FuncStructInfo([Tensor([n], "float32")], Tensor([n - m], "float32"))
    for info, text in [  # TVM's answers
        (Tensor([n, m * 2, n, 4], "float32"), "[n, m * T.int64(2)]"),
        (shaped, "[n + T.int64(1), m, m - T.int64(1)]"),
        (function, "[n, n - m]"),
    ]:
        assert str(collected(info)) == text


def test_an_instrument_checks_modules_around_passes():
    from mlcweb.relax.instrument import WellFormedInstrument

    mod = tvm.IRModule({"chain": chain})

    @tvm.transform.module_pass(opt_level=0, name="Spoil")
    def spoil(mod, ctx):
        info = Tensor([4], "int8")
        spoiled = relax.Function([], relax.Var("nowhere", info), info)
        return tvm.IRModule({"main": spoiled.with_attr("global_symbol", "main")})

    with tvm.transform.PassContext(instruments=[WellFormedInstrument()]):
        relax.transform.DeadCodeElimination()(mod)
        with pytest.raises(AssertionError, match="not well formed after the pass Spoil: "):
            spoil(mod)


def refusal(*functions, **others):
    """Why a module is not well-formed."""
    module = IRModule({**{f"f{i}": func for i, func in enumerate(functions)}, **others})
    assert not relax.analysis.well_formed(module)
    with pytest.raises(DiagnosticError) as error:
        refuse_ill_formed(module)
    return str(error.value)


def test_functions_share_no_variables():
    n = tir.Var("n", "int64")
    x, y, z = (
        relax.Var("x", Tensor((2,))),
        relax.Var("y", Tensor((n,))),
        relax.Var("z", Tensor((n,))),
    )
    assert refusal(relax.Function([x], x), relax.Function([x], x)) == (
        "x is a variable of two functions, f0 and f1"
    )
    assert "n is a variable of two functions" in refusal(
        relax.Function([y], y), relax.Function([z], z)
    )


def test_sequences_conditions_and_purity(caplog):
    x, y, c = (relax.Var(name, Tensor((), "bool")) for name in "xyc")

    def bound(value):
        block = relax.BindingBlock([relax.VarBinding(y, value)])
        return relax.Function([x, c], relax.SeqExpr([block], y))

    assert "y is bound to a sequence" in refusal(bound(relax.SeqExpr([], x)))
    first = relax.TupleGetItem(relax.Tuple([c]), 0)
    assert "is not in normal form" in refusal(bound(relax.If(first, x, x)))
    assert relax.analysis.well_formed(IRModule({"f": bound(relax.If(c, x, x))}))
    impure = relax.DataflowBlock([relax.VarBinding(relax.DataflowVar("z"), relax.op.print(x))])
    sequence = relax.SeqExpr([impure], x)
    forced = relax.Function([x], sequence).with_attr("relax.force_pure", True)
    forced = relax.transform.Normalize()(IRModule({"f": forced}))["f"]
    assert "no side effects; R.print(x" in refusal(forced)
    assert not relax.analysis.well_formed(IRModule({"f": forced}))
    assert "no side effects; R.print(x" in caplog.text
    forced = relax.Function([x], x, is_pure=False).with_attr("relax.force_pure", True)
    assert "relax.force_pure" in refusal(forced)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize(("result", "fits"), [((12,), True), ((13,), False), ((3, 4), False)])
def test_results_of_functions_of_tensorir_follow_from_their_arguments(kind, result, fits):
    m, n = tir.Var("m", kind), tir.Var("n", kind)
    a, b = tir.decl_buffer((m, n), name="A"), tir.decl_buffer((m * n,), name="B")
    body = tir.Evaluate(0)
    flat = tir.PrimFunc([a, b], body)
    x, y = relax.Var("x", Tensor((3, 4))), relax.Var("y", Tensor(result))
    call = relax.call_tir(tvm.ir.GlobalVar("flat"), [x], Tensor(result))
    block = relax.BindingBlock([relax.VarBinding(y, call)])
    function = relax.Function([x], relax.SeqExpr([block], y))
    if fits:
        refuse_ill_formed(IRModule({"f": function, "flat": flat}))
    else:
        assert "Tensor 1 of flat is B, of shape" in refusal(function, flat=flat)


@pytest.mark.parametrize(
    ("count", "extent", "result", "dtype", "message"),
    [
        (1, 4, 4, "float32", None),
        (1, 5, 4, "float32", "Tensor 0 of double is A, of shape"),
        (1, 4, 5, "float32", "Tensor 1 of double is B, of shape"),
        (1, 4, 4, "int32", "and dtype float32; the call has"),
        (2, 4, 4, "float32", "double takes 2 tensors, of arguments and results; the call has 3"),
    ],
)
def test_calls_fit_the_functions_of_tensorir(count, extent, result, dtype, message):
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)

    x, y = relax.Var("x", Tensor((extent,), dtype)), relax.Var("y", Tensor((result,), "float32"))
    name = tvm.ir.GlobalVar("double")
    call = relax.call_tir(name, [x] * count, Tensor((result,), "float32"))
    block = relax.BindingBlock([relax.VarBinding(y, call)])
    function = relax.Function([x], relax.SeqExpr([block], y))
    if message is None:
        refuse_ill_formed(IRModule({"f": function, "double": double}))
    else:
        assert message in refusal(function, double=double)
