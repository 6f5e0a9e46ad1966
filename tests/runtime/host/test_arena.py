"""Addresses in a growing memory."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.runtime.host.arena import (
    ALIGNMENT,
    FIRST_ADDRESS,
    MAXIMUM_PAGES,
    PAGE_BYTES,
    STAGGER,
    Arena,
    OutOfMemory,
    rounded,
)


class Memory:
    """Stands for a WebAssembly memory with room for so many pages."""

    def __init__(self, most: int = MAXIMUM_PAGES) -> None:
        self.most = most
        self.pages = 1

    def grow(self, pages: int) -> None:
        if self.pages + pages > self.most:
            raise MemoryError
        self.pages += pages


@given(st.lists(st.integers(0, 300_000), max_size=40), st.data())
def test_blocks_in_use_are_apart_and_inside_the_memory(sizes, data):
    memory = Memory()
    arena = Arena(memory.grow)
    used: dict[int, int] = {}
    blocks: dict[int, list[int]] = {}
    for nbytes in sizes:
        if used and data.draw(st.booleans()):
            address = data.draw(st.sampled_from(sorted(used)))
            blocks[address].append(address)
            del used[address]
        address, free = arena.take(nbytes)
        used[address], blocks[address] = nbytes, free
    end = FIRST_ADDRESS
    for address, nbytes in sorted(used.items()):
        assert address % ALIGNMENT == 0
        assert address >= end
        end = address + max(nbytes, 1)
    assert end <= memory.pages * PAGE_BYTES


def test_freed_blocks_are_used_again():
    arena = Arena(Memory().grow)
    first, free = arena.take(1000)
    free.append(first)
    assert arena.take(1010)[0] == first
    end = arena.end
    for _ in range(50_000):
        address, free = arena.take(65536)
        free.append(address)
    assert arena.end == end + rounded(65536) + STAGGER


def test_a_block_comes_back_by_its_list():
    arena = Arena(Memory().grow)
    address, free = arena.take(1000)
    assert arena.take(1000)[0] != address
    free.append(address)
    assert arena.take(1010) == (address, free)


def test_threads_may_share_an_arena():
    arena = Arena(Memory().grow)

    def work(_):
        taken = [arena.take(100) for _ in range(200)]
        for address, free in taken[::2]:
            free.append(address)
        return [address for address, _ in taken[1::2]]

    with ThreadPoolExecutor(8) as pool:
        held = [address for addresses in pool.map(work, range(16)) for address in addresses]
    assert len(set(held)) == len(held) == 1600


@given(st.integers(1, 2**32))
def test_a_block_wastes_at_most_a_fifth(nbytes):
    assert nbytes <= rounded(nbytes) <= max(1.25 * nbytes, nbytes + ALIGNMENT - 1)


def test_it_grows_to_the_last_page_and_no_further():
    arena = Arena(Memory(most=10).grow)
    arena.take(5 * PAGE_BYTES)
    arena.take(3 * PAGE_BYTES)
    with pytest.raises(OutOfMemory, match=r"full: 0\.5 MB are taken, and 1\.0 MB more were asked"):
        arena.take(16 * PAGE_BYTES)
    assert isinstance(arena.take(PAGE_BYTES)[0], int)
    with pytest.raises(MemoryError):
        arena.take(PAGE_BYTES)


def test_a_request_for_more_than_there_are_addresses_changes_nothing():
    memory = Memory()
    arena = Arena(memory.grow)
    with pytest.raises(OutOfMemory):
        arena.take(2**35)
    assert memory.pages == 1
    address = arena.take(100)[0]
    assert address + 100 <= PAGE_BYTES
