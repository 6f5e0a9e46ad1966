"""The buffers that a block reads and writes, found by their number, their name, or themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcweb.schedule.errors import BufferNameError, NotFoundError
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.buffer import Buffer, BufferRegion

ACCESSES = ("read", "write")


@dataclass(frozen=True, slots=True)
class AccessedBuffer:
    """The `index`-th buffer that a block reads or writes."""

    access: str
    index: int

    def at(self, place: BlockPlace) -> Buffer:
        """The buffer; NotFoundError where the block has none of this index."""
        return accessed_buffer(place, self.index, self.access)

    def __str__(self) -> str:
        return f'("{self.access}", {self.index})'


def accessed_buffer(place: BlockPlace, index: int, access: str) -> Buffer:
    """The buffer that a block reads or writes (`access`) as its `index`-th region; NotFoundError
    where there is none."""
    regions = _regions(place, access)
    if 0 <= index < len(regions):
        return regions[index].buffer
    raise NotFoundError(
        f"The {place.title} has {len(regions)} {access} region(s), and the `buffer_index` {index} "
        f"is not in [0, {len(regions)})",
        [place.realize],
        f"the buffers are, in order: {_names(regions)}",
    )


def find_buffer(
    place: BlockPlace, buffer: tuple[str, int] | str | Buffer, accesses: Sequence[str] = ACCESSES
) -> AccessedBuffer:
    """Which of the buffers that a block reads or writes is meant; BufferNameError where none is.

    A name means the last access of a buffer, and the buffer itself the first, as in TVM.
    """
    sides = {access: _regions(place, access) for access in accesses}
    everywhere = [
        (AccessedBuffer(access, index), region.buffer)
        for access, regions in sides.items()
        for index, region in enumerate(regions)
    ]
    if isinstance(buffer, tuple):
        number = AccessedBuffer(*buffer)
        what, matches = str(buffer), [one for one in everywhere if one[0] == number]
    elif isinstance(buffer, str):
        what, matches = f'"{buffer}"', [one for one in everywhere if one[1].name == buffer][::-1]
    else:
        what, matches = f'"{buffer.name}"', [one for one in everywhere if one[1] is buffer]
    if len({match for _, match in matches}) == 1:
        return matches[0][0]
    access = " or ".join(accesses)
    raise BufferNameError(
        f"The {place.title} {access}s several buffers {what}"
        if matches
        else f"The {place.title} does not {access} {what}",
        [place.realize],
        "; ".join(f"it {access}s {_names(regions)}" for access, regions in sides.items()),
    )


def _regions(place: BlockPlace, access: str) -> Sequence[BufferRegion]:
    return place.block.reads if access == "read" else place.block.writes


def _names(regions: Sequence[BufferRegion]) -> str:
    return ", ".join(f'"{region.buffer.name}"' for region in regions) or "none"
