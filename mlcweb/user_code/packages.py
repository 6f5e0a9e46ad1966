"""What to say of a package that a program wants to import and that is not there."""

from __future__ import annotations

import re

from mlcweb.runtime.host.packages import built_for_browsers

OWN = ("mlcweb", "torch", "torchvision", "tvm")
"""Packages of which this one gives a part; importing what they lack says so by itself."""

_TVM = re.compile(r"(apache-)?tvm|mlc-(ai|llm)")
_NO_BUILD = (
    "cupy", "jax", "jaxlib", "keras", "numba", "onnx", "onnxruntime", "tensorflow", "torchaudio",
    "torchtext", "transformers", "triton",
)  # fmt: skip
"""Well-known packages with code for machines that has no build for browsers."""


def advice(package: str) -> str:
    """How a program gets a package here, by the name that it is installed or imported by."""
    if _TVM.match(package):
        return "import tvm works without installing anything"
    if package in ("torch", "torchvision"):
        return f"{package} has no build for browsers; import {package} gives a small stand-in"
    if package in _NO_BUILD:
        return f"{package} has no build for browsers: run this program natively"
    if built_for_browsers(package):
        return f"import {package} fetches it, which takes a network the first time"
    return (
        f"If {package} is written in Python alone, use: "
        f'import micropip; await micropip.install("{package}")'
    )
