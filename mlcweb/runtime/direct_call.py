"""The short way of a call: all that is checked of arrays is that they are of the layouts that are
expected, and that no two are the same; what the kernel gets are addresses.

To hand over an address from Python takes as long as a small kernel runs. So calls are bound to the
addresses, and the bound calls are kept: a loop that calls with the same arrays hands over nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mlcweb.runtime.ndarray import Layout

MAX_ARRAYS = 8
"""Calls with more arrays take the long way."""

MAX_BOUND = 64
"""Bound calls that are cached for each function."""


@dataclass(frozen=True, slots=True)
class PointerCall:
    """A kernel that takes the addresses of its arrays in `memory`.

    `bind` makes a function without arguments from addresses. It raises `failure` where the engine
    stops the kernel, of which `explain` makes the error to be raised.
    """

    memory: object
    bind: Callable[..., Callable[[], Any]]
    failure: type[BaseException]
    explain: Callable[[Any], BaseException]


def direct_call(
    kernel: PointerCall, layouts: Sequence[Layout], otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """A function of arrays which calls the kernel at once where these have the layouts that are
    expected, and else leaves the arguments to `otherwise`."""
    count = len(layouts)
    if not 0 < count <= MAX_ARRAYS:
        return otherwise
    bound: dict[tuple[int, ...], Callable[[], Any]] = {}

    def bind(addresses: tuple[int, ...]) -> Callable[[], Any] | None:
        """The call for these addresses, from now on; None where arrays are the same."""
        if len({*addresses}) < count:
            return None
        if len(bound) >= MAX_BOUND:
            bound.clear()
        bound[addresses] = call = kernel.bind(*addresses)
        return call

    return _maker(count)(bound.get, bind, kernel.failure, kernel.explain, otherwise, *layouts)


@lru_cache
def _maker(count: int) -> Callable[..., Callable[..., Any]]:
    """Makes such functions of `count` arrays. It is written out as text, since a loop over the
    arguments would take longer than a small kernel."""
    arrays = ", ".join(f"array{index}" for index in range(count))
    layouts = ", ".join(f"layout{index}" for index in range(count))
    addresses = ", ".join(f"array{index}.address" for index in range(count))
    same_layouts = " and ".join(f"array{index}.layout is layout{index}" for index in range(count))
    text = f"""
def make(bound, bind, failure, explain, otherwise, {layouts}):
    def call(*arguments):
        try:
            {arrays}, = arguments
            same_layouts = {same_layouts}
        except (AttributeError, ValueError):
            same_layouts = False
        if same_layouts:
            addresses = {addresses},
            run = bound(addresses) or bind(addresses)
            if run is not None:
                try:
                    run()
                    return
                except failure as error:
                    raise explain(error) from None
        return otherwise(*arguments)
    return call
"""
    names: dict[str, Any] = {}
    exec(compile(text, "<direct call>", "exec"), names)
    return names["make"]
