"""Rules for devices with threads make the schedules that TVM's make, and these compute what the
functions computed before."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import dlight, te, topi
from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source
from tests.dlight.gpu_programs import PROGRAMS, operators, program
from tests.oracle.answering import answering

ASK = Path(__file__).with_name("ask_tvm_rules.py")
GPU = "nvidia/geforce-rtx-3070"
RULES = {
    "Fallback": 73, "GEMV": 6, "GeneralReduction": 24, "LowBatchGEMV": 0, "Matmul": 23,
    "RMSNorm": 1, "Reduction": 23, "Transpose": 3,
}  # fmt: skip
"""For how many programs, at the least, each makes the schedule that TVM's makes."""
SIZE = 37
"""Of symbolic extents."""

KNOWN = {
    "Fallback": "batch_matmul_symbolic",
    "GEMV": "matvec matvec_uneven matvec_relu matvec_batch matvec_packed matvec_dense",
    "GeneralReduction": "row_mean softmax softmax_symbolic layer_norm rms_norm argmax",
    "LowBatchGEMV": "dense_few_rows",
    "Matmul": (
        "matmul matmul_relu matmul_symbolic matmul_of_sum matmul_transposed batch_matmul "
        "matmul_half dense_few_rows conv2d"
    ),
    "RMSNorm": "rms_norm_half",
    "Reduction": (
        "row_sum row_mean row_scaled sum_all sum_of_middle column_sum column_sum_uneven "
        "column_mean column_scaled matvec matvec_uneven matvec_relu"
    ),
    "Transpose": "transpose transpose_of_sum",
}
"""What each rule schedules, for one."""

DECLINED = {
    # A sum of symbolic length may be shorter than its parts are many: parts without an init.
    ("row_sum_symbolic", "Reduction"),
    # TVM binds a few loops of such a product, and leaves the others without threads.
    ("matmul_symbolic", "LowBatchGEMV"),
    # TVM leaves what comes after the transposition without threads.
    ("transpose_relu", "Transpose"),
}
"""What a rule of TVM schedules, and ours leaves alone."""

DIFFERENT = {
    # TVM widens an extent and narrows it again.
    ("batch_matmul_symbolic", "GeneralReduction"),
    # TVM's predicate says twice which rows there are, of which once is enough.
    ("dense_few_rows", "LowBatchGEMV"),
    # TVM leaves the strides of an intrinsic's views int32, and widens them at each use.
    ("operator tensor_cores_relu", "Matmul"),
}


def scheduled(mod, *rules, target=GPU):
    with tvm.target.Target(target):
        return dlight.ApplyDefaultSchedule(*(getattr(dlight.gpu, rule)() for rule in rules))(mod)


def is_scheduled(mod):
    return "tir.is_scheduled" in mod["main"].attrs


@cache
def all_programs():
    """All programs by name, and their text for TVM."""
    programs = {name: program(name) for name in PROGRAMS}
    programs |= {f"operator {name}": mod for name, mod in operators().items()}
    return {name: (mod, mod.script(dialect="s_tir")) for name, mod in programs.items()}


@pytest.fixture(scope="module")
def ask_tvm(oracle_python):
    with answering(oracle_python, ASK) as ask:
        yield ask


@pytest.mark.oracle
@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES)
def test_schedules_are_those_of_tvm(rule, ask_tvm):
    equal = 0
    for name, (mod, text) in all_programs().items():
        answer = ask_tvm({"module": text, "rules": [rule], "target": GPU})
        ours = scheduled(mod, rule)
        if (name, rule) in DECLINED or answer["script"] is None:
            assert not is_scheduled(ours)
            continue
        assert is_scheduled(ours)
        if (name, rule) in DIFFERENT:
            continue
        theirs = from_source(answer["script"])["main"]
        assert_structural_equal(ours["main"].without_attr("tir.is_scheduled"), theirs)
        equal += 1
    assert equal >= RULES[rule]


def arguments(func):
    """Random inputs, and room for the result."""
    generator = np.random.default_rng(1)
    arrays = []
    for buffer in func.buffer_map.values():
        shape = [getattr(extent, "value", SIZE) for extent in buffer.shape]
        if buffer.dtype.startswith("float"):
            arrays.append(generator.standard_normal(shape).astype(buffer.dtype))
        else:
            arrays.append(generator.integers(0, 2**31, shape).astype(buffer.dtype))
    return arrays


def run(mod, target, arrays):
    device = tvm.device("cuda" if "cuda" in target else "cpu")
    arrays = [tvm.nd.array(array, device) for array in arrays]
    tvm.build(mod, target=target)["main"](*arrays)
    return arrays[-1].numpy()


def check(name, rule, target):
    plain = program(name)
    changed = scheduled(plain, rule, target=target)
    assert is_scheduled(changed)
    arrays = arguments(plain["main"])
    expected = run(plain, "wasm", arrays)
    got = run(changed, "cuda -device=simulated", arrays)
    tolerance = 1e-2 if expected.dtype == "float16" else 1e-4
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rule", KNOWN)
def test_numbers_of_what_a_rule_knows(rule):
    for name in KNOWN[rule].split():
        check(name, rule, GPU)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_of_any_function(name):
    check(name, "Fallback", GPU)


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["metal", "opencl", "rocm", "vulkan", "webgpu"])
def test_numbers_for_other_devices(target):
    for rule in KNOWN:
        if rule != "RMSNorm":
            for name in KNOWN[rule].split()[:2]:
                check(name, rule, target)


def test_the_first_rule_that_knows_a_function_schedules_it():
    rules = ("Matmul", "GEMV", "Reduction", "GeneralReduction", "Fallback")
    for name, rule in (
        ("matmul", "Matmul"), ("matvec", "GEMV"), ("row_sum", "Reduction"),
        ("softmax", "GeneralReduction"), ("pool", "Fallback"),
    ):  # fmt: skip
        mod = program(name)
        assert_structural_equal(scheduled(mod, *rules)["main"], scheduled(mod, rule)["main"])


def test_what_reduces_the_results_of_other_rows_is_not_kept_in_shared_memory():
    x = te.placeholder((te.var("n"), 8), "float32", "x")
    with tvm.target.Target(GPU):
        mod = tvm.IRModule({"main": te.create_prim_func([x, topi.argsort(x, dtype="int32")])})
    assert not is_scheduled(scheduled(mod, "GeneralReduction"))
    assert is_scheduled(scheduled(mod, "Fallback"))
