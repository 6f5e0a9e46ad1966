"""Cells and lessons of the playground inside a page of another site."""

import json
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import FrameLocator, Page, Playwright, expect

from e2e import chromium, snapshot
from e2e.conftest import ROOT
from e2e.host_page import ISOLATED, HostServer
from e2e.playground import LIMIT_MS
from e2e.test_sharing import OLD_LINK

PAGE = """<!doctype html>
<title>A course page</title>
<script src="{playground}embed.js"></script>
<h1>A lesson of ours</h1>
{body}
"""

CELL = """
<mlc-cell>
  <pre><code>
    import sys
    print("sum", 20 + 22)
    sys.shared = getattr(sys, "shared", 0) + 1
    print("python", sys.shared)
  </code></pre>
</mlc-cell>
"""

SCHEDULE = """
<mlc-cell panes="trace code" theme="dark">
<script type="text/x-python">
import tvm
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + 1.0

sch = tvm.tir.Schedule(main)
i, = sch.get_loops("B")
sch.vectorize(sch.split(i, [None, 4])[1])
</script>
</mlc-cell>
"""


@pytest.fixture
def host() -> Iterator[HostServer]:
    with HostServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def embed(new_context, server, host, page_snapshot):
    """Opens a page of another origin with some elements in it.

    On another site, too, the browser denies the frames all storage, and so the snapshot.
    """

    def open_page(
        body: str,
        *,
        isolated: bool = False,
        isolated_host: bool = False,
        other_site: bool = False,
        listed: bool = True,
        context=None,
    ) -> Page:
        serving = server(isolated)
        serving.snapshot = page_snapshot
        if context is None:
            context = new_context()
            snapshot.install(context, serving.url, page_snapshot)
        text = PAGE.format(playground=serving.url, body=body)
        headers = ISOLATED if isolated_host else None
        address = host.put("course.html", text, headers, other_site=other_site)
        settings = {"embedders": [address.removesuffix("/course.html")] if listed else []}
        context.route("**/settings.json", lambda route: route.fulfill(json=settings))
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto(address)
        return page

    return open_page


def start(page: Page, index: int = 0) -> FrameLocator:
    page.get_by_test_id("embed-start").nth(0).click()
    return page.frame_locator("iframe").nth(index)


def expect_output(frame: FrameLocator, text: str) -> None:
    expect(frame.get_by_test_id("console")).to_contain_text(text)


@pytest.mark.thorough
def test_static_code_is_shown_until_the_reader_presses_run(embed):
    requests = []
    page = embed("")
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", CELL)
    expect(page.get_by_text("20 + 22")).to_be_visible()
    expect(page.get_by_test_id("embed-start")).to_be_visible()
    expect(page.get_by_test_id("embed-frame")).to_have_count(0)
    assert requests == []
    frame = start(page)
    expect_output(frame, "sum 42")
    expect(page.get_by_text("20 + 22")).to_be_hidden()


@pytest.mark.parametrize(
    ("isolated", "isolated_host"),
    [
        (True, False),
        pytest.param(False, False, marks=pytest.mark.thorough),
        pytest.param(True, True, marks=pytest.mark.thorough),
    ],
)
def test_runs_in_pages_of_other_sites_with_and_without_isolation(embed, isolated, isolated_host):
    page = embed(CELL, isolated=isolated, isolated_host=isolated_host, other_site=True)
    assert page.evaluate("crossOriginIsolated") is isolated_host
    frame = start(page)
    expect_output(frame, "sum 42")
    assert page.frames[1].evaluate("crossOriginIsolated") is isolated


def test_stops_an_endless_program_without_isolation(embed):
    page = embed('<mlc-cell><pre>print("begun")\nwhile True: pass</pre></mlc-cell>')
    frame = start(page)
    expect_output(frame, "begun")
    frame.get_by_test_id("stop").click()
    status = frame.get_by_test_id("status")
    expect(status).to_have_attribute("data-state", "ready")


