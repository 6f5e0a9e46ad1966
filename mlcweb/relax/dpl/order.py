"""An order of bindings in which each comes after what it uses."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars


def in_order_of_use(units: Sequence[Sequence[E.Binding]]) -> list[int]:
    """The places of units of bindings, in an order in which each unit comes after those that bind
    what it uses. Units keep their order where they can."""
    owner = {binding.var: place for place, unit in enumerate(units) for binding in unit}
    ordered: dict[int, None] = {}

    def visit(place: int) -> None:
        if place in ordered:
            return
        for binding in units[place]:
            for var in used_vars(binding.value):
                needed = owner.get(var, place)
                if needed != place:
                    visit(needed)
        ordered[place] = None

    for place in range(len(units)):
        visit(place)
    return list(ordered)
