"""What a real TVM 0.27 makes of calls of schedule primitives. Run by the interpreter that has it: a
`module`, a `prelude` and `calls`, all of Python but the module, as JSON on standard input; for each
call the class of the error, or an empty string, as a line on standard output. Where TVM breaks down
the output ends; `first` in the input is the call to go on with.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import tvm
from tvm import s_tir
from tvm.script import tirx as T

if __name__ == "__main__":
    question = json.load(sys.stdin)
    sch = s_tir.Schedule(tvm.script.from_source(question["module"]), error_render_level="fast")
    names = {"T": T, "np": np, "s_tir": s_tir, "BlockRV": s_tir.schedule.SBlockRV, "sch": sch}
    for line in question["prelude"]:
        exec(line, names)
    for call in question["calls"][question["first"] :]:
        error = ""
        try:
            eval(call, {**names, "sch": sch.copy()})
        except Exception as raised:
            error = type(raised).__name__
        print(json.dumps(error), flush=True)
