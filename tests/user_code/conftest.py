"""Errors are tested as the page shows them: programs run in its cells."""

from tests.playground.conftest import own_main, run

__all__ = ["own_main", "run"]
