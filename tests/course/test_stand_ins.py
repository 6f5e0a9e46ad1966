"""Chapters that import PyTorch, as they run in the page: with the stand-in, whose pictures are
drawn and whose weights know them; and with PyTorch itself, on the same pictures.

Each runs as one program, and cell by cell. Drawing is left out: there may be no matplotlib here.
"""

import asyncio
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from mlcweb import compat, meta_schedule, runtime
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.playground import cell, magics, notebook
from mlcweb.stand_ins.torchvision import datasets
from mlcweb.stand_ins.torchvision.weights import pickled

pytestmark = [  # the book's open() stays open
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CELLS = Path(__file__).parent / "cells"

DOCUMENTS = {
    "chapter 3": ["chapter3"],
    "chapter 4 of 2025": ["chapter4", "chapter4_tuning", "chapter4_model"],
    "chapter 4 of 2022": ["chapter4", "chapter4_tuning_2022", "chapter4_model_2022"],
    "chapter 5": ["chapter5"],
    "chapter 7": ["chapter7"],
    "tiling report": ["chapter7", "tiling_report"],
}


def cells_of(document: str) -> list[str]:
    sources = [(CELLS / f"{name}.txt").read_text() for name in DOCUMENTS[document]]
    return [each for source in sources for each in re.split(r"^# %%\n", source, flags=re.M)]


@pytest.fixture(params=["stand-in", pytest.param("PyTorch", marks=pytest.mark.thorough)])
def course(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The folder and the modules that the documents find, and short searches."""
    monkeypatch.chdir(tmp_path)
    for name in ("torch", "torchvision", "__main__"):
        if name in sys.modules:  # what they are before comes back afterwards
            monkeypatch.setitem(sys.modules, name, sys.modules[name])
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    whole = meta_schedule.tune_tir

    def short(**options: Any) -> Any:
        small: dict[str, Any] = {"max_trials_global": 6, "num_trials_per_iter": 6}
        if "config" in options:  # as in 2022
            small = {"config": meta_schedule.TuneConfig(**small)}
        runner = partial(ThreadRunner, timing=Timing(2, 0.02))
        return whole(**{**options, **small, "seed": 1, "runner": runner})

    monkeypatch.setattr(meta_schedule, "tune_tir", short)
    compat.install(stand_ins=request.param == "stand-in")
    if request.param == "PyTorch":
        torch = pytest.importorskip("torch", reason="PyTorch comes with `make test-all`")

        def to_tensor() -> Any:
            return lambda picture: torch.from_numpy(picture[None].astype("float32") / 255)

        transforms = SimpleNamespace(ToTensor=to_tensor)
        vision = SimpleNamespace(datasets=datasets, transforms=transforms)
        monkeypatch.setitem(sys.modules, "torchvision", vision)
        for name, network in compat.WEIGHT_FILES.items():
            monkeypatch.setitem(magics.FILES, name, partial(pickled, network))
        # It needs a package that the other cells do not.
        monkeypatch.setattr(torch.fx.Graph, "print_tabular", lambda graph: print(graph))
    yield request.param
    compat.uninstall()
    for name in ("env.linear", "env.relu"):
        if runtime.get_global_func(name, allow_missing=True) is not None:
            runtime.remove_global_func(name)


def expect_predictions(printed: str) -> None:
    """Every prediction is the class of the picture that was shown last."""
    kind, predictions = "", 0
    for what, value in re.findall(r"^(Class|.*Prediction): (.*)$", printed, re.M):
        if what == "Class":
            kind = value
        else:
            predictions += 1
            assert value == kind
    assert predictions >= 1


@pytest.mark.parametrize("document", DOCUMENTS)
def test_in_one_go(document: str, course: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = cell.execute("\n# %%\n".join(cells_of(document)), "document.py")
    assert result.ok, result.error
    expect_predictions(capsys.readouterr().out)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_cell_by_cell(document: str, course: str, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.restart(document)
    for number, source in enumerate(cells_of(document), 1):
        result = asyncio.run(notebook.execute(source, document, number))
        assert result.ok, result.error
    expect_predictions(capsys.readouterr().out)
    notebook.restart(document)
