"""Replays walks through the schedule primitives with a real TVM 0.27. Run by the interpreter that
has it: walks on standard input and answers on standard output, each as JSON on a line.

A walk is a `module`, and `steps`: each the Python of a call in TVM's spelling of today, and whether
we have accepted it. The answer has an entry for each step: what TVM made an error of, or else, of
calls that we refused, the `script` of what it made; with `scripts` in the walk of all others, too.
Calls that we refused are tried on a copy. The walk ends at a step that TVM alone refuses. A TVM
that breaks down is replaced by another; the answer then has the `crashed` step alone.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import sys
from typing import Any

import tvm
from tvm import s_tir
from tvm.script import tirx as T

progress = mmap.mmap(-1, 8)
"""The step at work, for those who find the process dead."""


def at_work(step: int) -> None:
    progress[:] = step.to_bytes(8, "little", signed=True)


def replay(walk: dict[str, Any]) -> dict[str, Any]:
    at_work(-1)
    try:
        schedule = s_tir.Schedule(tvm.script.from_source(walk["module"]), error_render_level="fast")
    except Exception as error:
        return {"unread": said(error)}
    names = {"T": T, "s_tir": s_tir, "tvm": tvm}
    found: list[dict[str, str]] = []
    for number, (call, is_accepted) in enumerate(walk["steps"]):
        at_work(number)
        sch = schedule if is_accepted else schedule.copy()
        try:
            exec(call, {**names, "sch": sch}, names)
        except Exception as error:
            found.append({"error": said(error)})
            if is_accepted:
                return {"steps": found}
        else:
            shown = not is_accepted or walk.get("scripts")
            found.append({"script": sch.mod.script()} if shown else {})
    return {"steps": found, "script": schedule.mod.script()}


def said(error: Exception) -> str:
    """An error in one line."""
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[-300:]


if __name__ == "__main__":
    while True:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            for line in iter(sys.stdin.readline, ""):
                print(json.dumps(replay(json.loads(line))), flush=True)
            os._exit(0)
        if not os.waitpid(child, 0)[1]:
            break
        print(json.dumps({"crashed": int.from_bytes(progress, "little", signed=True)}), flush=True)
