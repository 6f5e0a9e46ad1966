"""A stand-in for PyTorch, for browsers, in which there is none.

It computes with NumPy what the course's documents call: tensors, the layers of small networks,
`torch.fx` graphs of them, and batches of a data set. It trains nothing. What else PyTorch has is
refused by name.
"""

import sys
from typing import Any

from mlcweb.stand_ins.torch import functions, fx, nn, utils
from mlcweb.stand_ins.torch.functions import *  # noqa: F403
from mlcweb.stand_ins.torch.tensors import DTYPES, Size, Tensor, dtype, refusing

__version__ = "0+stand-in"

float16, float32, float64 = (DTYPES[name] for name in ("float16", "float32", "float64"))
int8, int16, int32, int64 = (DTYPES[name] for name in ("int8", "int16", "int32", "int64"))
uint8, bool = DTYPES["uint8"], DTYPES["bool"]
half, float, double, int, long = float16, float32, float64, int32, int64


__getattr__ = refusing("torch")


print(
    "torch is a small stand-in for PyTorch here, which has no build for browsers: it computes with "
    "NumPy what the course calls, and the pictures of torchvision are drawn by a program.",
    file=sys.stderr,
)
