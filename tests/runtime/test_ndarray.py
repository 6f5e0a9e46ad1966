"""Arrays: copies in and out, element types, and errors."""

import copy
import pickle

import numpy as np
import pytest

from mlcweb.ir.errors import TVMError
from mlcweb.runtime import NDArray, cpu, cuda, device, nd, storage
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


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda array: pickle.loads(pickle.dumps(array))]
)
@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32x4"])
def test_copies_have_memory_of_their_own(copied, dtype):
    array = nd.empty((3,), dtype)
    array.storage.write(np.arange(array.storage.nbytes, dtype="uint8"))
    other = copied(array)
    assert (other.shape, other.dtype, other.device) == ((3,), dtype, cpu())
    np.testing.assert_array_equal(other.bits(), array.bits())
    assert other.address != array.address


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


def test_views_are_parts_of_the_memory_of_another_array():
    array = nd.array(np.arange(16, dtype="int32"))
    rows = array._create_view([2, 4], relative_byte_offset=32)
    assert rows.numpy().tolist() == [[8, 9, 10, 11], [12, 13, 14, 15]]
    last = rows._create_view([2], relative_byte_offset=24)
    last.copyfrom(np.array([-1, -2], "int32"))
    assert array.numpy()[-3:].tolist() == [13, -1, -2]
    assert array._create_view([8], "int64").numpy().dtype == "int64"
    assert rows.overlaps(last) and array.overlaps(last)
    assert not array._create_view([8]).overlaps(rows)
    assert array.same_as(array) and not array.same_as(rows)


@pytest.mark.parametrize(
    ("shape", "offset", "message"),
    [
        ([32], 0, "occupy bytes 0 <= i_byte < 128, but the Tensor being viewed only contains 64"),
        ([16], 32, "occupy bytes 32 <= i_byte < 96"),
        ([4], -16, "occupy bytes -16 <= i_byte < 0"),
    ],
)
def test_views_lie_inside_of_the_other_array(shape, offset, message):
    with pytest.raises(ValueError, match=message):
        nd.array(np.arange(16, dtype="int32"))._create_view(shape, relative_byte_offset=offset)


def test_devices_are_found_by_dlpacks_numbers():
    assert device(1) is cpu() and device(2, 1) == cuda(1)
    assert cuda().dlpack_device_type() == cuda().device_type == 2
    with pytest.raises(TVMError, match='Unknown device "99"'):
        device(99)
