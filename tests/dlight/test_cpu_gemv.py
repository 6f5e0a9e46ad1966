"""The rule for products of a matrix and a vector on processors makes TVM's schedule, and this
computes what the function computed before."""

from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import dlight
from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source
from tests.dlight.gpu_programs import PROGRAMS, program
from tests.oracle.answering import answering

ASK = Path(__file__).with_name("ask_tvm_rules.py")
KNOWN = ("matvec", "matvec_uneven", "matvec_relu", "matvec_batch", "matvec_packed", "matvec_dense")


def scheduled(mod, target):
    with tvm.target.Target(target):
        return dlight.ApplyDefaultSchedule(dlight.cpu.GEMV())(mod)


def is_scheduled(mod):
    return "tir.is_scheduled" in mod["main"].attrs


def run(mod, target, arrays):
    device = [tvm.nd.array(array) for array in arrays]
    tvm.build(mod, target=target)["main"](*device)
    return device[-1].numpy()


@pytest.mark.parametrize("target", ["llvm", "wasm"])
@pytest.mark.parametrize("name", KNOWN)
def test_keeps_the_numbers(name, target):
    plain = program(name)
    mod = scheduled(plain, target)
    assert is_scheduled(mod)
    generator = np.random.default_rng(1)
    arrays = []
    for buffer in plain["main"].buffer_map.values():
        shape = [extent.value for extent in buffer.shape]
        numbers = generator.integers(0, 99, shape)
        arrays.append((numbers / 99 if "float" in buffer.dtype else numbers).astype(buffer.dtype))
    expected = run(plain, "interpreter", arrays)
    np.testing.assert_allclose(run(mod, target, arrays), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["matmul", "softmax", "matvec_matmul", "column_sum", "pool"])
def test_leaves_other_functions(name):
    assert not is_scheduled(scheduled(program(name), "llvm"))


def test_is_for_processors():
    assert not is_scheduled(scheduled(program("matvec"), "cuda"))


@pytest.mark.oracle
@pytest.mark.thorough
def test_schedules_are_those_of_tvm(oracle_python):
    equal = 0
    with answering(oracle_python, ASK) as ask:
        for name in PROGRAMS:
            mod = program(name)
            text = mod.script(dialect="s_tir")
            answer = ask({"module": text, "rules": ["GEMV"], "target": "llvm"})
            ours = scheduled(mod, "llvm")
            assert is_scheduled(ours) == (answer["script"] is not None), name
            if is_scheduled(ours):
                theirs = from_source(answer["script"])["main"]
                assert_structural_equal(ours["main"].without_attr("tir.is_scheduled"), theirs)
                equal += 1
    assert equal >= len(KNOWN)
