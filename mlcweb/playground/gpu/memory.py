"""What memory does with the addresses of a warp: sectors of global memory, banks of shared memory.

Addresses are arrays of bytes, one row for an access of a warp and one column for each lane; as
int64, since NumPy in a browser has integers of 32 bits unless told otherwise. Sources: NVIDIA's
"CUDA C++ Programming Guide" (device memory accesses; shared memory) and "Best Practices Guide"
(coalesced access).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcweb.playground.protocol.gpu import BANKS, LANES, WORD

INACTIVE = np.int64(np.iinfo(np.int64).max)
"""Stands for the address of a lane that makes no access."""


def _distinct(values: np.ndarray) -> np.ndarray:
    """For each row sorted values where they are first met; those that are INACTIVE are not."""
    ordered = np.sort(values, axis=1)
    first = np.ones(ordered.shape, bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return np.where(first, ordered, INACTIVE)


def units(addresses: np.ndarray, size: int) -> np.ndarray:
    """How many aligned pieces of `size` bytes each row of accesses touches; no access lies across
    two of them."""
    pieces = np.where(addresses == INACTIVE, INACTIVE, addresses // size)
    return (_distinct(pieces) != INACTIVE).sum(1)


@dataclass(frozen=True, slots=True, eq=False)
class BankUse:
    """Of each access of a warp to shared memory.

    Attributes:
        degree: The most words that one bank has to give at a time; 1 without conflicts.
        passes: How often the banks are read: with 8 bytes for each lane half a warp is served at
            a time, with 16 a quarter.
    """

    degree: np.ndarray
    passes: np.ndarray


def bank_use(addresses: np.ndarray, width: int) -> BankUse:
    """How banks serve rows of accesses of `width` bytes; lanes that read one word share it."""
    words = max(1, width // WORD)
    group = min(addresses.shape[1], max(1, LANES // words))
    rows, groups = len(addresses), addresses.shape[1] // group
    first = addresses.reshape(rows * groups, group, 1)
    touched = np.where(first == INACTIVE, INACTIVE, first // WORD + np.arange(words))
    distinct = _distinct(touched.reshape(rows * groups, group * words))
    row, column = np.nonzero(distinct != INACTIVE)
    place = row * BANKS + distinct[row, column] % BANKS
    uses = np.bincount(place, minlength=rows * groups * BANKS).reshape(rows, groups, BANKS)
    passes = uses.max(2)
    return BankUse(passes.max(1), passes.sum(1))
