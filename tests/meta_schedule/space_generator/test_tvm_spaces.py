"""The design spaces of programs are those that a real TVM gave, step for step, and its decisions
lead through the post-processors to the same steps."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.meta_schedule.space_generator.cases import ANSWERS, CASES, answers, module, questions
from tests.meta_schedule.space_generator.replaying import finished, generator

ANSWERED = answers()


def without_decisions(lines):
    return [re.sub(r"decision=(\[[^\]]*\]|[^,)]*)", "decision=_", line) for line in lines]


def before_postproc(lines):
    at = next(n for n, line in enumerate(lines) if "enter_postproc" in line)
    return lines[:at]


@pytest.mark.parametrize("name", CASES)
def test_spaces_are_those_of_tvm(name):
    spaces = generator(name).generate_design_space(module(CASES[name]["program"]))
    ours = [without_decisions(space.trace.as_python(dialect="s_tir")) for space in spaces]
    for of_seed in ANSWERED[name]:
        theirs = [without_decisions(before_postproc(space["lines"])) for space in of_seed]
        assert ours == theirs


@pytest.mark.parametrize("name", CASES)
def test_post_processing_is_that_of_tvm(name):
    made = generator(name)
    mod = module(CASES[name]["program"])
    spaces = made.generate_design_space(mod)
    for of_seed in ANSWERED[name]:
        for space, theirs in zip(spaces, of_seed, strict=True):
            sch, accepted = finished(made, mod, space.trace, theirs["lines"])
            assert accepted is theirs["accepted"]
            assert sch.trace.as_python(dialect="s_tir") == theirs["lines"]


@pytest.mark.oracle
@pytest.mark.thorough
def test_tvm_answers_what_is_stored(oracle_python):
    script = Path(__file__).parent / "ask_tvm_spaces.py"
    done = subprocess.run(
        [oracle_python, str(script)], input=json.dumps(questions()), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert dict(zip(CASES, json.loads(done.stdout), strict=True)) == json.loads(ANSWERS.read_text())
