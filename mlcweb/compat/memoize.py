"""`tvm.contrib.pickle_memoize`: results of functions that are kept while the program runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_results: dict[tuple[Any, ...], Any] = {}


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Function], Function]:
    """Decorates a function whose result depends on its arguments, and on the numbers and texts of
    the function around it, alone: it is called once for each of them. Nothing is kept in files.

    Args:
        key: a name for the function, which others with the same results have, too.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any) -> Any:
            cells = getattr(function, "__closure__", None) or ()
            around = tuple(
                cell.cell_contents
                for cell in cells
                if isinstance(cell.cell_contents, (str, int, tuple, list, float, type(None)))
            )
            key_of_call = (key, repr(args), repr(around))
            if key_of_call not in _results:
                _results[key_of_call] = function(*args)
            return _results[key_of_call]

        return call  # type: ignore[return-value]

    return decorate
