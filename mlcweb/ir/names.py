"""Names that nothing else has."""

from __future__ import annotations


def unique_name(hint: str, taken: set[str]) -> str:
    """`hint`, with `_1`, `_2`, … where it is taken; from then on the name is taken, too."""
    name, count = hint, 0
    while name in taken:
        count += 1
        name = f"{hint}_{count}"
    taken.add(name)
    return name
