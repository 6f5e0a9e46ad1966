"""Where the tokens of sequences lie in the pages of a cache: which pages, and which slots of them.

Sequences that were forked share pages until one of them writes into one. A sequence with a window
forgets its oldest tokens, but for the first ones, its sinks: what is forgotten leaves a gap between
the sinks and the window, and pages that lie in the gap go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlcweb.runtime.arguments import ArgumentValueError


class PagePool:
    """Pages that are free, and how many sequences hold each of the others."""

    def __init__(self, count: int) -> None:
        self.free = list(range(count - 1, -1, -1))
        self.holders: dict[int, int] = {}

    def take(self) -> int:
        page = self.free.pop()
        self.holders[page] = 1
        return page

    def share(self, page: int) -> int:
        self.holders[page] += 1
        return page

    def release(self, page: int) -> None:
        self.holders[page] -= 1
        if not self.holders[page]:
            del self.holders[page]
            self.free.append(page)


@dataclass
class CachedSequence:
    """The tokens of a sequence that are kept, by their numbers from 0 on."""

    pool: PagePool
    page_size: int
    pages: list[int] = field(default_factory=list)
    length: int = 0
    gap: int = 0
    """Slots between the sinks and the window."""
    window: int | None = None
    sinks: int = 0
    tree: list[int] = field(default_factory=list)
    """The last tokens, where they are a tree that is not decided yet: the parent of each, -1 for
    what follows the token before the tree."""

    @property
    def used(self) -> int:
        """Slots up to the last token."""
        return self.length + self.gap

    @property
    def last_page_length(self) -> int:
        return self.used - (len(self.pages) - 1) * self.page_size if self.pages else 0

    def slot(self, token: int) -> int:
        """The slot of a token among those of all pages."""
        at = token if token < self.sinks or not self.gap else token + self.gap
        return self.pages[at // self.page_size] * self.page_size + at % self.page_size

    def shares_last_page(self) -> bool:
        """Whether the next token lies in a page of several sequences."""
        inside = self.used % self.page_size
        return bool(inside) and self.pool.holders[self.pages[-1]] > 1

    def pages_needed(self, count: int) -> int:
        """How many pages `append` takes, at most."""
        more = -(-(self.used + count) // self.page_size) - len(self.pages)
        return more + self.shares_last_page()

    def append(self, count: int, copy_page: Callable[[int, int, int], None]) -> list[int]:
        """Take slots for new tokens. `copy_page(old, new, slots)` is called where a page is shared
        into which the sequence is going to write."""
        if self.shares_last_page():
            shared = self.pages[-1]
            self.pages[-1] = self.pool.take()
            copy_page(shared, self.pages[-1], self.used % self.page_size)
            self.pool.release(shared)
        first, self.length = self.length, self.length + count
        while len(self.pages) * self.page_size < self.used:
            self.pages.append(self.pool.take())
        return [self.slot(token) for token in range(first, self.length)]

    def pop(self, count: int) -> None:
        """Forget the last tokens."""
        if count > self.length - (self.sinks if self.gap else 0):
            raise ArgumentValueError(
                f"A sequence of {self.length} tokens cannot lose the last {count}"
                + (f": its first {self.sinks} stay" if self.gap else "")
            )
        self.length -= count
        while (len(self.pages) - 1) * self.page_size >= self.used:
            self.pool.release(self.pages.pop())
            if not self.pages:
                break

    def fork(self, length: int) -> CachedSequence:
        """Another sequence that begins with the first tokens of this one."""
        pages = self.pages[: -(-length // self.page_size)]
        shared = [self.pool.share(page) for page in pages]
        return CachedSequence(self.pool, self.page_size, shared, length)

    def slide(self) -> None:
        """Forget the tokens that are out of the window."""
        if self.window is None or self.length <= self.window:
            return
        self.gap += self.length - self.window
        self.length = self.window
        first = -(-self.sinks // self.page_size)
        while self.sinks + self.gap >= (first + 1) * self.page_size:
            self.pool.release(self.pages.pop(first))
            self.gap -= self.page_size

    def release(self) -> None:
        for page in self.pages:
            self.pool.release(page)
        self.pages.clear()

    # Trees of tokens

    def depths(self) -> list[int]:
        """How many tokens of the tree are above each of it."""
        depths: list[int] = []
        for parent in self.tree:
            depths.append(0 if parent == -1 else depths[parent] + 1)
        return depths

    def walk(self) -> list[tuple[int, int]]:
        """For each token of the tree, when a walk through the tree comes to it, and when it leaves
        the last one below it."""
        children: list[list[int]] = [[] for _ in range(len(self.tree) + 1)]
        for node, parent in enumerate(self.tree):
            children[parent].append(node)
        order: list[tuple[int, int]] = [(0, 0)] * len(self.tree)
        time = 0
        todo = [(node, False) for node in reversed(children[-1])]
        while todo:
            node, left = todo.pop()
            if left:
                order[node] = order[node][0], time
                continue
            order[node] = time, time
            time += 1
            todo.append((node, True))
            todo += [(child, False) for child in reversed(children[node])]
        return order

    def accept(self, leaf: int) -> tuple[list[int], list[int]]:
        """Keep of the tree a token and what is above it (of -1, nothing): the slots that these are
        in, and those that they are to be copied to in this order."""
        path: list[int] = []
        while leaf != -1:
            path.insert(0, leaf)
            leaf = self.tree[leaf]
        start = self.length - len(self.tree)
        moved = [(node, at) for at, node in enumerate(path) if node != at]
        old = [self.slot(start + node) for node, _ in moved]
        new = [self.slot(start + at) for _, at in moved]
        return old, new

    def settle(self, leaf: int) -> None:
        """Forget what of the tree `accept` does not keep, after the copies."""
        depth = -1 if leaf == -1 else self.depths()[leaf]
        count = len(self.tree) - depth - 1
        self.tree.clear()
        self.pop(count)


def check_batch(numbers: Sequence[int], counts: Sequence[int]) -> None:
    """Refuse what is no forward pass of sequences."""
    different = len(set(numbers)) == len(numbers) == len(counts)
    if not different or min(counts, default=0) < 1:
        raise ArgumentValueError(
            "A forward pass takes different sequences and a positive number of tokens for each, "
            f"not {list(numbers)} and {list(counts)}"
        )


def check_tree(sequence: CachedSequence, parents: Sequence[int]) -> None:
    """Refuse parents of new tokens that are not before them."""
    first = len(sequence.tree)
    for node, parent in enumerate(parents, first):
        if not -1 <= parent < node:
            raise ArgumentValueError(
                f"The parent of the token {node} of a tree is a token before it, or -1, not "
                f"{parent}"
            )
