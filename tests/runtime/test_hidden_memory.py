"""Arrays in memory that Python cannot see: kernels on NumPy arrays work on copies of them."""

import numpy as np
import pytest

from mlcweb.ir import TVMError
from mlcweb.runtime import build, cpu, nd, storage
from mlcweb.script import from_source

ADD = from_source("""
@T.prim_func
def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi] + B[vi]
""")


class HiddenStorage(storage.HostStorage):
    """Stands for the memory of a device."""

    visible = False

    def view(self):
        raise TVMError("not to be seen")


@pytest.fixture(params=["numpy", "interpreter"])
def add(request, monkeypatch):
    monkeypatch.setattr(storage, "_allocators", dict(storage._allocators))
    storage.register_allocator("cpu", lambda nbytes: HiddenStorage(np.empty(nbytes, np.uint8)))
    return build(ADD, target=request.param)


def test_results_are_copied_back(add):
    a, b, c = (nd.array(np.full(4, value, "float32")) for value in (1, 2, 0))
    add["add"](a, b, c)
    assert c.numpy().tolist() == [3, 3, 3, 3]


def test_an_array_that_is_passed_twice_stays_one(add):
    a, b = (nd.array(np.full(4, value, "float32")) for value in (1, 2))
    add["add"](a, b, a)
    assert a.numpy().tolist() == [3, 3, 3, 3]


def test_time_evaluator_works_on_copies_too(add):
    a, b, c = (nd.array(np.full(4, value, "float32")) for value in (1, 2, 0))
    assert add.time_evaluator("add", cpu(), number=1)(a, b, c).mean > 0
    assert c.numpy().tolist() == [3, 3, 3, 3]
