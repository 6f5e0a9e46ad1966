"""A real TVM to ask, one question after another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.answering import Ask, answering

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def ask_tvm(oracle_python: str) -> Iterator[Ask]:
    """A function that puts a question of `ask_tvm.py` to TVM."""
    with answering(oracle_python, HERE / "ask_tvm.py") as ask:
        yield ask


@pytest.fixture(scope="session")
def replay(oracle_python: str) -> Iterator[Ask]:
    """The same of `replay_walks.py`."""
    with answering(oracle_python, HERE / "replay_walks.py") as ask:
        yield ask


@pytest.fixture(scope="session")
def try_arguments(oracle_python: str) -> Iterator[Ask]:
    """The same of `try_arguments.py`."""
    with answering(oracle_python, HERE / "try_arguments.py") as ask:
        yield ask
