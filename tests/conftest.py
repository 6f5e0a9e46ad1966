"""What all unit tests share: immutable nodes, steady property tests, and the optional oracle."""

import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from mlcweb import compat
from mlcweb.analysis.verify import VerifyEachPass
from mlcweb.codegen import registry
from mlcweb.ir.node import Node
from mlcweb.ir.transform import PassContext

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    print_blob=True,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],  # which looks at the clock
)
settings.register_profile("thorough", settings.get_profile("steady"))  # tests.strategies.examples
settings.load_profile("steady")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def garbage_is_collected_less_often() -> None:
    """Programs are many small objects that live on: looking through them again and again takes a
    quarter of the time of reading one."""
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.fixture(scope="session", autouse=True)
def immutable_nodes() -> Iterator[None]:
    """Assigning to a field of an IR node that is set already is an error in every test."""

    def guard(self: Node, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"{type(self).__name__}.{name} is set once and never changed")
        object.__setattr__(self, name, value)

    Node.__setattr__ = guard
    yield
    del Node.__setattr__


@pytest.fixture(scope="session")
def oracle_python() -> str:
    """An interpreter that imports a real Apache TVM; the test is skipped where there is none.

    It must be another one than ours, in which ``import tvm`` may mean this package:
    ``MLCWEB_ORACLE_PYTHON``, or an environment ``.venv-oracle`` made with the extra ``oracle``.
    """
    python = os.environ.get("MLCWEB_ORACLE_PYTHON", str(ROOT / ".venv-oracle/bin/python"))
    try:
        done = subprocess.run([python, "-c", "import tvm.tirx"], capture_output=True)
    except OSError:
        pytest.skip("no environment with a real TVM")
    if done.returncode:
        pytest.skip(f"{python} imports no real TVM")
    return python


@pytest.fixture(autouse=True)
def no_alias_left() -> Iterator[None]:
    """``import tvm`` means this package in a test that asks for it, and in no other."""
    yield
    if compat.installed():
        compat.uninstall()
        pytest.fail("the test leaves the names of mlcweb.compat installed")


PAGE = ("course/test_stand_ins.py", "lessons/", "playground/")
"""Tests of what runs in the page, where no LLVM is."""


@pytest.fixture(autouse=True)
def targets_of_the_page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets that there are in a page."""
    if request.path.relative_to(ROOT / "tests").as_posix().startswith(PAGE):
        monkeypatch.delitem(registry._targets, "llvm", raising=False)


VERIFIED = (
    "analysis", "codegen", "dlight", "lower", "random_programs", "schedule", "te", "tensor_intrin",
    "tir", "topi",
)  # fmt: skip
"""Folders of tests in which what every step and every pass has made is verified."""


@pytest.fixture(autouse=True)
def verified_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Verify programs where schedules and lowering are tested."""
    if request.path.relative_to(ROOT / "tests").parts[0] not in VERIFIED:
        yield
        return
    with PassContext(instruments=[VerifyEachPass()]):
        yield
