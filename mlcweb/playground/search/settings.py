"""What a search is asked to do, checked."""

from __future__ import annotations

from typing import get_args

from mlcweb.ir import TVMError
from mlcweb.playground.protocol.search import SearchSettings, Strategy


def check(settings: SearchSettings) -> None:
    """Raises a TVMError that tells what does not go together."""
    strategies = get_args(Strategy)
    if settings.strategy not in strategies:
        raise TVMError(f'there is no strategy "{settings.strategy}", but {", ".join(strategies)}')
    if settings.strategy == "function" and settings.schedule_function is None:
        raise TVMError("a search over a function of the program needs its name")
