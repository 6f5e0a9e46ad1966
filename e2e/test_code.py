"""The machine code view: lines that light up together, passes, and the roofline."""

import re

import pytest
from playwright.sync_api import Locator, expect

from e2e.programs import MATMUL

PROGRAM = (
    MATMUL
    + """

sch = tvm.tir.Schedule(MyModule)
block = sch.get_block("C")
i, j, k = sch.get_loops(block)
j_0, j_1 = sch.split(j, [None, 32])
sch.reorder(i, j_0, k, j_1)
sch.decompose_reduction(block, k)
"""
)

UPDATE = "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"

LONG = (
    PROGRAM.replace("sch.reorder(i, j_0, k, j_1)", "i_0, i_1 = sch.split(i, [None, 16])\n"
    "k_0, k_1 = sch.split(k, [None, 4])\nsch.reorder(i_0, j_0, k_0, i_1, k_1, j_1)\n"
    "sch.unroll(i_1)\nsch.unroll(k_1)").replace("decompose_reduction(block, k)", "vectorize(j_1)")
)  # fmt: skip

SYMBOLIC = """\
import tvm
from tvm.script import tir as T


@T.prim_func
def copy(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
"""


MULTIPLICATION = re.compile(r"f32x4\.(mul|relaxed_madd)")
"""Fused or not: as a build has it for this browser."""


def lines(listing: Locator, text: str | re.Pattern[str] = "") -> Locator:
    return listing.locator(".code-line").filter(has_text=text)


def show(playground, program: str = PROGRAM):
    playground.run_to_end(program)
    playground.expect_state("ready")
    playground.open_view("code")
    playground.settle()
    expect(lines(playground["code-tensorir"]).first).to_be_visible()
    return playground


@pytest.fixture
def code(playground):
    return show(playground)


def lines_and_instructions_light_up_together(code):
    lines(code["code-tensorir"], UPDATE).hover()
    lit = code["code-wat"].locator(".code-line.lit")
    expect(lit.filter(has_text=MULTIPLICATION).first).to_be_visible()
    loops = code["code-lowered"].locator(".code-line.lit")
    expect(loops.filter(has_text="C_registers").first).to_be_visible()
    expect(code["code-caption"]).to_contain_text("instructions")
    code["code-facts"].hover()
    expect(code["code-wat"].locator(".code-line.lit")).to_have_count(0)
    # An instruction leads back to its line.
    lines(code["code-tensorir"], UPDATE).hover()
    lines(code["code-wat"], MULTIPLICATION).first.click()
    expect(code["code-lowered"].locator(".lit")).to_have_count(1)
    expect(code["code-tensorir"].locator(".lit")).to_have_text(re.compile(re.escape(UPDATE)))


def lines_can_be_gone_to_by_keyboard(code):
    code["code-tensorir"].focus()
    code.page.keyboard.press("End")
    expect(code["code-tensorir"].locator(".chosen")).to_contain_text(UPDATE)
    expect(code["code-wat"].locator(".lit").first).to_be_visible()
    code.page.keyboard.press("ArrowUp")
    expect(code["code-tensorir"].locator(".chosen")).to_contain_text("T.writes")
    active = code["code-tensorir"].get_attribute("aria-activedescendant")
    expect(code.page.locator(f"#{active}")).to_contain_text("T.writes")
    code.page.keyboard.press("Escape")
    expect(code["view-code"].locator(".lit")).to_have_count(0)


def passes_show_what_they_change_and_the_size_of_the_code(code):
    code["code-pass"].filter(has_text="FlattenBuffer").click()
    lowered = code["code-lowered"]
    expect(lowered.locator(".removed").filter(has_text="A[i, k]").first).to_be_visible()
    expect(lowered.locator(".added").filter(has_text="* 128 +").first).to_be_visible()
    code["code-passes"].focus()
    code.page.keyboard.press("ArrowLeft")
    expect(code["code-passes"].locator("[aria-selected=true]")).to_have_text(
        re.compile("CompactBuffer")
    )
    expect(code["code-caption"]).to_have_text("This pass leaves the loops as they are.")
    code.page.keyboard.press("End")
    expect(lowered.locator(".added, .removed")).to_have_count(0)
    expect(lines(lowered, "C_registers").first).to_be_visible()
    expect(code["code-facts"]).to_contain_text(re.compile(r"\d+ bytes"))
    expect(code["code-facts"]).to_contain_text(re.compile(r"innermost loop k.*[1-9]\d* SIMD"))


