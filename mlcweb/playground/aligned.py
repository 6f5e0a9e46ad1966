"""Two sequences side by side, such as the lines of two texts."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterator, Sequence


def aligned(
    before: Sequence[Hashable], after: Sequence[Hashable], autojunk: bool = False
) -> Iterator[tuple[int | None, int | None]]:
    """The positions of equal items in both, in order; between them those of what was removed, then
    those of what was added in its place, with None for the other side.

    Args:
        autojunk: less exact, and fast on long sequences that repeat themselves.
    """
    matcher = difflib.SequenceMatcher(None, before, after, autojunk)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            yield from ((position, None) for position in range(i, i_end))
            yield from ((None, position) for position in range(j, j_end))
