"""An order of bindings in which each comes after what it uses."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import TVMError
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars


def in_order_of_use(units: Sequence[Sequence[E.Binding]]) -> list[int]:
    """The places of units of bindings, in an order in which each unit comes after those that bind
    what it uses. Units keep their order where they can.

    Raises:
        TVMError: two units use each other.
    """
    owner = {binding.var: place for place, unit in enumerate(units) for binding in unit}
    ordered: dict[int, None] = {}
    open_units: list[int] = []

    def visit(place: int) -> None:
        if place in ordered:
            return
        if place in open_units:
            cycle = sorted(open_units[open_units.index(place) :])
            groups = (", ".join(b.var.name_hint for b in units[each]) for each in cycle)
            raise TVMError(
                "A cyclic dependency detected: of what would be computed together, each needs "
                f"another: ({'), ('.join(groups)}); match fewer, or what is between them, too"
            )
        open_units.append(place)
        for binding in units[place]:
            for var in used_vars(binding.value):
                needed = owner.get(var, place)
                if needed != place:
                    visit(needed)
        open_units.pop()
        ordered[place] = None

    for place in range(len(units)):
        visit(place)
    return list(ordered)
