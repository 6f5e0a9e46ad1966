"""The cache of keys and values that models keep: `vm.builtin.attention_kv_cache_…`."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax_vm import ShapeTuple
from mlcweb.script import relax as R


@tvm.script.ir_module
class Double:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")):
        return R.add(x, x)


def call(name, *args):
    return tvm.get_global_func(f"vm.builtin.attention_kv_cache_{name}")(*args)


def array(values, dtype="float32"):
    return tvm.nd.empty(np.shape(values), dtype).copyfrom(values)


def new(capacity, count=0, rows=None, dtype="float32"):
    initial = array(np.zeros((capacity, 2)) if rows is None else rows, dtype)
    return call("create", initial, ShapeTuple((capacity, 2)), count)


def rows(cache):
    return call("view", cache).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rows_are_appended_past_the_memory_there_is(dtype):
    cache, all_rows = new(1, dtype=dtype), []
    for step in range(5):
        part = np.arange(step + 1)[:, None] * [1, 0] + [0, step]
        all_rows.extend(part.tolist())
        assert call("append", cache, array(part, dtype)) is cache
    view = call("view", cache, ShapeTuple((15, 2)))
    assert view.dtype == dtype
    np.testing.assert_array_equal(view.numpy(), all_rows)


def test_a_cache_begins_with_rows_and_loses_rows():
    cache = new(4, 2, [[1, 1], [2, 2], [3, 3]])
    np.testing.assert_array_equal(rows(cache), [[1, 1], [2, 2]])
    call("update", cache, array([[5, 5], [6, 6]]))
    call("array_popn", [cache], 1)
    call("append", cache, array([[7, 7]]))
    np.testing.assert_array_equal(rows(cache), [[5, 5], [7, 7]])
    call("array_clear", [cache])
    assert rows(cache).shape == (0, 2)


@pytest.mark.parametrize("sinks", [0, 2])
def test_a_window_keeps_the_newest_rows(sinks):
    size, cache, newest = 8, new(2), []
    for step in range(30):
        part = np.full((1 + step % 3, 2), step)
        if sinks:
            call("window_override_with_sinks", cache, array(part), size, sinks)
        else:
            call("window_override", cache, array(part), size)
        newest.extend(part[:, 0].tolist())
    result = rows(cache)[:, 0].tolist()
    assert result[:sinks] == newest[:sinks]
    assert sorted(result[sinks:]) == newest[sinks - size :]


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("append", (array([[1, 2, 3]]),), "has rows of shape"),
        ("append", (array([[1, 2]], "int32"),), "dtype float32"),
        ("append", (array(1.0),), "has rows of shape"),
        ("update", (array([[1, 2], [3, 4]]),), "is not the 1 rows"),
        ("view", (ShapeTuple((2, 2)),), "1 rows in use"),
        ("window_override", (array(np.zeros((3, 2))), 2), "3 rows do not fit"),
        ("window_override_with_sinks", (array(np.zeros((2, 2))), 2, 1), "of which 1 stay"),
    ],
)
def test_what_does_not_fit_is_refused(name, args, says):
    cache = new(2, 1)
    with pytest.raises(ValueError, match=says):
        call(name, cache, *args)
    with pytest.raises(ValueError, match="cannot lose 2"):
        call("array_popn", [cache], 2)
    with pytest.raises(ValueError, match="cannot begin with"):
        new(2, 3)


@pytest.mark.parametrize("kind", ["webgpu", "opencl"])
def test_rows_on_a_gpu_are_read_by_its_kernels(kind):
    device = tvm.device(kind)
    first = tvm.nd.array(np.full((2, 2), 3, "float32"), device)
    cache = call("create", first, ShapeTuple((2, 2)), 1)
    for step in range(3):
        call("append", cache, tvm.nd.array(np.full((1, 2), step, "float32"), device))
    double = relax.VirtualMachine(relax.build(Double, kind), device)["main"]
    np.testing.assert_array_equal(double(call("view", cache)).numpy()[:, 0], [6, 0, 2, 4])
