"""The page's budgets that do not depend on the machine's speed."""

import pytest

from e2e.budgets import sizes, visit
from e2e.conftest import DIST


def test_a_first_visit_is_small_and_steady(new_context, serve):
    seen = visit(new_context(service_workers="allow").new_page(), serve(True))
    exceeded = [budget for budget in sizes(seen, DIST) if not budget.kept]
    assert exceeded == [], seen.shifts


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["wide", "phone"])
def test_nothing_moves_while_python_starts(new_context, serve, size):
    width, height = size
    context = new_context(service_workers="allow", viewport={"width": width, "height": height})
    assert visit(context.new_page(), serve(False)).shifts == []
