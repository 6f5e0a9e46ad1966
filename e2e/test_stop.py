"""Stop ends whatever runs, wherever it was started, and the page goes on."""

from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from e2e.lesson_page import LessonPage
from e2e.playground import Playground
from e2e.programs import COPY
from e2e.test_floods import FLOODS


class Hang(NamedTuple):
    """A program, where it runs, and what it has shown when it hangs."""

    program: str
    place: str = "editor"
    isolated: bool = True
    shown: str = "begun"


LOOP = "print('begun')\nwhile True: pass"
STUBBORN = (
    "print('begun')\nwhile True:\n    try:\n        while True: pass\n    except:\n        pass"
)
SLEEP = "import time\nprint('begun')\ntime.sleep(1000)"
KERNEL = """
import tvm
from tvm.script import tir as T

@T.prim_func
def endless(A: T.Buffer((4,), "int32")):
    for i, j, k in T.grid(1000000, 1000000, 4):
        with T.block("A"):
            vi, vj, vk = T.axis.remap("RRS", [i, j, k])
            A[vk] = A[vk] * 3 + vi

print("begun")
tvm.build(endless)["endless"](tvm.nd.empty((4,), "int32"))
"""
SEARCH = (
    COPY
    + """

def endless(sch):
    print("begun")
    while True: pass
"""
)

HANGS = {
    "loop": Hang(LOOP),
    "loop, not isolated": Hang(LOOP, isolated=False),
    "loop in a lesson": Hang(LOOP, place="lesson"),
    "loop that catches everything": Hang(STUBBORN),
    "loop that catches everything, in a lesson": Hang(STUBBORN, place="lesson"),
    "sleep": Hang(SLEEP),
    "sleep, not isolated": Hang(SLEEP, isolated=False),
    "asynchronous sleep": Hang("import asyncio\nprint('begun')\nawait asyncio.sleep(1000)"),
    "loop in C": Hang("print('begun')\nsum(range(10**15))"),
    "regular expression": Hang("import re\nprint('begun')\nre.match('(a+)+$', 'a' * 60 + 'b')"),
    "kernel": Hang(KERNEL),
    "kernel, not isolated": Hang(KERNEL, isolated=False),
    "kernel in a lesson": Hang(KERNEL, place="lesson"),
    "flood": Hang(FLOODS["lines"], shown="were dropped"),
    "flood, not isolated": Hang(FLOODS["lines"], isolated=False, shown="were dropped"),
    "flood in a lesson": Hang(FLOODS["lines"], place="lesson", shown="were dropped"),
    "search": Hang(SEARCH, place="search"),
    "search, not isolated": Hang(SEARCH, place="search", isolated=False),
}
IN_EVERY_RUN = ("loop", "loop, not isolated", "sleep", "kernel in a lesson", "flood", "search")


def begin(playground: Playground, hang: Hang) -> None:
    """Start what hangs, and wait until it does."""
    output = playground["console"]
    if hang.place == "lesson":
        lesson = LessonPage(playground.page)
        lesson.open("02-tensorir")
        lesson.write(1, hang.program)
        lesson.cell(1).get_by_test_id("cell-run").click()
        expect(lesson.cell(1)).to_have_attribute("data-state", "running")
        output = lesson.cell(1).get_by_test_id("lesson-output")
    elif hang.place == "search":
        playground.run_to_end(hang.program)
        playground.open_view("search")
        playground["search-start"].click()
    else:
        playground.run(hang.program)
    expect(output).to_contain_text(hang.shown)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.thorough)
        for name in HANGS
    ],
)
def test_stop_ends_it_and_the_page_goes_on(used_playground, name):
    hang = HANGS[name]
    playground = used_playground(isolated=hang.isolated)
    status = playground["status"]
    begin(playground, hang)
    ended = status.get_attribute("data-ended") or ""
    playground["search-stop" if hang.place == "search" else "stop"].click()
    expect(status).not_to_have_attribute("data-ended", ended)
    playground.expect_state("ready")
    if hang.place == "lesson":
        playground["open-program"].click()
    playground.run_to_end("print('once ' + 'more')")
    expect(playground["console"]).to_contain_text("once more")
