"""Named arrays as bytes, in TVM's format."""

import base64
from contextlib import suppress
from random import Random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.runtime.params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)

ARRAYS = {
    "w": np.array([[1.5, -2.0]], "float32"),
    "n": np.array([3, -4], "int64"),
    "b": np.array(True),
}
SAVED_BY_TVM = base64.b64decode(
    "t5wEBU+N5fcAAAAAAAAAAAMAAAAAAAAAAQAAAAAAAAB3AQAAAAAAAABuAQAAAAAAAABiAwAAAAAAAAA/obSW8EBe3QAA"
    "AAAAAAAAAQAAAAAAAAACAAAAAiABAAEAAAAAAAAAAgAAAAAAAAAIAAAAAAAAAAAAwD8AAADAP6G0lvBAXt0AAAAAAAAA"
    "AAEAAAAAAAAAAQAAAABAAQACAAAAAAAAABAAAAAAAAAAAwAAAAAAAAD8/////////z+htJbwQF7dAAAAAAAAAAABAAAA"
    "AAAAAAAAAAAGCAEAAQAAAAAAAAAB"
)
"""ARRAYS, by `tvm.runtime.save_param_dict` of TVM 0.27."""


def test_the_bytes_are_those_of_tvm():
    assert save_param_dict(ARRAYS) == SAVED_BY_TVM
    for name, array in load_param_dict(SAVED_BY_TVM).items():
        assert array.dtype == ARRAYS[name].dtype.name
        np.testing.assert_array_equal(array.numpy(), ARRAYS[name])


def test_files(tmp_path):
    path = str(tmp_path / "params.bin")
    save_param_dict_to_file({"x": tvm.nd.array(np.arange(3, dtype="float16"))}, path)
    np.testing.assert_array_equal(load_param_dict_from_file(path)["x"].numpy(), [0, 1, 2])


@pytest.mark.parametrize("damaged", [SAVED_BY_TVM[:-1], b"", b"PK" + SAVED_BY_TVM[2:]])
def test_other_bytes_are_refused(damaged):
    with pytest.raises(tvm.TVMError, match=r"end too early|no parameters"):
        load_param_dict(damaged)


def test_damaged_bytes_are_refused_or_read():
    random = Random(0)
    for _ in range(500):
        data = bytearray(SAVED_BY_TVM)
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255))
        with suppress(tvm.TVMError):
            assert len(load_param_dict(bytes(data))) <= 3
