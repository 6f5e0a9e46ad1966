"""Chapter 6: a product in tiles of 16, each computed by one instruction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.playground.checks.common import blocks_of, loop_text, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule

ORDER = ("get_loops", "split", "reorder", "blockize", "decompose_reduction", "tensorize")
TILES = ["range(4)", "range(4)", "range(4)"]


def check(variables: Mapping[str, Any]) -> str:
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    done = [inst.kind.method for inst in schedule.trace.insts]
    for step in ORDER:
        if step not in done:
            raise Wrong(f"The trace has no {step} yet. So far: {', '.join(done) or 'nothing'}.")
    [function] = schedule.mod.functions.values()
    if '"tmm16"' not in schedule.mod.script():
        raise Wrong("No statement calls tmm16: tensorize should name the intrinsic tmm16.")
    nests = {
        block.name_hint: [loop_text(loop) for loop in loops] for block, loops in blocks_of(function)
    }
    update = next((loops for name, loops in nests.items() if name.endswith("_o_update")), None)
    if update != TILES:
        raise Wrong(
            f"Around the call there should be 4 x 4 x 4 tiles: {', '.join(TILES)}; "
            f"there are {', '.join(update or ['none'])}."
        )
    return "64 calls of tmm16 compute the product, 16 x 16 x 16 multiplications each."
