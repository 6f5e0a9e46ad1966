"""What stands in for the course's downloads: seeded images and weights of the same shapes.

`install` provides the few names of torch, torchvision and matplotlib with which
the course loads and shows a picture, and the file of weights in the current folder.
"""

import pickle
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np

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


class _Image:
    """As much of a torch.Tensor as the course uses of a picture."""

    def __init__(self, data):
        self.data = data

    def reshape(self, *shape):
        return _Image(self.data.reshape(*shape))

    def numpy(self):
        return self.data


def _loader(dataset, batch_size, shuffle):
    image, label = picture()
    return [(_Image(image), label)]


def install(monkeypatch, folder):
    """Put the stand-ins where the cells look for the real things."""
    data = SimpleNamespace(DataLoader=_loader)
    modules = {
        "torch": SimpleNamespace(utils=SimpleNamespace(data=data)),
        "torchvision": MagicMock(),
        "matplotlib": MagicMock(),
        "matplotlib.pyplot": MagicMock(),
    }
    for name, module in modules.items():
        monkeypatch.setitem(__import__("sys").modules, name, module)
    monkeypatch.chdir(folder)
    (folder / "fashionmnist_mlp_params.pkl").write_bytes(pickle.dumps(weights()))
