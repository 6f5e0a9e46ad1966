"""Arrays: copies in and out, element types, and errors."""

import numpy as np
import pytest

from mlcweb.runtime import NDArray, cpu, nd, storage
from mlcweb.runtime.storage import ALIGNMENT


def test_array_copies_in_and_numpy_copies_out():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    array = nd.array(values)
    values[0, 0] = 9
    out = array.numpy()
    out[0, 1] = 9
    assert array.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_its_type_has_tvms_path():
    assert repr(NDArray) == "<class 'mlcweb.runtime.ndarray.NDArray'>"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_element_types_are_kept(dtype):
    array = nd.array(np.ones(3, dtype))
    assert array.dtype == dtype
    assert array.numpy().dtype == np.dtype(dtype)


def test_lists_have_numpys_types():
    assert nd.array([1, 2]).dtype == "int64"
    assert nd.array([1.5]).dtype == "float64"
    assert nd.array(3.0).shape == ()


def test_empty_has_the_shape_and_alignment_asked_for():
    array = nd.empty((3, 5), dtype="int32")
    assert (array.shape, array.ndim, array.size, array.nbytes) == ((3, 5), 2, 15, 60)
    assert array.storage.address % ALIGNMENT == 0
    assert nd.empty(4, np.float64).dtype == "float64"
    assert nd.empty((0, 3)).numpy().shape == (0, 3)


def test_a_view_shares_the_memory():
    array = nd.empty((2,))
    array.view()[:] = [1, 2]
    assert array.numpy().tolist() == [1, 2]


def test_transposed_and_strided_inputs_are_stored_compactly():
    values = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(nd.array(values.T).numpy(), values.T)
    np.testing.assert_array_equal(nd.array(values[::2, ::-1]).numpy(), values[::2, ::-1])


def test_copies_between_arrays():
    source, target = nd.array(np.ones((2, 2), "float32")), nd.empty((2, 2))
    assert source.copyto(target) is target
    assert target.numpy().sum() == 4
    assert source.copyto(cpu()).numpy().sum() == 4
    with pytest.raises(ValueError, match=r"shape \(2, 2\) into one of shape \(3,\)"):
        source.copyto(nd.empty((3,)))
    with pytest.raises(ValueError, match="float32 elements into an array of int32"):
        source.copyto(nd.empty((2, 2), "int32"))


def test_items():
    array = nd.array(np.zeros((2, 2), "float32"))
    array[0] = 3
    array[1, 1] = nd.array(np.float32(4))
    assert array[0, 1] == 3
    assert array[1].tolist() == [0, 4]
    array[:] = np.full((2, 2), 7)
    assert array.numpy().tolist() == [[7, 7], [7, 7]]
    assert len(array) == 2


def test_numpy_and_dlpack_understand_arrays():
    array = nd.array(np.arange(4, dtype="float32"))
    assert np.asarray(array).tolist() == [0, 1, 2, 3]
    shared = np.from_dlpack(array)
    assert shared.tolist() == [0, 1, 2, 3]
    values = np.arange(4.0)
    back = nd.from_dlpack(values)
    values[0] = 5
    assert back.numpy()[0] == 5


def test_text():
    array = nd.array(np.zeros((1, 2), "float32"))
    assert repr(array) == (
        "<mlcweb.runtime.ndarray.NDArray shape=(1, 2), cpu:0>\narray([[0., 0.]], dtype=float32)"
    )
    assert str(array) == "[[0. 0.]]"


def test_refusals():
    with pytest.raises(RuntimeError, match="no device rocm:0"):
        nd.empty((2,), device="rocm")
    with pytest.raises(ValueError, match="negative"):
        nd.empty((-1,))
    with pytest.raises(RuntimeError, match="Unknown data type"):
        nd.empty((1,), "flat32")


def test_memory_can_come_from_elsewhere(monkeypatch):
    taken = []

    def allocator(nbytes):
        taken.append(nbytes)
        return storage.allocate_on_host(nbytes)

    monkeypatch.setattr(storage, "_allocators", dict(storage._allocators))
    storage.register_allocator("cpu", allocator)
    assert nd.array(np.ones(3, "float32")).numpy().tolist() == [1, 1, 1]
    assert taken == [12]
