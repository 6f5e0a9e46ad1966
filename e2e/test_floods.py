"""Programs that print without end: the page stays alive, Stop works, and little is kept."""

import re

import pytest
from playwright.sync_api import Locator, expect

from e2e import packages

PNG = """
import struct, zlib
from mlcweb.ir.display import publish

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

def png(width, height):
    lines = zlib.compress(bytes(height * (1 + width // 8)), 1)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunks

class Picture:
    _repr_png_ = lambda self: file
"""
"""Makes files of black pictures."""

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
    "pictures": f"{PNG}\nfile = png(4000, 4000)\nwhile True: publish(Picture())",
}
KEPT = 250_000
"""Characters of output that a page shows at most."""


def length(output: Locator) -> int:
    return output.evaluate("element => element.textContent.length")


@pytest.mark.parametrize("isolated", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=() if name in ("lines", "one line", "pictures") else pytest.mark.thorough
        )
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


DEEP = "its elements are nested more than 50 deep"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("'<b></b>' * 40_000", "it has 280,000 characters, more than 250,000"),
        ("'<b></b>' * 1_000_000", "it has 7,000,000 characters, more than 250,000"),
        # Read as a whole, these keep Chromium busy for half a minute, or end it.
        ("'<div>' * 49_000", DEEP),
        ("'<table><td>' * 20_000", DEEP),
        ("'<template>' + '<div>' * 49_000", DEEP),
        ("'<TEMPLATE>' * 24_000", "it has 24,000 templates, more than 50"),
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


def test_html_with_a_few_templates_is_shown(used_playground):
    playground = used_playground()
    text = "('<p>seen</p><template>' + '<b>' * 9 + '</b>' * 9 + '</template>') * 40"
    playground.run_to_end(HTML.format(text=text))
    frame = playground["console"].locator("iframe")
    expect(frame.content_frame.locator("p")).to_have_count(40)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("file = png(8000, 8000)\npublish(Picture())", "64,000,000 pixels, more than 32,000,000"),
        ("file = bytes(5_000_000)\npublish(Picture())", "5,000,000 bytes, more than 4,500,000"),
        ("file = b'GIF89a' * 9\npublish(Picture())", "is no PNG file"),
        (
            "import js\njs.mlcwebTell('picture', '{\"url\":\"data:image/svg+xml,<svg/>\",'\n"
            '    \'"width":1,"height":1,"description":""}\')',
            "is no PNG file",
        ),
    ],
)
def test_what_is_too_large_or_no_picture_is_not_shown(used_playground, program, reason):
    playground = used_playground()
    playground.run_to_end(f"{PNG}\n{program}\nprint('the ' + 'end')")
    expect(playground["console"]).to_contain_text("the end")
    expect(playground["console"]).to_contain_text(re.compile(f"Picture not shown: it .*{reason}"))
    expect(playground["console"].get_by_role("img")).to_have_count(0)


def test_dropped_pictures_are_counted_as_such(used_playground):
    playground = used_playground()
    playground.run_to_end(
        f"{PNG}\nfile = png(8, 8)\nfor i in range(500): publish(Picture())\nprint('the ' + 'end')"
    )
    console = playground["console"]
    expect(console).to_contain_text("the end")
    left = console.get_by_role("img").count()
    assert 50 <= left <= 200
    expect(console.locator(".out-notice")).to_have_text(
        f"… {500 - left} earlier pictures were dropped"
    )


FIGURE = "import matplotlib.pyplot as plt\n"


@pytest.mark.thorough
def test_a_huge_figure_is_not_drawn(open_playground):
    playground = open_playground()
    packages.serve_as_cdn(playground.page.context, "matplotlib")
    console = playground["console"]
    playground.run_to_end(f"{FIGURE}plt.figure(figsize=(500, 500))\nplt.plot([1, 2])\nplt.show()")
    expect(console).to_contain_text("Picture not shown: it has 50,000 by 50,000 pixels")
    # What stands far outside of a figure makes its picture large.
    playground.run_to_end(f"{FIGURE}plt.plot([1, 2])\nplt.text(500, 500, 'far away')\nplt.show()")
    expect(console).to_contain_text(re.compile(r"Picture not shown: it has \d{3},\d{3} by"))
    playground.run_to_end(f"{FIGURE}plt.figure(figsize=(50, 40))\nplt.plot([1, 2])\nplt.show()")
    expect(console.get_by_role("img")).to_have_count(1)
    playground.run_to_end(f"{FIGURE}print('figures', plt.get_fignums())")
    expect(console).to_contain_text("figures []")


@pytest.mark.thorough
def test_a_flood_of_figures_can_be_stopped(open_playground):
    playground = open_playground()
    packages.serve_as_cdn(playground.page.context, "matplotlib")
    console = playground["console"]
    playground.run(
        f"{FIGURE}for i in range(300): plt.figure(); plt.plot([i])\nprint('made ' + 'all')"
    )
    expect(console).to_contain_text("made all")
    expect(console.get_by_role("img").first).to_be_attached()
    playground.stop()
    expect(console).to_contain_text("Stopped")
    # The rest does not come with the next program.
    playground.run_to_end("print('next ' + 'program')")
    expect(console).to_contain_text("next program")
    expect(console.get_by_role("img")).to_have_count(0)
