"""The page's budgets that do not depend on the machine's speed."""

import pytest
from playwright.sync_api import expect

from e2e.budgets import sizes, visit
from e2e.conftest import DIST
from e2e.playground import Playground


def test_a_first_visit_loads_from_its_own_origin_and_is_small_and_steady(new_context, serve):
    page, address = new_context(service_workers="allow").new_page(), serve(True)
    seen = visit(page, address)
    assert page.evaluate("crossOriginIsolated") is True
    playground = Playground(page)
    expect(playground["status"]).to_have_attribute("data-start", "plain")
    expect(playground["editor"]).to_contain_text("class MyModule:")
    assert len(seen.requests) > 5
    foreign = [url for url in seen.requests if address not in url]
    assert foreign == []  # the workers are blobs of the page
    assert seen.problems == []
    exceeded = [budget for budget in sizes(seen, DIST) if not budget.kept]
    assert exceeded == [], seen.shifts


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["wide", "phone"])
def test_nothing_moves_while_python_starts(new_context, serve, size):
    width, height = size
    context = new_context(service_workers="allow", viewport={"width": width, "height": height})
    assert visit(context.new_page(), serve(False)).shifts == []
