"""Schedules functions by the rules of a real TVM 0.27. Run by the interpreter that has it:
questions on standard input and answers on standard output, each as JSON on a line.

A question has a `module` (a program in TVM's spelling of today), the `rules` by name and the
`target`; an answer has the `script` that TVM made of "main", or None where no rule knew it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tvm
import tvm.s_tir.tensor_intrin  # registers what tensor cores do
from tvm.s_tir import dlight


def answer(question: dict[str, Any]) -> dict[str, Any]:
    module = tvm.script.from_source(question["module"])
    rules_of_target = dlight.cpu if question["target"] == "llvm" else dlight.gpu
    rules = [getattr(rules_of_target, name)() for name in question["rules"]]
    with tvm.target.Target(question["target"]):
        try:
            scheduled = dlight.ApplyDefaultSchedule(*rules)(module)
        except Exception as error:
            return {"script": None, "error": f"{type(error).__name__}: {error}"}
    attrs = scheduled["main"].attrs
    if attrs is None or "tirx.is_scheduled" not in attrs:
        return {"script": None}
    scheduled["main"] = scheduled["main"].without_attr("tirx.is_scheduled")
    return {"script": scheduled.script()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
