"""Kernels without an end on WebGPU: they are given up, and the page goes on."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserType, expect

from e2e import chromium
from e2e.playground import Playground, without_promise_integration

HEAD = """\
import numpy as np
import tvm
from tvm.script import tir as T


"""

ENDLESS = (
    HEAD
    + """\
@T.prim_func
def endless(A: T.Buffer((64,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        while A[t] >= 0:
            A[t] = (A[t] * 5 + 1) % 1024


forever = tvm.build(endless, target="webgpu")
A = tvm.nd.array(np.arange(64, dtype="int32"), tvm.webgpu())
try:
    forever(A)
    A.numpy()
except tvm.TVMError as error:
    print("ended by", type(error).__name__, error)
"""
)

TWICE = (
    HEAD
    + """\
@T.prim_func
def twice(A: T.Buffer((64,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        A[t] = A[t] * 2


A = tvm.nd.array(np.arange(64, dtype="int32"), tvm.webgpu())
tvm.build(twice, target="webgpu")(A)
print("on a GPU:", tvm.webgpu().exist)
print("right:", np.array_equal(A.numpy(), np.arange(64) * 2))
"""
)


@pytest.fixture
def browser(browser_type: BrowserType) -> Iterator[Browser]:
    """One with a GPU, for one page: the kernel goes on behind it."""
    browser = browser_type.launch(executable_path=chromium.find(), args=chromium.WITH_SOFTWARE_GPU)
    yield browser
    browser.close()


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"prepare": without_promise_integration}])
def test_an_endless_kernel_is_given_up_and_the_next_one_runs(open_playground, options):
    playground: Playground = open_playground(cold=True, **options)
    playground.expect_state("ready")
    playground.run_to_end(ENDLESS)
    console = playground["console"]
    expect(console).to_contain_text("ended by GpuLost The GPU was given up after 30 s")
    # What was written is there, and another device takes the next program.
    expect(playground["editor"]).to_contain_text("def endless(A")
    playground.run_to_end(TWICE)
    expect(console).to_contain_text("on a GPU: True")
    expect(console).to_contain_text("right: True")
    expect(console).not_to_contain_text("simulated")
