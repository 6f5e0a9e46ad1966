"""Attention kernels of language models are scheduled as their authors do it, and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb
from mlcweb.script import from_source
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import compile_cuda
from tests.schedule import attention_kernels as kernels

TARGETS = ("interpreter", "numpy", "wasm", "llvm", "simulated")


def assert_gives(func: Any, inputs: list[Any], expected: tuple[Any, ...], target: str) -> None:
    outputs = [mlcweb.nd.array(np.full(x.shape, 77, x.dtype)) for x in expected]
    mlcweb.build(func, target=target)["main"](*map(mlcweb.nd.array, inputs), *outputs)
    for output, array in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output.numpy(), array, rtol=1e-4, atol=1e-4)


def assert_cuda_gives(func: Any, inputs: list[Any], expected: tuple[Any, ...]) -> None:
    """The source compiles, and gives this on threads of this machine."""
    source = mlcweb.build(func, target="cuda").imported_modules[0].get_source()
    assert compile_cuda(source) == ""
    if COMPILER is not None:
        outputs = [np.full(x.shape, 77, x.dtype) for x in expected]
        run_cuda_on_cpu(func, [*(x.copy() for x in inputs), *outputs])
        for output, array in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(output, array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_prefill(target: str) -> None:
    inputs = kernels.prefill_inputs()
    func = kernels.scheduled_prefill().mod["main"]
    assert_gives(func, inputs, kernels.attention(inputs), target)


def test_prefill_in_cuda() -> None:
    inputs = kernels.prefill_inputs()
    func = kernels.scheduled_prefill().mod["main"]
    assert_cuda_gives(func, inputs, kernels.attention(inputs))


def test_blocks_declare_what_they_declared_before() -> None:
    text = kernels.scheduled_prefill().mod["main"].script()
    for name in ("Q_load", "K_load", "V_load"):
        block = text[text.index(f'T.block("{name}")') :].splitlines()
        assert [line.strip() for line in block[3:5]] == ["T.reads()", "T.writes()"]


@pytest.mark.parametrize("target", TARGETS)
def test_decode(target: str) -> None:
    inputs = kernels.decode_inputs()
    assert_gives(from_source(kernels.DECODE), inputs, kernels.decoded(inputs), target)


def test_decode_in_cuda() -> None:
    inputs = kernels.decode_inputs()
    assert_cuda_gives(from_source(kernels.DECODE), inputs, kernels.decoded(inputs))
