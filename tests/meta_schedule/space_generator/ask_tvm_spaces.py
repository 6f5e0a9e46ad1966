"""Asks a real TVM 0.27 for the design spaces of programs. Run by the interpreter that has it:
questions as JSON on standard input, answers on standard output.

A question is a `module` in TVM's spelling of today, `rules` and `postprocs` as Python expressions
over `ms` (None for the defaults of its `target`), and `seeds`. The answer lists, for each seed, the
spaces as lines of Python, those of the post-processors after `enter_postproc`, and whether they
accepted.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tvm
import tvm.s_tir.tensor_intrin.dot_product_common
from tvm.s_tir import meta_schedule as ms

RULES = {"ms": ms}


def spaces(question: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    module = tvm.script.from_source(question["module"])
    options = {}
    for name, argument in (("rules", "sch_rules"), ("postprocs", "postprocs")):
        if question.get(name):
            options[argument] = eval(question[name], RULES)
    generator = ms.space_generator.PostOrderApply(**options)
    ms.TuneContext(
        mod=module,
        target=tvm.target.Target(question["target"]),
        space_generator=generator,
        rand_state=seed,
        num_threads=1,
    )
    found = []
    for sch in generator.generate_design_space(module):
        sch.enter_postproc()
        accepted = all(postproc.apply(sch) for postproc in generator.postprocs)
        found.append({"lines": list(map(str, sch.trace.as_python())), "accepted": accepted})
    return found


if __name__ == "__main__":
    questions = json.load(sys.stdin)
    answers = [[spaces(question, seed) for seed in question["seeds"]] for question in questions]
    json.dump(answers, sys.stdout)
