"""Random programs and random schedules of them: every target computes what Python itself computes.

Each seed gives one program (see programs.py), run by the interpreter unscheduled, and then, after
whatever steps are accepted, on every target. `make test` tries 675 of them, `make test-all` 20,000,
or as many as RANDOM_PROGRAMS says. What fails prints the program and its trace.
"""

import os
import re
from random import Random

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.errors import AssertionFailed
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.random_programs.plain_python import evaluate
from tests.random_programs.region_checks import with_region_checks
from tests.random_programs.stages import (
    WEIGHTS,
    WITHOUT_BLOCKS,
    elementwise,
    guarded,
    random_program,
    reduction,
)
from tests.random_programs.vectors import MORE_STAGES
from tests.random_schedules import EVERY_STEP, random_step

TARGETS = ("interpreter", "numpy", "wasm -relaxed_madd=0")
LLVM = "llvm -mcpu=host -relaxed_madd=0"
"""It takes as long as the others together, so it is tried with every fourth program alone, and of
many programs with every eighth."""
CHECKED = "wasm -relaxed_madd=0 -bounds_check=1"
"""As many others are tried with checks, none of which may find anything."""
STEPS, ATTEMPTS = 5, 16
CHUNK, MANY = 25, 100
PROGRAMS = int(os.environ.get("RANDOM_PROGRAMS", 20_000))


def walk(seed, mod):
    """A schedule of a few accepted steps."""
    random = Random(seed)
    sch = Schedule(mod, seed=seed + 1, error_render_level="none")
    accepted = 0

    def choose(options):
        if not options:
            raise IndexError("nothing to choose from")
        return random.choice(options)

    for _ in range(ATTEMPTS):
        try:
            accepted += random_step(sch, choose, EVERY_STEP)
        except Exception as error:
            raise AssertionError(f"{sch.trace}\nThe next step fails with {error!r}") from error
        if accepted == STEPS:
            break
    return sch


def check_numbers(mod, target, arrays, wanted, message):
    """The message is made by a function, since most are never read."""
    given = [mlcweb.nd.array(array) for array in arrays]
    try:
        mlcweb.build(mod, target=target)["main"](*given)
    except Exception as error:
        raise AssertionError(f"{target}: {error!r}\n{message()}") from error
    for array, want in zip(given, wanted, strict=True):
        if not np.array_equal(found := array.numpy(), want, equal_nan=want.dtype.kind == "f"):
            np.testing.assert_array_equal(found, want, err_msg=f"{target}\n{message()}")


HIDES = re.compile(r"sch\.(unsafe_hide_buffer_access|annotate_buffer_access|cache_index)\(")
"""Steps after which blocks read what they do not declare, as TVM's do."""


def uncovered_access(mod, arrays):
    """What says which access no region of its block covers; None where there is no such one."""
    checked = mlcweb.build(with_region_checks(mod), target="interpreter")
    try:
        checked["main"](*map(mlcweb.nd.array, arrays))
    except AssertionFailed as error:
        return error
    return None


def check(seed, among=tuple(WEIGHTS), symbolic=False, turns=4):
    """Compare a program, and a schedule of it, with Python on all targets; one in `turns` programs
    on LLVM, another with checks."""
    program = random_program(seed, among, symbolic)
    arrays = program.inputs()
    wanted = evaluate(program.text, arrays)
    mod = IRModule({"main": from_source(program.text)})
    made = [f"seed {seed}", program.text]

    def message():
        return "\n".join(map(str, made))

    check_numbers(mod, "interpreter", arrays, wanted, message)
    declares_all = uncovered_access(mod, arrays) is None
    try:
        sch = walk(seed, mod)
    except AssertionError as error:
        raise AssertionError(f"{message()}\n{error}") from error
    text, changed = sch.mod.script(), sch.mod is not mod
    if changed:
        made += [sch.trace, text]
    try:
        assert_structural_equal(from_source(text), sch.mod)
    except Exception as error:
        raise AssertionError(f"What is printed reads back as {error}\n{message()}") from error
    if declares_all and changed and not HIDES.search(str(sch.trace)):
        uncovered = uncovered_access(sch.mod, arrays)
        assert uncovered is None, f"{uncovered}\n{message()}"
    targets = (*TARGETS, *(LLVM, CHECKED)[seed % turns : seed % turns + 1])
    for target in targets if changed else targets[1:]:
        try:
            check_numbers(sch.mod, target, arrays, wanted, message)
        except AssertionError as error:
            # As in TVM, it is the build that refuses threads that cannot wait for each other.
            has_threads = changed and "thread_binding" in program.text
            if not (has_threads and isinstance(error.__cause__, ThreadError)):
                raise


@pytest.mark.parametrize("first", range(0, 150, CHUNK))
def test_loops_keep_the_order_that_matters(first):
    for seed in range(first, first + CHUNK):
        check(seed, WITHOUT_BLOCKS)


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_targets_and_schedules_compute_what_python_computes(first):
    for seed in range(first, first + CHUNK):
        check(seed)


@pytest.mark.parametrize("first", range(0, 100, CHUNK))
def test_symbolic_shapes_strides_and_offsets(first):
    for seed in range(first, first + CHUNK):
        check(seed, symbolic=True)


@pytest.mark.parametrize("first", range(0, 50, CHUNK))
def test_vectors_and_memory_of_every_kind(first):
    for seed in range(first, first + CHUNK):
        check(seed, (*MORE_STAGES, elementwise, reduction))


@pytest.mark.parametrize("first", range(0, 25, CHUNK))
def test_vectors_of_symbolic_shapes(first):
    for seed in range(first, first + CHUNK):
        check(seed, (*MORE_STAGES, *WEIGHTS), symbolic=True)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(150, 450, MANY))
def test_many_more_loops(first):
    for seed in range(first, first + MANY):
        check(seed, WITHOUT_BLOCKS)


GUARDED = (guarded, elementwise, reduction)


@pytest.mark.parametrize("first", range(0, 50, CHUNK))
def test_predicates_that_keep_blocks_from_failing(first):
    for seed in range(first, first + CHUNK):
        check(seed, GUARDED)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(50, 350, MANY))
def test_many_more_predicates(first):
    for seed in range(first, first + MANY):
        check(seed, GUARDED)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(50, 350, MANY))
def test_many_more_vectors(first):
    for seed in range(first, first + MANY):
        check(seed, (*MORE_STAGES, elementwise, reduction))


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(100, 600, MANY))
def test_many_more_symbolic_ones(first):
    for seed in range(first, first + MANY):
        check(seed, symbolic=True)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(300, PROGRAMS - 500, MANY))
def test_many_more(first):
    for seed in range(first, first + MANY):
        check(seed, turns=8)
