"""Runs schedule cases, and reads programs that we printed, with a real TVM 0.27. Run by the
interpreter that has it: questions on standard input and answers on standard output, each as JSON
on a line.

A question is a case in TVM's spelling of today, with what we made of it: `module`, `schedule`,
`seed`, `run`, `intrinsics` (description and implementation by name), and, where we accepted it,
`result` (the module as we print it), `trace` (as Python) and `record` (as JSON).
"""

from __future__ import annotations

import json
import linecache
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import tvm
from numbers_of_cases import checksums, draw_inputs, shape_of
from tvm import s_tir, tirx
from tvm.script import ir as I
from tvm.script import tirx as T

NAMES = {"tvm": tvm, "np": np, "T": T, "I": I, "tirx": tirx, "s_tir": s_tir}


def defined(text: str, filename: str) -> dict[str, Any]:
    """The names that a program defines; functions in it can be looked up by their source."""
    names = {**NAMES, "__name__": "case"}
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)
    return names


def run(module: Any, run: dict[str, Any]) -> list[dict[str, float]]:
    """Checksums of all parameters after the module has run."""
    buffers = [param.ty for param in module[run["func"]].params]
    parameters = [(str(b.dtype), shape_of(b.shape, run.get("dims", {}))) for b in buffers]
    arguments = [tvm.runtime.tensor(array) for array in draw_inputs(parameters, run["seed"])]
    target = tvm.target.Target({"kind": "llvm", "num-cores": 1})
    tvm.compile(module, target=target)[run["func"]](*arguments)
    return [checksums(argument.numpy()) for argument in arguments]


def plain(value: Any) -> Any:
    """A record of TVM's as JSON has it."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    return plain(value.value) if hasattr(value, "value") else [plain(item) for item in value]


def answer(number: int, question: dict[str, Any]) -> dict[str, Any]:
    module = tvm.script.from_source(question["module"])
    for name, functions in question.get("intrinsics", {}).items():
        parts = [tvm.script.from_source(function) for function in functions]
        s_tir.TensorIntrin.register(name, *parts, override=True)
    schedule = defined(question["schedule"], f"<schedule {number}>")["apply"]
    sch = s_tir.Schedule(module, seed=question.get("seed"))
    try:
        schedule(sch)
    except Exception as error:
        return {"error": type(error).__name__}
    found: dict[str, Any] = {"script": sch.mod.script(), "trace": str(sch.trace)}
    found["record"] = plain(sch.trace.as_json())
    if question.get("run"):
        found["run"] = run(sch.mod, question["run"])
    if "result" in question:
        ours = tvm.script.from_source(question["result"])
        # TVM itself does not read all it prints as what it printed: a pointer's type gets lost.
        tvm.ir.assert_structural_equal(ours, tvm.script.from_source(found["script"]))
        found["pasted"] = ours.script()
        replayed = s_tir.Schedule(module)
        if "get_output_blocks(block=" not in question["trace"]:  # which TVM prints but refuses
            defined(question["trace"], f"<trace {number}>")["apply_trace"](replayed)
            tvm.ir.assert_structural_equal(replayed.mod, sch.mod)
        loaded = s_tir.Schedule(module)
        s_tir.Trace.apply_json_to_schedule(question["record"], loaded)
        tvm.ir.assert_structural_equal(loaded.mod, sch.mod)
    return found


def attempt(number: int, question: dict[str, Any]) -> dict[str, Any]:
    try:
        return answer(number, question)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    for number, line in enumerate(sys.stdin):
        print(json.dumps(attempt(number, json.loads(line))), flush=True)
