"""The page's budgets, where they do not depend on the machine's speed."""

import pytest

from e2e.budgets import sizes, visit
from e2e.conftest import DIST


def test_a_first_visit_keeps_its_budgets(browser, serve):
    with browser.new_context() as context:
        seen = visit(context.new_page(), serve(True))
    exceeded = [budget for budget in sizes(seen, DIST) if not budget.kept]
    assert exceeded == [], seen.shifts
    assert seen.first_paint < seen.ready


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["wide", "phone"])
def test_nothing_moves_while_python_starts(browser, serve, size):
    width, height = size
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        seen = visit(context.new_page(), serve(False))
    assert seen.shifts == []
