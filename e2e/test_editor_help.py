"""What the editor offers and tells while a program is written."""

import pytest
from playwright.sync_api import expect

PROGRAM = """import tvm
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("scaled"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)

sch = tvm.tir.Schedule(main)
"""


@pytest.fixture
def editor(playground):
    playground.write(PROGRAM)
    return playground


def type_at_end(playground, text):
    playground["editor"].locator(".cm-content").focus()
    playground.page.keyboard.press("ControlOrMeta+End")
    playground.page.keyboard.type(text, delay=5)


def options(playground):
    return playground.page.locator(".cm-tooltip-autocomplete li")


def test_members_of_a_schedule_are_offered_before_anything_has_run(editor):
    editor.page.clock.install()
    type_at_end(editor, "sch.spl")
    expect(options(editor).first).to_contain_text("split")
    expect(editor.page.locator(".cm-completionInfo")).to_contain_text("Split a loop")
    # The editor takes no key for a choice in the first moment after a list has come up.
    editor.page.clock.fast_forward(1000)
    editor.page.keyboard.press("Enter")
    expect(editor["editor"]).to_contain_text("sch.split")


@pytest.mark.thorough
def test_modules_are_followed(editor):
    for typed, offered in [
        ("T.vec", "vectorized"),
        ("tvm.nd.arr", "array"),
        ("from tvm import meta_s", "meta_schedule"),
        ("sch.mod.upd", "update_func"),
    ]:
        editor.write(PROGRAM)
        type_at_end(editor, typed)
        expect(options(editor).filter(has_text=offered).first).to_be_visible()
        editor.page.keyboard.press("Escape")


@pytest.mark.thorough
def test_blocks_of_the_last_run_are_offered(editor):
    editor.run_to_end()
    type_at_end(editor, 'sch.get_block("')
    editor.page.keyboard.press("Control+Space")
    expect(options(editor).filter(has_text="scaled")).to_be_visible()
    editor.page.keyboard.press("Escape")


def test_the_signature_follows_the_argument(editor):
    type_at_end(editor, "sch.sample_perfect_tile(")
    signature = editor["signature"]
    expect(signature.locator("strong")).to_contain_text("loop")
    editor.page.keyboard.type("loop, ")
    expect(signature.locator("strong")).to_contain_text("n:")
    editor.page.keyboard.type("max_innermost_factor=")
    expect(signature.locator("strong")).to_contain_text("max_innermost_factor")
    editor.page.keyboard.press("Escape")
    editor.page.keyboard.press("Escape")
    expect(signature).to_have_count(0)


@pytest.mark.thorough
def test_hovering_tells_what_a_name_is(editor):
    type_at_end(editor, "sch.vectorize(None)")
    editor.page.keyboard.press("Escape")
    word = editor["editor"].locator(".cm-line").last
    box = word.bounding_box()
    editor.page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
    help_text = editor.page.locator(".cm-tooltip-hover .api-help")
    expect(help_text).to_contain_text("sch.vectorize(")
    editor.page.mouse.move(5, 5)


def test_errors_are_underlined_while_writing_and_go_when_mended(editor):
    editor.write(PROGRAM.replace("T.axis.spatial", "T.axis.spatal"))
    line = editor.underlined_line()
    expect(line).to_contain_text("T.axis.spatal")
    editor.write(PROGRAM)
    expect(line).to_have_count(0)
    expect(editor["console"]).not_to_contain_text("Error")


@pytest.mark.thorough
def test_a_fix_is_a_press_away(editor):
    editor.run_to_end(PROGRAM + 'sch.get_block("scald")\n')
    editor.underlined_line().locator(".cm-lintRange-error").first.hover()
    editor.page.get_by_role("button", name="Change scald to scaled").click()
    expect(editor["editor"]).to_contain_text('sch.get_block("scaled")')
    editor.run_to_end()
    editor.expect_state("ready")
