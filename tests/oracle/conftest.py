"""A real TVM to ask, one question after another."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def ask_tvm(oracle_python: str) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """A function that puts a question of `ask_tvm.py` to TVM.

    Its interpreter lives on, so that each of several test processes asks what it needs itself, and
    no more.
    """
    command = [oracle_python, str(Path(__file__).parent / "ask_tvm.py")]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as tvm,
    ):
        assert tvm.stdin is not None and tvm.stdout is not None
        to_tvm, from_tvm = tvm.stdin, tvm.stdout

        def ask(question: dict[str, Any]) -> dict[str, Any]:
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
