"""Weights of models by name, from folders as TVM writes them."""

import json

import numpy as np
import pytest

import mlcweb as tvm

FLOATS = np.array([1.5, -2.25, 1e-3], "float32")
INTEGERS = np.arange(4, dtype="uint32").reshape(2, 2)


def call(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


@pytest.fixture(autouse=True)
def forget():
    yield
    call("tensor_cache.clear")


def write(folder, name="tensor-cache.json"):
    halves = (FLOATS.view("uint32") >> 16).astype("uint16")
    contents = (
        ("param_0", "float32", "raw", FLOATS),
        ("param_1", "float32", "f32-to-bf16", halves),
        ("param_2", "bfloat16", "raw", halves),
        ("w.q", "uint32", "f32-to-bf16", INTEGERS),
    )
    records, data = [], b""
    for tensor, dtype, form, values in contents:
        records.append(
            {
                "name": tensor, "shape": list(values.shape), "dtype": dtype, "format": form,
                "nbytes": values.nbytes, "byteOffset": len(data),
            }
        )  # fmt: skip
        data += values.tobytes()
    shard = {
        "dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": len(data),
        "records": records,
    }  # fmt: skip
    (folder / "params_shard_0.bin").write_bytes(data)
    (folder / name).write_text(json.dumps({"metadata": {}, "records": [shard]}))


@pytest.mark.parametrize("name", ["tensor-cache.json", "ndarray-cache.json"])
def test_tensors_are_read(tmp_path, name):
    write(tmp_path, name)
    call("tensor_cache.load", str(tmp_path), 1, 0)
    first, short, kept = call("param_array_from_cache", "param", -1)
    np.testing.assert_array_equal(first.numpy(), FLOATS)
    np.testing.assert_allclose(short.numpy(), FLOATS, rtol=1e-2)
    assert (short.dtype, kept.dtype) == ("float32", "bfloat16")
    np.testing.assert_array_equal(short.numpy(), kept.numpy())
    (weights,) = call("param_array_from_cache_by_name", ["w.q"])
    np.testing.assert_array_equal(weights.numpy(), INTEGERS)
    assert call("param_array_from_cache_by_name_unpacked", "w.q", "param_0")[1] is first
    with pytest.raises(RuntimeError, match="Cannot find param_3 in cache"):
        call("param_array_from_cache", "param", 4)


def test_tensors_are_set_and_forgotten():
    one, other = (tvm.nd.array(np.full(2, value, "float32")) for value in (1, 2))
    call("tensor_cache.update", "w", one)
    with pytest.raises(RuntimeError, match="Name w already exists"):
        call("tensor_cache.update", "w", other)
    call("tensor_cache.update", "w", other, True)
    assert call("tensor_cache.get", "w") is other
    call("tensor_cache.remove", "w")
    call("tensor_cache.remove", "w")
    assert call("tensor_cache.get", "w") is None


def test_files_that_are_not_whole_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match=r"Cannot open .*tensor-cache\.json"):
        call("tensor_cache.load", str(tmp_path), 1, 0)
    write(tmp_path)
    (tmp_path / "params_shard_0.bin").write_bytes(b"1234")
    with pytest.raises(RuntimeError, match=r"should have \d+ bytes"):
        call("tensor_cache.load", str(tmp_path), 1, 0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kv_cache_disagg_mark_send", "one device"),
        ("attention_kv_cache_append_mla_kv", '"mla"'),
        ("attention_kv_cache_export_page_group", "fork_sequence"),
        ("param_module_from_cache", "param_array_from_cache"),
    ],
)
def test_what_is_not_here_says_why(name, reason):
    with pytest.raises(ValueError, match=reason):
        call(name, 0, 1)