@pytest.mark.thorough
def test_several_cells_share_one_python(embed):
    page = embed(CELL * 3)
    first = start(page)
    expect_output(first, "python 1")
    second = start(page, 1)
    expect_output(second, "sum 42")
    expect_output(second, "python 2")
    third = start(page, 2)
    expect_output(third, "python 3")
    expect(first.get_by_test_id("console")).not_to_contain_text("python 2")
    # Only the first has a worker that runs Python.
    assert len(page.workers) == 1


@pytest.mark.thorough
def test_a_guest_stops_its_own_program_and_outlives_its_host(embed):
    page = embed(CELL + '<mlc-cell><pre>print("begun")\nwhile True: pass</pre></mlc-cell>')
    first = start(page)
    expect_output(first, "python 1")
    second = start(page, 1)
    expect_output(second, "begun")
    second.get_by_test_id("stop").click()
    status = second.get_by_test_id("status")
    expect(status).to_have_attribute("data-state", "ready")
    page.evaluate("() => document.querySelector('mlc-cell').remove()")
    alone = page.frame_locator("iframe").nth(0)
    expect_output(alone, "is gone. It was started again")
    status = alone.get_by_test_id("status")
    expect(status).to_have_attribute("data-state", "ready")
    alone.get_by_test_id("run").click()
    expect_output(alone, "begun")
    alone.get_by_test_id("stop").click()


@pytest.mark.thorough
def test_views_and_theme_are_attributes(embed):
    page = embed(SCHEDULE)
    frame = start(page)
    expect(frame.get_by_test_id("tab-trace")).to_be_visible()
    expect(frame.get_by_test_id("tab-search")).to_have_count(0)
    expect(frame.get_by_test_id("trace-step").last).to_contain_text("vectorize")
    html = frame.locator("html")
    expect(html).to_have_attribute("data-theme", "dark")
    page.evaluate("() => document.querySelector('mlc-cell').setAttribute('theme', 'light')")
    expect(html).to_have_attribute("data-theme", "light")


@pytest.mark.thorough
def test_the_frame_grows_with_its_content_or_keeps_its_height(embed):
    program = '<pre>for i in range({}): print("line", i)</pre>'
    page = embed(
        f"<mlc-cell>{program.format(3)}</mlc-cell>"
        f'<mlc-cell height="300">{program.format(30)}</mlc-cell>'
    )
    first = start(page)
    expect_output(first, "line 2")
    frame = page.get_by_test_id("embed-frame").first
    assert frame.evaluate("f => f.offsetHeight") < 260
    second = start(page, 1)
    expect_output(second, "line 29")
    assert page.get_by_test_id("embed-frame").nth(1).evaluate("f => f.offsetHeight") == 300


def test_autorun_and_src(embed, host):
    host.put("sum.py", "print('fetched', 6 * 7)", {"Access-Control-Allow-Origin": "*"})
    page = embed('<mlc-cell autorun src="sum.py"><pre>not this</pre></mlc-cell>')
    expect_output(page.frame_locator("iframe"), "fetched 42")


@pytest.mark.thorough
def test_a_cell_that_is_far_below_does_not_start_by_itself(embed):
    cell = "<mlc-cell autorun {}><pre>print(1)</pre></mlc-cell>"
    far = 'id="far" style="position: absolute; top: 300vh"'
    page = embed(cell.format(far) + cell.format('id="near"'))
    # The browser tells of both at once.
    expect(page.locator("#near").get_by_test_id("embed-frame")).to_have_count(1)
    expect(page.locator("#far").get_by_test_id("embed-frame")).to_have_count(0)
    page.locator("#far").scroll_into_view_if_needed()
    expect(page.locator("#far").get_by_test_id("embed-frame")).to_have_count(1)


def test_the_playground_opens_with_the_program_as_it_is(embed):
    page = embed(CELL)
    frame = start(page)
    expect_output(frame, "sum 42")
    with page.context.expect_page() as opened:
        frame.get_by_test_id("open-playground").click()
    expect(opened.value.get_by_test_id("editor")).to_contain_text("20 + 22")
    expect(opened.value.get_by_test_id("shared-notice")).to_be_visible()


