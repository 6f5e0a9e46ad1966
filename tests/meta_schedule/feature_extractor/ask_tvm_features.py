"""Asks a real TVM 0.27 for the features of the stores of programs. Run by the interpreter that has
it: questions as JSON on standard input, answers on standard output.

A question is a `module` in TVM's spelling of today, the `lines` of a schedule of it, a `target` and
the `options` of `PerStoreFeature`. The answer is the rows of numbers.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate


def rows(question: dict[str, Any]) -> list[list[float]]:
    module = tvm.script.from_source(question["module"])
    sch = s_tir.Schedule(module)
    exec("\n".join(question["lines"]), {"sch": sch, "tirx": tirx, "s_tir": s_tir})
    target = tvm.target.Target(question["target"])
    context = ms.TuneContext(mod=module, target=target, num_threads=1)
    extractor = PerStoreFeature(**question["options"])
    return extractor.extract_from(context, [MeasureCandidate(sch, [])])[0].numpy().tolist()


if __name__ == "__main__":
    json.dump([rows(question) for question in json.load(sys.stdin)], sys.stdout)
