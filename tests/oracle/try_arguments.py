"""What a real TVM 0.27 makes of calls of schedule primitives. Run by the interpreter that has it:
questions on standard input and answers on standard output, each as JSON on a line.

A question is a `module`, a `prelude` and `calls`, all of Python but the module; the answer has in
`errors` for each call the class of the error, an empty string, or None where TVM breaks down. Each
is asked of a copy of this process, and of another one after it has broken down.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import tvm
from tvm import s_tir
from tvm.script import tirx as T


def errors(question: dict[str, Any], first: int) -> Iterator[str]:
    """The class of the error of each call from one on."""
    sch = s_tir.Schedule(tvm.script.from_source(question["module"]), error_render_level="fast")
    names = {"T": T, "np": np, "s_tir": s_tir, "BlockRV": s_tir.schedule.SBlockRV, "sch": sch}
    for line in question["prelude"]:
        exec(line, names)
    for call in question["calls"][first:]:
        error = ""
        try:
            eval(call, {**names, "sch": sch.copy()})
        except Exception as raised:
            error = type(raised).__name__
        yield error


def errors_of_copy(question: dict[str, Any], first: int) -> list[str]:
    """What a copy of this process says before it ends."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(write_end, "w") as output:
            for error in errors(question, first):
                print(error, file=output, flush=True)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answers:
        result = answers.read().splitlines()
    os.waitpid(child, 0)
    return result


if __name__ == "__main__":
    for line in sys.stdin:
        question = json.loads(line)
        answer: list[str | None] = []
        while len(answer) < len(question["calls"]):
            answer += errors_of_copy(question, len(answer))
            if len(answer) < len(question["calls"]):
                answer.append(None)
        print(json.dumps({"errors": answer}), flush=True)
