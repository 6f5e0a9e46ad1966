"""What a search is asked to do, as the page's form says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlcweb.ir import TVMError

STRATEGIES = {
    "function": "its own function",
    "random": "random",
    "evolutionary": "evolutionary",
    "exhaustive": "exhaustive",
}
"""How schedules are found: by calling a function of the program, or by a strategy in the default
space."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a search.

    Attributes:
        module: a module, or a single function, of the program.
        function: which TensorIR function of the module; the only one, or "main", where None.
        strategy: one of `STRATEGIES`.
        schedule_function: for the strategy "function": the name of the function.
        seed: the same seed and the same times give the same search.
        trials: programs to try; without end where None.
        seconds: time to search for; without end where None.
        workers: programs measured at one time; by default what suits the machine.
    """

    module: str
    function: str | None = None
    strategy: str = "function"
    schedule_function: str | None = None
    seed: int = 0
    trials: int | None = None
    seconds: float | None = None
    workers: int | None = None

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Settings:
        """Read the page's form; a TVMError tells what does not go together."""
        settings = Settings(
            plain["module"],
            plain.get("function"),
            plain.get("strategy") or "function",
            plain.get("scheduleFunction"),
            int(plain.get("seed") or 0),
            plain.get("trials"),
            plain.get("seconds"),
            plain.get("workers"),
        )
        if settings.strategy not in STRATEGIES:
            raise TVMError(
                f'there is no strategy "{settings.strategy}", but {", ".join(STRATEGIES)}'
            )
        if settings.strategy == "function" and settings.schedule_function is None:
            raise TVMError("a search over a function of the program needs its name")
        return settings