def test_passes_lines_and_instructions_of_a_program(code):
    """Each part finds the view as the one before has left it."""
    for part in (
        passes_show_what_they_change_and_the_size_of_the_code,
        lines_and_instructions_light_up_together,
    ):
        part(code)


def the_kernel_is_shown_under_its_roof(code):
    code["code-measure"].click()
    roofline = code["roofline"]
    expect(roofline.locator("svg .dot")).to_be_visible()
    for figure in ("data-gflops", "data-peak"):
        assert float(roofline.get_attribute(figure) or "nan") > 0
    rows = roofline.locator("tr")
    expect(rows.filter(has_text="Rate")).to_contain_text("GFLOPS")
    expect(rows.filter(has_text="Isolated page")).to_contain_text("yes")
    expect(rows.filter(has_text="Timer resolution")).to_contain_text("µs")


@pytest.mark.thorough
def test_fused_multiply_adds_can_be_switched(code):
    switch = code["code-fused"]
    wat = code["code-wat"]
    if not switch.is_enabled():
        pytest.skip("this browser has none")
    switch.uncheck()
    expect(code["view-code"]).to_contain_text("none in this kernel")
    lines(code["code-tensorir"], UPDATE).hover()
    expect(wat.locator(".lit").filter(has_text="f32x4.mul").first).to_be_visible()
    switch.check()
    expect(code["view-code"]).to_contain_text(
        re.compile(r"multiply-add \([1-9]\d* in this kernel\)")
    )
    lines(code["code-tensorir"], UPDATE).hover()
    expect(wat.locator(".lit").filter(has_text="relaxed_madd").first).to_be_visible()


@pytest.mark.thorough
def test_long_code_has_few_elements(playground):
    show(playground, LONG)
    wat = playground["code-wat"]
    assert int(lines(wat).first.get_attribute("aria-setsize") or 0) > 5000
    assert lines(wat).count() < 200
    wat.focus()
    playground.page.keyboard.press("End")
    expect(wat.locator(".chosen")).to_have_text(re.compile(r"\)$"))
    assert lines(wat).count() < 200


@pytest.mark.thorough
def test_what_has_no_machine_code_says_why(playground):
    show(playground, SYMBOLIC)
    expect(playground["view-code"]).to_contain_text("known only then")
    expect(lines(playground["code-tensorir"], "T.match_buffer").first).to_be_visible()
    expect(playground["code-measure"]).to_be_disabled()


def a_program_can_be_chosen(code):
    chooser = code["view-code"].get_by_label("Module")
    expect(chooser.locator("option")).to_have_text(["MyModule", "sch.mod"])
    chooser.select_option("MyModule")
    expect(lines(code["code-tensorir"], "with T.init():")).to_be_visible()


@pytest.mark.thorough
def test_keys_themes_measuring_and_choices_of_a_program(code):
    """Each part finds the view as the one before has left it."""
    for part in (
        lines_can_be_gone_to_by_keyboard,
        marks_stand_out_in_both_themes,
        the_kernel_is_shown_under_its_roof,
        a_program_can_be_chosen,
    ):
        part(code)


@pytest.mark.thorough
def test_on_a_phone_nothing_sticks_out(open_playground):
    page = open_playground(viewport={"width": 390, "height": 844}, has_touch=True)
    show(page)
    lines(page["code-tensorir"], UPDATE).tap()
    expect(page["code-wat"].locator(".lit").first).to_be_visible()
    page["code-measure"].click()
    expect(page["roofline"].locator("svg")).to_be_visible()
    overflow = page.page.evaluate(
        "['html', '#view-code'].map((s) => document.querySelector(s))"
        ".map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert overflow == [0, 0]
    tops = [
        page[name].bounding_box()["y"] for name in ("code-tensorir", "code-lowered", "code-wat")
    ]
    assert tops == sorted(tops)
    assert len(set(tops)) == 3


def marks_stand_out_in_both_themes(code):
    """Text on lit lines keeps a contrast of 4.5 to 1."""
    for scheme in ("light", "dark"):
        code.page.emulate_media(color_scheme=scheme)
        lines(code["code-tensorir"], UPDATE).hover()
        expect(code["code-wat"].locator(".lit").first).to_be_visible()
        assert code.page.evaluate(MIN_CONTRAST) >= 4.5, scheme


MIN_CONTRAST = """() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let least = Infinity;
  for (const line of document.querySelectorAll("#view-code .code-line.lit")) {
    const ground = luminance(getComputedStyle(line).backgroundColor);
    for (const part of [line, ...line.querySelectorAll("*")]) {
      const ink = luminance(getComputedStyle(part).color);
      least = Math.min(least, (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05));
    }
  }
  return least;
}"""
