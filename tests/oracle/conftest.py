"""A real TVM to ask, one question after another."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Ask = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="session")
def ask_tvm(oracle_python: str) -> Iterator[Ask]:
    """A function that puts a question of `ask_tvm.py` to TVM."""
    with answering(oracle_python, "ask_tvm.py") as ask:
        yield ask


@pytest.fixture(scope="session")
def replay(oracle_python: str) -> Iterator[Ask]:
    """The same of `replay_walks.py`."""
    with answering(oracle_python, "replay_walks.py") as ask:
        yield ask


@pytest.fixture(scope="session")
def try_arguments(oracle_python: str) -> Iterator[Ask]:
    """The same of `try_arguments.py`."""
    with answering(oracle_python, "try_arguments.py") as ask:
        yield ask


@contextmanager
def answering(python: str, script: str) -> Iterator[Ask]:
    """A TVM that answers what a script of this folder is asked.

    Its interpreter lives on, so that each of several test processes asks what it needs itself, and
    no more.
    """
    command = [python, str(Path(__file__).parent / script)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as tvm,
    ):
        assert tvm.stdin is not None and tvm.stdout is not None
        to_tvm, from_tvm = tvm.stdin, tvm.stdout

        def ask(question: dict[str, Any]) -> dict[str, Any]:
            """The answer to a question, both what JSON can hold."""
            try:
                to_tvm.write(json.dumps(question) + "\n")
                to_tvm.flush()
                line = from_tvm.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                errors.seek(0)
                pytest.fail(f"TVM has ended: {errors.read()}")
            return json.loads(line)

        yield ask
