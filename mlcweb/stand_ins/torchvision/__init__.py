"""A stand-in for torchvision: FashionMNIST with pictures that a program draws."""

from typing import Any

from mlcweb.stand_ins.torch.tensors import refusing
from mlcweb.stand_ins.torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]

__version__ = "0+stand-in"


__getattr__ = refusing("torchvision")
