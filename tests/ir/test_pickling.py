"""Pickles and copies of nodes, modules and schedules: what was one object stays one, however deep
the program nests."""

import copy
import pickle

import pytest

import mlcweb
from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import Trace
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.te import compute, create_prim_func, placeholder
from mlcweb.tir import Add, BufferStore, Evaluate, For, ForKind, PrimFunc, Schedule, Var, const
from mlcweb.tir.buffer import decl_buffer
from mlcweb.tir.contents import accesses_in
from tests.programs import THREE_BLOCKS as PROGRAM
from tests.schedule.case_files import module


def pickled(value):
    return pickle.loads(pickle.dumps(value))


WAYS = pytest.mark.parametrize("way", [pickled, copy.deepcopy])
DEPTH = 20_000


@WAYS
def test_expressions_may_nest_deep(way):
    x = Var("x", "float32")
    value = x
    for _ in range(DEPTH):
        value = Add(value, const(1, "float32"))
    made, again = way((value, x))
    for _ in range(DEPTH):
        made = made.a
    assert made is again


@WAYS
def test_functions_may_nest_deep(way):
    buffer = decl_buffer((1,), "float32", "A")
    body = BufferStore(buffer, const(1, "float32"), (const(0),))
    for n in range(DEPTH):
        body = For(Var(f"i{n}", "int32"), const(0), const(1), ForKind.SERIAL, body)
    param = Var("a", "handle")
    function = way(PrimFunc((param,), body, buffer_map={param: buffer}))
    statement = function.body
    for _ in range(DEPTH):
        statement = statement.body
    assert statement.buffer is function.buffer_map[function.params[0]]


@WAYS
def test_modules_are_the_same_programs(way):
    mod = module(PROGRAM)
    made = way(mod)
    assert made is not mod
    assert_structural_equal(made, mod)
    assert made.script() == mod.script()
    made["other"] = made["main"]
    assert "other" not in mod


def test_what_is_one_object_is_one_in_a_pickle():
    mod = module(PROGRAM)
    buffer = next(iter(mod["main"].buffer_map.values()))
    var, shared = Var("n", "int32"), Var("n", "int32") + 1
    made, found, again = pickled((mod["main"], buffer, [var, Evaluate(var + shared + shared)]))
    assert found is made.buffer_map[made.params[0]]
    assert again[1].value.a.a is again[0]
    assert again[1].value.b is again[1].value.a.b


def test_what_analyses_keep_in_nodes_is_not_pickled():
    func = module(PROGRAM)["main"]
    before = pickle.dumps(func)
    assert accesses_in(func.body)
    assert pickle.dumps(func) == before
    assert len(accesses_in(pickle.loads(before).body)) == len(accesses_in(func.body))


def test_a_deep_copy_of_a_schedule_is_a_copy():
    sch = Schedule(module(PROGRAM), seed=3)
    i, j = sch.get_loops("B")
    for other in (copy.copy(sch), copy.deepcopy(sch), copy.deepcopy({"sch": sch, "i": i})["sch"]):
        other.split(i, other.sample_perfect_tile(i, 2))
        other.parallel(j)
        assert "T.parallel" not in sch.mod.script()
        assert len(sch.trace.insts) == 2
    assert copy.deepcopy((i, sch.get_block("B")))[0] is i


def test_a_schedule_goes_on_after_it_was_pickled():
    sch = Schedule(module(PROGRAM), seed=3)
    i, j = sch.get_loops("B")
    sch.set_scope("B", 0, "shared")
    sch.transform_layout("B", ("write", 0), lambda i, j: [j, i])
    other, outer, inner = pickled((sch, i, j))
    for one, loops in ((sch, (i, j)), (other, (outer, inner))):
        one.split(loops[0], one.sample_perfect_tile(loops[0], 2))
        one.vectorize(loops[1])
    assert_structural_equal(other.mod, sch.mod)
    assert str(other.trace) == str(sch.trace)


@WAYS
def test_traces_apply_again(way):
    sch = Schedule(module(PROGRAM), seed=3)
    (i, _) = sch.get_loops("B")
    sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.annotate("B", "key", [1, "text"])
    sch.transform_layout("B", ("write", 0), lambda i, j: [j, i])
    trace = way(sch.trace)
    assert isinstance(trace, Trace)
    assert str(trace) == str(sch.trace)
    again = Schedule(module(PROGRAM))
    trace.apply_to_schedule(again, remove_postproc=False)
    assert_structural_equal(again.mod, sch.mod)


def test_models_and_long_programs():
    stages = [placeholder((8,), name="a")]
    for n in range(40):
        stages.append(compute((8,), lambda i: stages[-1][i] + T.float32(1), name=f"t{n}"))
    function = create_prim_func([stages[0], stages[-1]])
    assert_structural_equal(pickled(function), function)
    model = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2, "n"), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            z = R.multiply(y, y)
            R.output(z)
        return z
""")
    made = pickled(model)
    assert_structural_equal(made, model)
    assert made.script() == model.script()
    assert mlcweb.ir.structural_hash(made) == mlcweb.ir.structural_hash(model)
