"""Programs that print without end: the page stays alive, Stop works, and little is kept."""

import pytest
from playwright.sync_api import Locator, expect

FLOODS = {
    "lines": "while True: print('x' * 1000)",
    "one line": "while True: print('x' * 100, end='')",
    "both streams": (
        "import sys\nwhile True:\n    print('x' * 1000)\n    print('y' * 50, file=sys.stderr)"
    ),
    "short lines": "while True: print()",
    "pages of HTML": (
        "from mlcweb.ir.display import publish\n"
        "class Page:\n    _repr_html_ = lambda self: '<b>bold</b>'\n"
        "while True: publish(Page())"
    ),
}
KEPT = 250_000
"""Characters of output that a page shows at most."""


def length(output: Locator) -> int:
    return output.evaluate("element => element.textContent.length")


@pytest.mark.parametrize("isolated", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("lines", "one line") else pytest.mark.thorough)
        for name in FLOODS
    ],
)
def test_a_flood_leaves_the_page_alive(used_playground, name, isolated):
    playground = used_playground(isolated=isolated)
    console = playground["console"]
    playground.run(FLOODS[name])
    expect(console).to_contain_text("earlier")
    expect(console.locator(".out-notice")).to_contain_text("were dropped")
    assert length(console) < KEPT
    # The page answers to keys and clicks while it is flooded.
    playground["open-lessons"].click()
    expect(playground.page.locator("#pane-lesson")).to_be_visible()
    playground["open-program"].click()
    playground.stop()
    expect(console).to_contain_text("Stopped")
    assert length(console) < KEPT
    playground.run_to_end("print('once ' + 'more')")
    expect(console).to_contain_text("once more")


def test_what_a_program_prints_in_great_numbers_is_kept_from_its_end(used_playground):
    playground = used_playground()
    playground.run_to_end("for i in range(300_000): print('line', i)")
    console = playground["console"]
    expect(console).to_contain_text("line 299999")
    lines = console.inner_text().splitlines()
    dropped = int(lines[0].split()[1].replace(",", ""))
    printed = [line for line in lines if line.startswith("line ")]
    assert printed == [f"line {i}" for i in range(300_000 - len(printed), 300_000)]
    assert dropped + len(printed) == 300_000


def test_a_line_that_begins_again_is_shown_once(used_playground):
    playground = used_playground()
    playground.run_to_end(
        "print('before')\n"
        "for i in range(101):\n    print(f'\\r{i:3d}% ' + '#' * (i // 10), end='')\n"
        "    if i % 20 == 0: sum(range(3_000_000))\n"
        "print()\nprint('the ' + 'end')"
    )
    console = playground["console"]
    expect(console).to_contain_text("the end")
    assert console.text_content().startswith("before\n100% ##########\nthe end\n")


HTML = """
from mlcweb.ir.display import publish

class Page:
    _repr_html_ = lambda self: {text}

publish(Page())
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("'<b></b>' * 40_000", "it has 280,000 characters, more than 250,000"),
        pytest.param(
            "'<div>' * 40_000",
            "its elements are nested more than 50 deep",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_huge_page_of_html_is_not_shown(used_playground, text, reason):
    playground = used_playground()
    playground.run_to_end(HTML.format(text=text))
    expect(playground["console"]).to_contain_text(f"HTML not shown: {reason}")
    expect(playground["console"].locator("iframe")).to_have_count(0)


def test_one_huge_text_is_cut(used_playground):
    playground = used_playground()
    playground.run_to_end("print('a' * 8_000_000 + 'the end')")
    console = playground["console"]
    expect(console).to_contain_text("the end")
    expect(console).to_contain_text("earlier characters were dropped")
    assert length(console) < KEPT
