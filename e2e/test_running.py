"""Run, Stop, output and errors."""

import re

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground, wait_until_kept
from e2e.test_accessibility import tab_to

PROGRAM = """\
import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * 2.0


sch = tvm.tir.Schedule(Module)
(i,) = sch.get_loops(sch.get_block("B"))
"""


def test_the_lesson_runs(playground):
    playground.run_first_program()
    console = playground["console"]
    expect(console).to_contain_text("Time cost of MyModule=>schedule_mm:")
    expect(console).to_contain_text("=====Attempt 4, time-cost:")
    expect(console).to_contain_text("sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16")
    view = playground.open_view("tensorir")
    expect(view).to_contain_text('with T.block("C_init"):')
    expect(view).to_contain_text('with T.block("C_update"):')


@pytest.mark.thorough
def test_the_console_is_kept_over_a_reload(playground):
    playground.run_to_end("print('sum', 20 + 22)\n")
    wait_until_kept(playground.page, "program", 1)
    playground.page.reload()
    expect(playground["console"]).to_contain_text("sum 42")
    expect(playground["console"]).to_contain_text("its variables are gone")


def test_runs_are_kept_and_two_are_compared(playground):
    playground.run_to_end("print('one')\n")
    playground.run_to_end("x = 1\nprint('two')\n")
    playground["runs"].first.click()
    dialog = playground["runs-dialog"]
    expect(playground["run-row"]).to_have_count(2)
    expect(playground["runs-times"]).to_contain_text(", then ")
    expect(playground["runs-code"].locator(".removed")).to_have_text("print('one')")
    expect(playground["runs-code"].locator(".added").first).to_have_text("x = 1")
    expect(playground["runs-output"].locator(".added")).to_have_text("two")
    dialog.get_by_label("Later: lesson.py").nth(1).check()
    expect(playground["runs-code"]).to_contain_text("no difference")
    playground.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


