"""Passes for constructs that a program has not leave it as it is, as TVM's do; others refuse it."""

import pytest

import mlcweb as tvm
from mlcweb.ir.errors import TVMError
from mlcweb.lower.construct_passes import CONSTRUCTS
from mlcweb.script import from_source

PLAIN = from_source("""@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16,), "float32")):
        D = T.alloc_buffer((16, 16))
        for i, j in T.grid(16, 16):
            with T.block("d"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.if_then_else(vi < 3, A[vi, vj] * T.float32(2), T.float32(0))
        for i, j in T.grid(16, 16):
            with T.block("c"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + D[vi, vj]""")


def make(name):
    return getattr(tvm.tir.transform, name)()


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_plain_program_stays_as_it_is(name):
    for mod in (PLAIN, tvm.lower(PLAIN)):
        assert make(name)(mod)["main"] is mod["main"]
        assert make(name).info.name == f"tir.{name}"


def scheduled(steps):
    sch = tvm.tir.Schedule(PLAIN)
    steps(sch, sch.get_loops("c"))
    return sch.mod


@pytest.mark.parametrize(
    ("names", "steps", "what"),
    [
        (
            "InjectPTXLDG32",
            lambda sch, loops: sch.bind(loops[0], "threadIdx.x"),
            "loops over threads",
        ),
    ],
)
def test_a_construct_is_refused(names, steps, what):
    for name in names.split():
        with pytest.raises(TVMError, match=f"{name}: the function has {what}.* here: "):
            make(name)(scheduled(steps))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("UseAssumeToReduceBranches", "T.evaluate(T.assume(A[0] == T.int8(0)))"),
    ],
)
def test_a_construct_of_a_script_is_refused(name, body):
    head = '@T.prim_func\ndef main(A: T.Buffer((4,), "int8")):\n    '
    func = from_source(head + body.replace(": A", ":\n        A"))
    with pytest.raises(TVMError, match=f"{name}: the function has"):
        make(name)(tvm.IRModule({"main": func}))


def test_what_is_hoisted_has_numbers():
    kinds, bindings = (
        tvm.tir.transform.HoistedConditionals, tvm.tir.transform.HoistedLetBindings
    )  # fmt: skip
    assert [kind.value for kind in (kinds.UsingBlockVar, kinds.All)] == [8, 15]
    assert [kind.value for kind in (bindings.Bind, bindings.LetStmt, bindings.All)] == [2, 2, 7]


def test_barriers_of_a_warp_are_refused_only_where_it_has_memory():
    threads = lambda sch, loops: sch.bind(loops[0], "threadIdx.x")  # noqa: E731
    mod = scheduled(threads)
    sync = tvm.tir.transform.ThreadSync("warp")
    assert sync(mod)["main"] is mod["main"]
    warp = scheduled(lambda sch, loops: (threads(sch, loops), sch.set_scope("d", 0, "warp")))
    with pytest.raises(TVMError, match="ThreadSync: the function has a warp's memory"):
        sync(warp)
