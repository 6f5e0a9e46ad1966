"""The GPU view: what a GPU does with a bound program, without a GPU."""

import re

from playwright.sync_api import expect

from e2e.playground import Playground

PROGRAM = """\
import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class Transpose:
    @T.prim_func
    def main(A: T.Buffer((256, 256), "float32"), B: T.Buffer((256, 256), "float32")):
        for i, j in T.grid(256, 256):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]


def threads(sch, rows, columns):
    (block_y, y), (block_x, x) = sch.split(rows, [None, 32]), sch.split(columns, [None, 32])
    sch.reorder(block_y, block_x, y, x)
    for loop, axis in zip(
        (block_y, block_x, y, x), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    ):
        sch.bind(loop, axis)
    return block_x


plain = tvm.tir.Schedule(Transpose)
threads(plain, *plain.get_loops("B"))
in_threads = plain.mod

tiled = tvm.tir.Schedule(Transpose)
outer = threads(tiled, *tiled.get_loops("B"))
copy = tiled.cache_read("B", 0, "shared")
tiled.compute_at(copy, outer)
y, x = tiled.get_loops(copy)[-2:]
tiled.bind(y, "threadIdx.y")
tiled.bind(x, "threadIdx.x")
tiled.storage_align(copy, 0, axis=0, factor=32, offset={offset})
through_a_tile = tiled.mod
"""


def show(playground: Playground, offset: int = 1) -> None:
    """Runs the program, whose tile has rows of 32 and `offset` elements, and opens the view."""
    playground.run_to_end(PROGRAM.replace("{offset}", str(offset)))
    playground.open_view("gpu")
    playground.settle()


def test_a_transpose_is_explained(playground: Playground) -> None:
    show(playground)
    expect(playground["gpu-sentences"].locator("li").first).to_contain_text(
        "A: 8 times fewer transactions (8,192 instead of 65,536)"
    )
    rows = playground["gpu-access"]
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("4 transactions")
    expect(rows.filter(has_text="reads shared")).to_contain_text("no conflict")
    expect(playground["gpu-steps"]).to_contain_text("barrier")
    expect(playground["gpu-fetch"]).to_contain_text("All 1024 threads of a block fetch 1,024")

    expect(playground["gpu-lanes"]).to_contain_text("4 transactions of 32 bytes")

    # By keys alone: the access in shared memory, another warp, another GPU.
    rows.filter(has_text="reads shared").get_by_role("button").press("Enter")
    expect(playground["gpu-banks"]).to_be_visible()
    expect(playground["gpu-lanes"]).to_contain_text("no bank has to give more than one word")
    playground["gpu-warp"].select_option("3")
    playground["gpu-tag"].select_option("nvidia/nvidia-a100")
    expect(playground["gpu-occupancy"]).to_contain_text("of its 64 warps")
    expect(playground["gpu-occupancy"]).to_contain_text("216")
    playground["gpu-registers"].fill("96")
    playground["gpu-registers"].press("Enter")
    expect(playground["gpu-occupancy"]).to_contain_text("Not even one block fits")

    # Of a program without threads it says what to do.
    playground["gpu-program"].select_option(label="Transpose")
    expect(playground["view-gpu"]).to_contain_text(re.compile("No loop of main is bound"))


def test_columns_and_banks_are_shown_lane_by_lane(playground: Playground) -> None:
    show(playground, offset=0)
    playground["gpu-access"].filter(has_text="reads shared").get_by_role("button").click()
    expect(playground["gpu-lanes"]).to_contain_text("gives 32 words one after the other")
    expect(playground["gpu-banks"].locator(".is-conflict")).to_have_count(31)
    playground["gpu-program"].select_option(label="in_threads")
    playground.settle()
    expect(playground["gpu-sentences"].locator("li").first).to_contain_text(
        "A warp makes 32 transactions for A[vj, vi] where 4 would do"
    )
    expect(playground["gpu-lines"].locator(".is-moved")).to_have_count(8)
    expect(playground["gpu-lanes"]).to_contain_text("32 transactions of 32 bytes")