@pytest.mark.thorough
def test_runs_are_compared_from_the_keyboard(playground):
    for number in ("one", "two", "three"):
        playground.run_to_end(f"print('{number}')\n")
    keys = playground.page.keyboard
    playground["file-menu"].focus()
    for key in ("Enter", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        keys.press(key)
    dialog = playground["runs-dialog"]
    later, earlier = dialog.get_by_label("Later:"), dialog.get_by_label("Earlier:")
    tab_to(playground.page, later.first)
    tab_to(playground.page, earlier.nth(1))
    keys.press("ArrowDown")
    expect(earlier.nth(2)).to_be_checked()
    expect(earlier.nth(2)).to_be_focused()
    expect(earlier.nth(2)).to_have_accessible_name(re.compile("run 1 of 3$"))
    expect(playground["runs-code"].locator(".removed")).to_have_text("print('one')")
    tab_to(playground.page, later.first)
    keys.press("ArrowDown")
    expect(playground["runs-code"].locator(".added")).to_have_text("print('two')")
    tab_to(playground.page, playground["runs-output"].locator("pre"))
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    expect(playground["file-menu"]).to_be_focused()


def test_runs_from_the_keyboard(used_playground):
    playground = used_playground()
    playground.write("print(6 * 7)")
    playground.page.keyboard.press("ControlOrMeta+Enter")
    expect(playground["console"]).to_contain_text("42")


@pytest.mark.parametrize(
    "waiting", ["await asyncio.sleep(1000)", "await asyncio.gather(asyncio.sleep(1000), spin())"]
)
def test_stop_ends_what_a_program_waits_for(used_playground, waiting):
    playground = used_playground()
    playground.run(
        "import asyncio\n\nasync def spin():\n    while True:\n        await asyncio.sleep(0)\n\n"
        f"print('begun')\ntry:\n    {waiting}\nfinally:\n    print('cleared ' + 'up')\n"
    )
    expect(playground["console"]).to_contain_text("begun")
    playground.stop()
    expect(playground["console"]).to_contain_text("cleared up")
    expect(playground["console"]).not_to_contain_text("Python was restarted")


def test_a_stop_that_ends_python_leaves_text_and_results(playground):
    playground.run_first_program()
    steps = playground.open_view("trace").get_by_test_id("trace-step")
    expect(steps.nth(2)).to_be_visible()
    count = steps.count()
    playground.run("import time\nprint('begun')\ntime.sleep(1000)  # precious")
    expect(playground["console"]).to_contain_text("begun")
    playground.stop()
    expect(playground["console"]).to_contain_text("Python was restarted")
    expect(playground["editor"]).to_contain_text("# precious")
    expect(steps).to_have_count(count)


@pytest.mark.thorough
def test_a_syntax_error_is_underlined(used_playground):
    playground = used_playground()
    playground.run_to_end("a = 1\nb = (2 +\nc = 3\n")
    playground.expect_state("error")
    expect(playground["console"]).to_contain_text("SyntaxError")
    expect(playground.underlined_line()).to_have_text("b = (2 +")


def test_an_error_is_underlined_where_the_user_is_at_fault(used_playground):
    playground = used_playground()
    console, line = playground["console"], playground.underlined_line()
    playground.run_to_end("import numpy as np\n\nnp.zeros(3) + np.zeros(4)\n")
    expect(console).to_contain_text("ValueError")
    expect(line).to_have_text("np.zeros(3) + np.zeros(4)")

    playground.run_to_end(PROGRAM + "sch.split(i, factors=[3, 5])\n")
    expect(console).to_contain_text("An error occurred in the schedule primitive 'split'.")
    expect(console).to_contain_text("does not cover the extent 128")
    expect(line).to_have_text("sch.split(i, factors=[3, 5])")

    # Inside a script, too.
    wrong = PROGRAM.replace("range(128)", "range(127)")
    playground.run_to_end(wrong + "tvm.build(Module, target='llvm')\n")
    expect(console).to_contain_text("128")
    expect(line).to_have_count(1)

    playground.run_to_end("1 / 1")
    expect(line).to_have_count(0)


@pytest.mark.thorough
def test_integers_of_numpy_go_into_programs_of_64_bits(used_playground):
    playground = used_playground()
    # Chapter 2's exercise as it stands: its arrays have 64-bit integers on all but 32-bit hosts.
    playground.run_to_end("""
import numpy as np
import tvm
from tvm.script import tir as T

@T.prim_func
def add(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64"), C: T.Buffer((4,), "int64")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi] + B[vi]

a, b = (tvm.nd.array(x) for x in (np.arange(4), [4, 3, 2, 1]))
c = tvm.nd.array(np.empty(4, dtype=np.int64))
tvm.build(add)["add"](a, b, c)
print(c)
""")
    expect(playground["console"]).to_contain_text("[4 4 4 4]")


def test_what_a_notebook_has_without_an_import_is_there(used_playground):
    """Also in functions, and again after a program has put something else in its place."""
    playground = used_playground()
    text = playground.run_to_good_end("def show():\n    display('shown')\nshow()")
    assert "'shown'" in text
    playground.run_to_good_end("import builtins\nbuiltins.display = print")
    assert "'again'" in playground.run_to_good_end("display('again')")


@pytest.mark.thorough
def test_input_says_that_nobody_is_there(used_playground):
    playground = used_playground()
    playground.run_to_end("name = input('Your name? ')")
    expect(playground["console"]).to_contain_text("EOFError: input() has nobody to ask in the page")
    expect(playground.underlined_line()).to_contain_text("input")


@pytest.mark.thorough
def test_what_two_tabs_write_is_kept(playground):
    first = playground.page
    second = Playground(first.context.new_page())
    second.page.goto(first.url)
    second.expect_state("ready")
    playground.write("print('of the first')")
    stored = "() => localStorage.getItem('mlcweb.files')"
    first.wait_for_function(f"() => ({stored})()?.includes('of the first')")
    second.write("print('of the second')")
    expect(second.page.locator("#toast")).to_contain_text("Another tab has changed files, too")
    expect(second["file-tab"]).to_have_text(["lesson.py", "lesson_2.py"])
    expect(second["editor"]).to_contain_text("of the second")
    second["file-tab"].last.click()
    expect(second["editor"]).to_contain_text("of the first")


@pytest.mark.thorough
def test_the_page_says_when_there_is_no_room(playground):
    playground.page.evaluate(
        "() => { Storage.prototype.setItem = () => { throw new Error('full'); } }"
    )
    playground.write("print('not kept')")
    expect(playground.page.locator("#toast")).to_contain_text("has no room for what you write")
