"""A real TVM that answers one question after another."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Ask = Callable[[dict[str, Any]], dict[str, Any]]


@contextmanager
def answering(python: str, script: Path) -> Iterator[Ask]:
    """A TVM that answers what a script is asked.

    Its interpreter lives on, so that each of several test processes asks what it needs itself, and
    no more.
    """
    command = [python, str(script)]
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
