"""Programs for GPUs in the page of a browser without an adapter: they are simulated."""

from playwright.sync_api import expect

from e2e.playground import Playground
from e2e.test_webgpu import CUDA, MATMUL


def test_it_is_simulated_which_is_said_once(used_playground):
    playground: Playground = used_playground()
    playground.run_to_end(MATMUL + '\ntvm.build(on_shared_memory(MatmulModule), "webgpu")')
    console = playground["console"]
    expect(console).to_contain_text("on a GPU: False")
    expect(console).to_contain_text("right: True")
    assert console.inner_text().count("on a simulated GPU (this browser ") == 1


def test_cuda_is_simulated_and_the_reason_is_said_once(used_playground):
    playground: Playground = used_playground()
    playground.run_to_end(MATMUL + CUDA)
    console = playground["console"]
    expect(console).to_contain_text("source in CUDA: True")
    expect(console).to_contain_text("as NumPy: True")
    said = 'target="cuda": kernels run thread by thread, on a simulated GPU (this browser '
    assert console.inner_text().count(said) == 1
