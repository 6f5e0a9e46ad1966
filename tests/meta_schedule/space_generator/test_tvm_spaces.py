"""The design spaces of programs are those that a real TVM gave, step for step, and its decisions
lead through the post-processors to the same steps."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import mlcweb.meta_schedule.postproc as postproc
import mlcweb.meta_schedule.schedule_rule as schedule_rule
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.tir import Schedule
from tests.meta_schedule.space_generator.cases import ANSWERS, CASES, answers, module, questions

ANSWERED = answers()
NAMES = {"ms": SimpleNamespace(schedule_rule=schedule_rule, postproc=postproc)}


def generator(name):
    case = CASES[name]
    kind = Target(case["target"]).kind.name
    made = PostOrderApply(
        sch_rules=eval(case["rules"], NAMES) if case["rules"] else kind,
        postprocs=eval(case["postprocs"], NAMES) if case["postprocs"] else kind,
        mutator_probs=kind,
    )
    target = Target(case["target"])
    made._initialize_with_tune_context(
        SimpleNamespace(mod=module(case["program"]), target=target, rand_state=1)
    )
    return made


def without_decisions(lines):
    return [re.sub(r"decision=(\[[^\]]*\]|[^,)]*)", "decision=_", line) for line in lines]


def before_postproc(lines):
    at = next(n for n, line in enumerate(lines) if "enter_postproc" in line)
    return lines[:at]


def decisions(lines):
    found = [re.search(r"decision=(\[[^\]]*\]|[^,)]*)", line) for line in lines]
    return [json.loads(match[1]) for match in found if match]


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
            chosen = iter(decisions(theirs["lines"]))
            sch = Schedule(mod)
            space.trace.apply_to_schedule(
                sch, remove_postproc=False, decision_provider=lambda *_, c=chosen: next(c)
            )
            sch.enter_postproc()
            assert made.postprocs is not None
            assert all(each.apply(sch) for each in made.postprocs) is theirs["accepted"]
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
