"""Random walks, repeated by a real TVM: it accepts and refuses what we do, and makes the same of
it, or at least a program that computes the same. `walk_differences.py` lists the differences.
"""

from collections import Counter

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.structural import StructuralMismatch
from mlcweb.script import from_source
from tests.oracle.walk_differences import reason
from tests.oracle.walks import random_walk
from tests.random_programs.plain_python import evaluate

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

CHUNK = 50


class Numbers:
    """What the program of a walk computes, to compare TVM's versions of it with."""

    def __init__(self, program):
        self.arrays = program.inputs()
        self.wanted = evaluate(program.text, self.arrays)

    def fault(self, script):
        """What is wrong with a program that TVM has printed; empty if nothing is."""
        try:
            module = from_source(script)
            given = [mlcweb.nd.array(array) for array in self.arrays]
            mlcweb.build(module, target="interpreter")["main"](*given)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        found = [array.numpy() for array in given]
        is_right = all(
            np.array_equal(array, want, equal_nan=want.dtype.kind == "f")
            for array, want in zip(found, self.wanted, strict=True)
        )
        return "" if is_right else "wrong numbers"


def differences(walk, replay):
    """Where TVM does another thing than we do: the primitive, what happens, and the words of who
    refuses."""
    answer = replay(walk.question())
    if "unread" in answer:
        return [("", "TVM does not read", answer["unread"])]
    if "crashed" in answer:
        number = answer["crashed"]
        return [(walk.steps[number].primitive if number >= 0 else "", "TVM crashes", "")]
    numbers = Numbers(walk.program)
    found = []
    for step, made in zip(walk.steps, answer["steps"], strict=False):
        if not step.refusal and "error" in made:
            earlier = _where(walk, replay, numbers)
            found.append(earlier or (step.primitive, "TVM refuses", made["error"]))
        elif step.refusal and "script" in made:
            is_wrong = numbers.fault(made["script"])
            what = "we refuse what TVM gets wrong" if is_wrong else "we refuse"
            found.append((step.primitive, what, step.refusal))
    if "script" in answer and (fault := _fault_of_result(walk, answer["script"], numbers)):
        found.append(_where(walk, replay, numbers) or ("", "the result differs", fault))
    return found


def _fault_of_result(walk, script, numbers):
    try:
        assert_structural_equal(from_source(script), walk.after)
    except StructuralMismatch:
        return numbers.fault(script)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _where(walk, replay, numbers):
    """The first step after which TVM's program is wrong."""
    answer = replay(walk.question(scripts=True))
    for step, made in zip(walk.steps, answer.get("steps", ()), strict=False):
        if not step.refusal and "script" in made and (fault := numbers.fault(made["script"])):
            return (step.primitive, "TVM goes wrong", fault)
    return None


@pytest.mark.parametrize("first", range(0, 1100, CHUNK))
def test_tvm_walks_the_same_way(first, replay):
    unexplained = Counter()
    for seed in range(first, first + CHUNK):
        walk = random_walk(seed)
        if walk is None:
            continue
        for difference in differences(walk, replay):
            if reason(*difference) is None:
                unexplained[f"seed {seed}: {difference}"] += 1
    assert not unexplained, "\n".join(unexplained)
