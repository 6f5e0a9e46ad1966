"""The course's files of weights, for pictures that are drawn: networks that know those.

The course downloads the weights of two networks, trained on FashionMNIST. Where there is no such
download, these take their place: layers of random features, and a last one by least squares from
pictures of the training set.
"""

from __future__ import annotations

import pickle
from typing import TypeAlias

import numpy as np

from mlcweb.stand_ins.torch.nn import functional
from mlcweb.stand_ins.torch.tensors import wrap
from mlcweb.stand_ins.torchvision.datasets import FashionMNIST

PICTURES, RIDGE = 600, 1e-2

Weights: TypeAlias = "dict[str, np.ndarray]"


def mlp() -> Weights:
    """Two linear layers: w0 (128, 784), b0 (128), w1 (10, 128) and b1 (10), in float32."""
    w0, b0, features = _random_layer(_pictures().reshape(PICTURES, -1), 128)
    w1, b1 = _last_layer(features)
    return _single({"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def convolutional() -> Weights:
    """A convolution (32, 1, 3, 3) and two linear layers, (100, 5408) and (10, 100), in float32."""
    rng = np.random.default_rng(1)
    weight, bias = rng.normal(0, 1 / 3, (32, 1, 3, 3)), np.zeros(32)
    convolved = functional.conv2d(wrap(_pictures()[:, None]), wrap(weight), wrap(bias))
    pooled = functional.max_pool2d(functional.relu(convolved), 2).numpy().reshape(PICTURES, -1)
    w0, b0, features = _random_layer(pooled, 100)
    w1, b1 = _last_layer(features)
    return _single(
        {
            "conv2d_weight": weight, "conv2d_bias": bias, "linear0_weight": w0, "linear0_bias": b0,
            "linear1_weight": w1, "linear1_bias": b1,
        }
    )  # fmt: skip


NETWORKS = {"mlp": mlp, "convolutional": convolutional}


def pickled(network: str) -> bytes:
    """The content of a network's file."""
    return pickle.dumps(NETWORKS[network]())


def _pictures() -> np.ndarray:
    """Pictures (PICTURES, 28, 28) of the training set, in numbers from 0 to 1."""
    images = FashionMNIST("", train=True)
    return np.stack([images[i][0] for i in range(PICTURES)]) / 255


def _random_layer(x: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, bias and output of a random layer with a ReLU on x (PICTURES, n)."""
    weight = np.random.default_rng(0).normal(0, x.shape[1] ** -0.5, (width, x.shape[1]))
    bias = -(x @ weight.T).mean(axis=0)
    return weight, bias, np.maximum(x @ weight.T + bias, 0)


def _last_layer(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias that tell the ten classes by features (PICTURES, n)."""
    features = np.concatenate([features, np.ones((PICTURES, 1))], axis=1)
    goal = np.eye(10)[np.arange(PICTURES) % 10] * 10
    gram = features.T @ features + RIDGE * np.eye(features.shape[1])
    last = np.linalg.solve(gram, features.T @ goal)
    return last[:-1].T, last[-1]


def _single(parts: Weights) -> Weights:
    return {name: np.ascontiguousarray(part, np.float32) for name, part in parts.items()}