@pytest.mark.thorough
def test_a_copied_frame_shows_its_program_and_waits(embed, serve):
    page = embed(f'<iframe src="{serve(False)}embed.html#code={OLD_LINK}"></iframe>')
    frame = page.frame_locator("iframe")
    expect(frame.get_by_test_id("editor")).to_contain_text("shared in 2026")
    expect(frame.get_by_test_id("status")).to_have_attribute("data-state", "ready")
    expect(frame.get_by_test_id("status")).to_have_attribute("data-ended", "0")
    expect(frame.get_by_test_id("console")).to_have_text("")


@pytest.mark.thorough
def test_works_where_all_storage_is_denied(playwright: Playwright, embed, tmp_path):
    preferences = tmp_path / "Default" / "Preferences"
    preferences.parent.mkdir()
    denied = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    preferences.write_text(json.dumps(denied))
    context = playwright.chromium.launch_persistent_context(
        tmp_path, executable_path=chromium.find(), args=chromium.FLAGS, headless=True
    )
    try:
        page = embed(CELL * 2, context=context, other_site=True)
        first = start(page)
        expect_output(first, "sum 42")
        assert page.frames[1].evaluate(
            "() => { try { localStorage; return false } catch { return true } }"
        )
        expect_output(start(page, 1), "python 2")
    finally:
        context.close()


@pytest.mark.thorough
def test_a_lesson_runs_in_a_frame(embed):
    page = embed('<mlc-lesson lesson="02-tensorir"><p>Static words.</p></mlc-lesson>')
    expect(page.get_by_text("Static words.")).to_be_visible()
    frame = start(page)
    cell = frame.get_by_test_id("lesson-cell").first
    expect(cell).to_be_visible()
    frame.get_by_test_id("run").click()
    status = frame.get_by_test_id("status")
    expect(status).to_have_attribute("data-ended", "1")
    expect(status).to_have_attribute("data-state", "ready")
    frame.get_by_test_id("lesson-nav").get_by_label("Next lesson").click()
    expect(frame.get_by_role("heading", level=2).first).not_to_contain_text("TensorIR: ")


@pytest.mark.thorough
def test_the_example_page_works(embed, host, serve):
    example = (ROOT / "web" / "examples" / "course-page.html").read_text(encoding="utf-8")
    address = host.put("example.html", example.replace("../embed.js", f"{serve(True)}embed.js"))
    page = embed("")
    page.goto(address)
    frame = start(page)
    frame.get_by_test_id("tab-trace").click()
    expect(frame.get_by_test_id("trace-step").last).to_contain_text("vectorize")


@pytest.mark.thorough
def test_a_guest_that_floods_is_stopped(embed):
    flood = "<mlc-cell><pre>while True: print('x' * 1000)</pre></mlc-cell>"
    page = embed(CELL + flood, isolated=True)
    expect_output(start(page), "python 1")
    second = start(page, 1)
    expect_output(second, "were dropped")
    second.get_by_test_id("stop").click()
    expect(second.get_by_test_id("status")).to_have_attribute("data-state", "ready")
    text = second.get_by_test_id("console").evaluate("element => element.textContent.length")
    assert text < 250_000


@pytest.mark.parametrize("attribute", ["", "autorun"])
def test_a_page_that_is_not_listed_starts_nothing(embed, attribute):
    page = embed(f'<mlc-cell {attribute}><pre>print("ran", 6 * 7)</pre></mlc-cell>', listed=False)
    if not attribute:
        page.get_by_test_id("embed-start").click()
    frame = page.frame_locator("iframe")
    status = frame.get_by_test_id("status")
    expect(status).to_have_attribute("data-state", "ready")
    expect(frame.locator("#toast")).to_contain_text("Press Run")
    expect(status).to_have_attribute("data-ended", "0")
    expect(frame.get_by_test_id("console")).to_have_text("")
    frame.get_by_test_id("run").click()
    expect_output(frame, "ran 42")
