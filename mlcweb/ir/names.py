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


class UniqueNameSupply:
    """Gives names that it has not given yet; all begin with a prefix and `_`, if there is one."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._counts: dict[str, int] = {}

    def _name(self, name: str, add_prefix: bool) -> str:
        full = f"{self.prefix}_{name}" if self.prefix and add_prefix else name
        return full.replace(".", "_")

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """The name, or with `_1`, `_2`, … (or 1, 2, …) where it is taken; "v" for an empty one."""
        base = fresh = self._name(name or "v", add_prefix)
        while fresh in self._counts:
            self._counts[base] = count = self._counts[base] + 1
            fresh = f"{base}_{count}" if add_underscore else f"{base}{count}"
        self._counts[fresh] = 0
        return fresh

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name."""
        full = self._name(name, add_prefix)
        self._counts[full] = 0
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether a name is taken."""
        return self._name(name, add_prefix) in self._counts
