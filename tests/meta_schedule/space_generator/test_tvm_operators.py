"""The design spaces on a GPU of operators as Relax lowers them are those that a real TVM gave, and
its decisions lead through the post-processors to the same steps."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule.space_generator.test_tvm_spaces import without_decisions

HERE = Path(__file__).parent
ANSWERS = json.loads((HERE / "tvm_operators.json").read_text())


@pytest.mark.parametrize("name", ANSWERS)
def test_spaces_and_post_processing_are_those_of_tvm(name):
    answer = ANSWERS[name]
    mod = from_source(answer["module"])
    generator = PostOrderApply()
    target = Target(answer.get("target", "nvidia/tesla-p100"))
    generator._initialize_with_tune_context(SimpleNamespace(mod=mod, target=target, rand_state=1))
    spaces = generator.generate_design_space(mod)
    ours = [without_decisions(space.trace.as_python(dialect="s_tir")) for space in spaces]
    assert ours == answer["spaces"]
    for of_seed in answer["seeds"]:
        for space, (decisions, after, accepted) in zip(spaces, of_seed, strict=True):
            sch, chosen = Schedule(mod), iter(decisions)
            space.trace.apply_to_schedule(
                sch, remove_postproc=False, decision_provider=lambda *_, c=chosen: next(c)
            )
            before = len(sch.trace.as_python(dialect="s_tir"))
            sch.enter_postproc()
            assert generator.postprocs is not None
            assert all(each.apply(sch) for each in generator.postprocs) is accepted
            assert sch.trace.as_python(dialect="s_tir")[before:] == after


@pytest.mark.oracle
@pytest.mark.thorough
def test_tvm_answers_what_is_stored(oracle_python):
    done = subprocess.run(
        [oracle_python, str(HERE / "ask_tvm_operators.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ANSWERS
