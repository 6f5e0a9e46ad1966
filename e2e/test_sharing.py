"""Links that hold a program, and what a shared program may and may not do."""

import re

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground, wait_until

OLD_LINK = (
    "VcxBCsIwEEbhq4R_U4UgtgsXA55EXQSdkgGdhJlQK6V3FzdC9-97CyY2l6KgPmKUJzvoskDTi0EYxbwd"
    "6gcRjecGQjXRtus8J-NHEA3DcTh1-6tijX9WWmbbsDmcQ_-LbhGlsm7fk_AbBOdk94z1Cw"
)
"""A link as version 1 of the page made it. It must open for ever."""


@pytest.fixture
def reader(open_playground) -> Playground:
    """A page of somebody else's, with a program of their own in it."""
    page = open_playground()
    page.write("print('text of the reader')")
    return page


def link_of(playground: Playground) -> str:
    playground["share-link"].click()
    address = playground["share-address"]
    expect(address).to_have_value(re.compile("#code="))
    link = address.input_value()
    playground.page.keyboard.press("Escape")
    return link


def test_a_link_holds_files_and_view_and_runs_nothing(open_playground):
    writer = open_playground()
    writer.write("print('from the link')")
    writer["file-add"].click()
    writer.page.keyboard.insert_text("second = 2")
    writer.open_view("code")
    link = link_of(writer)
    assert len(link) < 400

    reader = open_playground()
    reader.page.goto(link)
    expect(reader["shared-notice"]).to_contain_text("runs when you press Run")
    expect(reader["file-tab"]).to_have_text(["lesson.py", "untitled.py"])
    expect(reader["editor"]).to_contain_text("second = 2")
    expect(reader["view-code"]).to_be_visible()
    reader.expect_state("ready")
    expect(reader["status"]).to_have_attribute("data-ended", "0")
    expect(reader["console"]).to_have_text("")
    reader["file-tab"].first.click()
    reader.run_to_end()
    expect(reader["console"]).to_contain_text("from the link")


@pytest.mark.thorough
def test_a_link_holds_the_settings_of_the_search(playground, open_playground):
    playground.run_first_program()
    playground.open_view("search")
    playground["search-strategy"].select_option("random")
    playground["search-trials"].fill("17")
    playground["search-unit"].select_option("seconds")
    link = link_of(playground)

    reader = open_playground()
    reader.page.goto(link)
    expect(reader["search-trials"]).to_have_value("17")
    reader.expect_state("ready")
    reader.run_to_end()
    reader.open_view("search")
    expect(reader["search-strategy"]).to_have_value("random")
    expect(reader["search-trials"]).to_have_value("17")
    expect(reader["search-unit"]).to_have_value("seconds")


@pytest.mark.thorough
def test_a_link_of_an_old_version_opens(reader):
    reader.page.evaluate("code => { location.hash = `code=${code}` }", OLD_LINK)
    expect(reader["editor"]).to_contain_text("shared in 2026")
    expect(reader["file-tab"]).to_have_text(["first.py", "other.py"])
    expect(reader["view-search"]).to_be_visible()


def test_a_damaged_link_leaves_everything_as_it_is(reader):
    reader.page.evaluate("() => { location.hash = 'code=abc' }")
    expect(reader.page.locator("#toast")).to_contain_text("damaged")
    expect(reader["editor"]).to_contain_text("text of the reader")


@pytest.mark.thorough
def test_the_readers_own_program_comes_back(reader):
    reader.page.evaluate("code => { location.hash = `code=${code}` }", OLD_LINK)
    expect(reader["editor"]).to_contain_text("shared in 2026")
    reader["shared-back"].click()
    expect(reader["editor"]).to_contain_text("text of the reader")
    assert "#" not in reader.page.url


@pytest.mark.thorough
def test_changes_in_a_shared_program_outlive_a_reload_and_can_be_kept(reader):
    reader.page.evaluate("code => { location.hash = `code=${code}` }", OLD_LINK)
    expect(reader["shared-notice"]).to_be_visible()
    reader.write("print('changed by the reader')")
    reader.page.reload()
    expect(reader["editor"]).to_contain_text("changed by the reader")
    reader["shared-keep"].click()
    expect(reader["shared-notice"]).to_be_hidden()
    expect(reader["file-tab"]).to_have_text(["lesson.py", "first.py", "other.py"])
    reader["file-tab"].first.click()
    expect(reader["editor"]).to_contain_text("text of the reader")


@pytest.mark.thorough
def test_a_link_to_ones_own_program_is_no_shared_one(reader):
    link = link_of(reader)
    assert reader.page.url == link
    reader.page.reload()
    expect(reader["editor"]).to_contain_text("text of the reader")
    expect(reader["shared-notice"]).to_be_hidden()
    reader.write("changed = True")
    assert "#" not in reader.page.url


@pytest.mark.thorough
def test_forms_that_can_be_copied(open_playground):
    reader = open_playground(permissions=["clipboard-read", "clipboard-write"])
    link = r"http://localhost:\d+/#code=[\w-]+"
    for form, pattern in {
        "share-copy": f"^{link}$",
        "share-markdown": rf"^\[lesson, in mlcweb\]\({link}\)$",
        "share-frame": f'^<iframe src="{link.replace("/#", "/embed.html#")}" .*</iframe>$',
    }.items():
        reader["share-link"].click()
        reader[form].click()
        expect(reader.page.locator("#toast")).to_have_text("Copied")
        wait_until(
            reader.page,
            "async (form) => new RegExp(form).test(await navigator.clipboard.readText())",
            pattern,
        )


@pytest.mark.thorough
def test_where_copying_is_denied_the_link_can_be_selected(open_playground):
    page = open_playground()
    page.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error()) }"
    )
    page["share-link"].click()
    page["share-copy"].click()
    expect(page["share-address"]).to_be_focused()
    selected = page.page.evaluate("() => getSelection().toString()")
    assert "#code=" in selected


STORAGES = """
import js
for name in ("indexedDB", "caches", "localStorage", "sessionStorage", "cookieStore",
             "BroadcastChannel", "SharedWorker"):
    print(name, getattr(js, name, None) is not None)
print("directory", hasattr(js.navigator, "storage") and js.navigator.storage is not None)
try:
    js.Worker.new(js.URL.createObjectURL(js.Blob.new(["1"])))
    print("worker True")
except Exception:
    print("worker False")
"""


def test_a_program_reaches_no_storage_of_the_page(used_playground):
    playground = used_playground()
    playground.run_to_end(STORAGES)
    console = playground["console"]
    expect(console).to_contain_text("worker False")
    expect(console).not_to_contain_text("True")
