"""What stands in for the course's downloads: seeded images and weights of the same shapes.

`install` provides the few names of torch, torchvision and matplotlib with which the course loads
and shows a picture and writes its library functions, and the file of weights in the current folder.
`run_chapter` runs a chapter's cells with them.
"""

import io
import pickle
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from mlcweb import compat
from mlcweb.playground import cell

CELLS = Path(__file__).parent / "cells"

CLASS_NAMES = [
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
    "Ankle boot",
]  # fmt: skip


def weights():
    """Weights of the two-layer network, by the course's names."""
    rng = np.random.default_rng(7)
    shapes = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
    return {name: rng.normal(0, 0.1, shape).astype("float32") for name, shape in shapes.items()}


def picture():
    """A picture of shape (1, 1, 28, 28) and its label, both in a batch of one."""
    rng = np.random.default_rng(11)
    return rng.random((1, 1, 28, 28), dtype="float32"), np.array([3])


def logits(image):
    """What the network gives for a picture, computed by NumPy."""
    w = weights()
    hidden = np.maximum(image.reshape(1, 784) @ w["w0"].T + w["b0"], 0)
    return hidden @ w["w1"].T + w["b1"]


class Tensor:
    """As much of a torch.Tensor as the course uses, over NumPy's memory."""

    def __init__(self, data):
        self.data = np.asarray(data, "float32")

    @property
    def T(self):
        return Tensor(self.data.T)

    def reshape(self, *shape):
        return Tensor(self.data.reshape(*shape))

    def numpy(self):
        return self.data


def _into_out(function):
    """A function of torch that writes into `out`, from NumPy's."""

    def run(a, b, out):
        function(a.data, b.data, out=out.data)
        return out

    return run


def _loader(dataset, batch_size, shuffle):
    image, label = picture()
    return [(Tensor(image), label)]


TORCH = SimpleNamespace(
    utils=SimpleNamespace(data=SimpleNamespace(DataLoader=_loader)),
    Tensor=Tensor,
    from_dlpack=lambda array: Tensor(np.from_dlpack(array)),
    mm=_into_out(np.matmul),
    add=_into_out(np.add),
    maximum=_into_out(np.maximum),
)


def install(monkeypatch, folder):
    """Put the stand-ins where the cells look for the real things."""
    modules = {
        "torch": TORCH,
        "torchvision": MagicMock(),
        "matplotlib": MagicMock(),
        "matplotlib.pyplot": MagicMock(),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(folder)
    for name in ("fashionmnist_mlp_params.pkl", "fasionmnist_mlp_params.pkl"):  # as both spell it
        (folder / name).write_bytes(pickle.dumps(weights()))


def run_chapter(names, folder):
    """Run a file of cells, or several one after the other, in a folder of its own; what they
    define, and as `printed` what they print."""
    names = [names] if isinstance(names, str) else names
    first, *rest = ((CELLS / f"{name}.txt").read_text() for name in names)
    # Python takes this import at the beginning of a source alone, and cells are one source here.
    rest = [cells.replace("from __future__ import annotations\n", "") for cells in rest]
    source = "\n# %%\n".join([first, *rest])
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        install(patch, folder)
        # A cell takes the place of the main program; the test's own comes back afterwards.
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        compat.install()
        try:
            with redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # the book's open() stays open
                result = cell.execute(source, f"{names[0]}.py")
        finally:
            compat.uninstall()
        assert result.ok, result.error
        defined = dict(vars(sys.modules["__main__"]))
    return SimpleNamespace(**defined, printed=printed.getvalue())
