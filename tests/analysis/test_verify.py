"""The verifiers find each kind of fault, and name the step or pass that made it."""

import pytest

import mlcweb
from mlcweb.analysis.verify import (
    VerificationError,
    VerifyEachPass,
    verify_well_formed,
)
from mlcweb.ir import DiagnosticError, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.transform import PassContext, module_pass
from mlcweb.ir.visitor import Mutator
from mlcweb.lower import lower
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.narrow_floats import emulate_narrow_floats
from mlcweb.lower.narrow_formats import BFLOAT16, FLOAT16
from mlcweb.lower.transform import prim_func_pass
from mlcweb.script import from_source
from mlcweb.tir import IntImm, Schedule
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import decl_buffer

COPY = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, 7 - i)
            B[v] = A[v]
"""


class _Spoil(Mutator):
    """Replaces the nodes of one class."""

    def __init__(self, kind, change):
        self.kind, self.change = kind, change

    def rewrite(self, node):
        node = self.rewrite_children(node)
        return self.change(node) if isinstance(node, self.kind) else node


def spoiled(kind, change, func=None):
    func = func or from_source(COPY)
    return replace(func, body=_Spoil(kind, change).rewrite(func.body))


ELSEWHERE = decl_buffer((8,), "float32", "C")
UNKNOWN = E.Var("n", "int32")

FAULTS = {
    "binding leaves its domain": (
        S.BlockRealize,
        lambda r: replace(r, iter_values=tuple(0 - value.b for value in r.iter_values)),
        r'"v" of the block "B" has the domain \[0, 8\), but .* is -7',
    ),
    "negative extent": (
        S.For,
        lambda loop: replace(loop, extent=IntImm("int32", -1)),
        'The loop "i" has -1 iterations',
    ),
    "undeclared buffer": (
        S.BufferStore,
        lambda store: replace(store, buffer=ELSEWHERE),
        'The buffer "C" is used but not declared',
    ),
    "undeclared region": (
        S.Block,
        lambda block: replace(
            block, reads=tuple(replace(read, buffer=ELSEWHERE) for read in block.reads)
        ) if block.reads else block,
        'declares an access of "C"',
    ),
    "unbound variable": (
        S.BufferStore,
        lambda store: replace(store, indices=(UNKNOWN,)),
        '"n" has no value',
    ),
    "other type": (
        S.BufferStore,
        lambda store: replace(store, value=IntImm("int32", 1)),
        'A value of type int32 is stored in "B" as float32',
    ),
    "operands of two types": (
        S.BufferStore,
        lambda store: replace(store, value=E.Add(store.value, IntImm("int32", 1))),
        "are of types float32 and int32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_programs_with_blocks(name):
    kind, change, message = FAULTS[name]
    verify_well_formed(from_source(COPY))
    with pytest.raises(DiagnosticError, match=message):
        verify_well_formed(spoiled(kind, change))


@pytest.mark.parametrize("name", ["negative extent", "undeclared buffer", "other type"])
def test_faults_of_loops(name):
    kind, change, message = FAULTS[name]
    loops = lower(from_source(COPY))
    verify_well_formed(loops)
    with pytest.raises(DiagnosticError, match=message):
        verify_well_formed(spoiled(kind, change, loops))


def test_bindings_under_conditions_that_keep_them_inside():
    verify_well_formed(
        from_source("""
@T.prim_func
def main(B: T.Buffer((10,), "int32")):
    for i, j in T.grid(3, 4):
        with T.block("B"):
            v = T.axis.spatial(10, i * 4 + j)
            T.where(i * 4 + j < 10)
            B[v] = v
    for i in range(12):
        if 2 <= i:
            with T.block("C"):
                v = T.axis.spatial(10, 11 - i)
                B[v] = v
    for i in range(5):
        if 1 <= i:
            with T.block("D"):
                v = T.axis.spatial(9, 8 // i + i - 1)
                B[v] = v
""")
    )


def test_bindings_under_conditions_that_do_not_hold():
    func = from_source("""
@T.prim_func
def main(B: T.Buffer((10,), "int32")):
    for i in range(12):
        if i < 10:
            B[i] = 0
        else:
            with T.block("C"):
                v = T.axis.spatial(10, i)
                B[v] = v
""")
    with pytest.raises(DiagnosticError, match=r'"v" of the block "C" has the domain .* i is 11'):
        verify_well_formed(func)


@pytest.fixture
def heard():
    """The names of what an instrument hears of."""
    names = []

    class Hearing:
        def run_after_pass(self, mod, info):
            names.append(info.name)

        def run_after_step(self, mod, info):
            names.append("step " + info.name)

    with PassContext(instruments=[Hearing()]):
        yield names


def test_instruments_hear_of_steps_and_of_the_passes_of_lowering(heard):
    sch = Schedule(from_source(COPY))
    sch.split(sch.get_loops("B")[0], [2, 4])
    mlcweb.build(sch.mod, target="wasm")
    assert heard[:5] == [
        "step split",
        "tir.ExpandInstructions",
        "tir.SetLayoutsOfArrays",
        "tir.AssumeNoAlias",
        "tir.LowerInitBlock",
    ]
    assert {"tir.Simplify", "tir.VectorizeLoop"} < set(heard)


def test_the_error_names_the_pass():
    @module_pass(opt_level=0)
    def forget(mod, ctx):
        kind, change, _ = FAULTS["undeclared buffer"]
        return IRModule({"main": spoiled(kind, change, mod["main"])})

    wrong = pytest.raises(VerificationError, match='After forget, "main" is not well formed')
    with PassContext(instruments=[VerifyEachPass()]), wrong:
        forget(IRModule({"main": from_source(COPY)}))


IN_BFLOAT16 = """
@T.prim_func
def main(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((4, 2), "bfloat16")):
    for i in T.vectorized(8):
        B[i // 2, i % 2] = A[i] + A[i]
"""


@pytest.mark.parametrize(
    ("removing", "text", "removed"),
    [
        (convert_blocks_to_loops, COPY, "blocks"),
        (emulate_narrow_floats(BFLOAT16), IN_BFLOAT16, "arithmetic of bfloat16"),
        (
            emulate_narrow_floats(FLOAT16),
            IN_BFLOAT16.replace("bfloat", "float"),
            "arithmetic of float16",
        ),
        (flatten_buffers, IN_BFLOAT16, "accesses by several indices"),
    ],
)
def test_what_a_pass_has_removed_stays_away(removing, text, removed):
    func = from_source(text)

    @prim_func_pass(opt_level=0)
    def undo(lowered, mod, ctx):
        return func

    with PassContext(instruments=[VerifyEachPass()]):
        undo(IRModule({"main": func}))
        removing(IRModule({"main": func}))
        with pytest.raises(VerificationError, match=f"After undo, .* it has {removed}"):
            undo(removing(IRModule({"main": func})))


def test_a_pass_that_failed_hides_nothing_from_those_around_it():
    func = from_source(COPY)

    @module_pass(opt_level=0)
    def fail(mod, ctx):
        raise ValueError("failed")

    @module_pass(opt_level=0)
    def build_another(mod, ctx):
        loops = convert_blocks_to_loops(mod)
        with pytest.raises(ValueError, match="failed"):
            fail(loops)
        return mod

    with PassContext(instruments=[VerifyEachPass()]):
        build_another(IRModule({"main": func}))
