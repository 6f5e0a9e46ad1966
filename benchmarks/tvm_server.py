"""Compiles and times programs with a real TVM: runs in a Python that has one, without mlcweb.

A question is a line of JSON on stdin, an answer a line on stdout: {"value": …} or {"error": …}.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import numpy as np
import tvm  # pyright: ignore[reportMissingImports]
from tvm import relax  # pyright: ignore[reportMissingImports]

MIN_BATCH_MS = 8
RENAMED = {
    "T.block(": "T.sblock(",
    "T.block_attr(": "T.sblock_attr(",
    "T.alloc_buffer(": "T.sblock_alloc_buffer(",
    "@T.prim_func": "@T.prim_func(s_tir=True)",
    "out_sinfo=": "out_ty=",
    '"tir.noalias"': '"tirx.noalias"',
}
"""The course's names of what TVM calls otherwise since."""

TIMERS: dict[str, Any] = {}


def parsed(script: str) -> Any:
    """The program."""
    pattern = "|".join(map(re.escape, RENAMED))
    text = re.sub(pattern, lambda match: RENAMED[match[0]], script)
    # A float32 that is a large integer must still be read as a number with a fraction.
    return tvm.script.from_source(re.sub(r"\((-?\d{19,})\)", r"(\1.0)", text))


def prepare(name: str, script: str, arrays: str, cpu: str) -> None:
    """Compile a program for a CPU, the generic one if it is "", run it once, and put its result in
    the place of the arrays, the last of which is for the result."""
    module = parsed(script)
    target = tvm.target.Target({"kind": "llvm", "num-cores": 1, **({"mcpu": cpu} if cpu else {})})
    loaded = np.load(arrays)
    values = [tvm.runtime.tensor(loaded[key]) for key in loaded.files]
    if isinstance(module["main"], relax.Function):
        values.pop()
        vm = relax.VirtualMachine(relax.build(module, target), tvm.cpu())
        result, time_evaluator = vm["main"](*values), vm.time_evaluator
    else:
        library = tvm.compile(module, target=target)
        library["main"](*values)
        result, time_evaluator = values[-1], library.mod.time_evaluator
    np.savez(arrays, result.numpy())
    evaluator = time_evaluator("main", tvm.cpu(), number=1, repeat=1, min_repeat_ms=MIN_BATCH_MS)
    TIMERS[name] = lambda: evaluator(*values).median


def answer(question: dict[str, str]) -> Any:
    match question:
        case {"prepare": name, "script": script, "arrays": arrays, "cpu": cpu}:
            return prepare(name, script, arrays, cpu)
        case {"sample": name}:
            return TIMERS[name]()
        case {"forget": name}:
            TIMERS.pop(name, None)
    return None


def main() -> None:
    # What TVM prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = {"value": answer(json.loads(line))}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()
