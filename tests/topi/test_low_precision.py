"""Products of a few bits, of signs, and simulated quantisation, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mlcweb import TVMError, te, topi


def small(*shape: int, bits: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << bits, shape).astype("uint32")


@pytest.mark.parametrize("pack_type", ["uint8", "uint32"])
def test_words_of_bits(run, pack_type):
    width = int(pack_type.removeprefix("uint"))
    x = small(3, 2 * width, bits=2)
    got = run(lambda a: topi.nn.bitpack(a, 2, 1, 0, pack_type), x)
    for bit in range(2):
        ones = ((x >> bit) & 1).reshape(3, 2, width)
        powers = 1 << np.arange(width, dtype="uint64")[::-1]
        np.testing.assert_array_equal(got[bit], (ones * powers).sum(-1))


@pytest.mark.parametrize(("data_bits", "weight_bits"), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("unipolar", [False, True])
def test_products_of_a_few_bits(run, data_bits, weight_bits, unipolar):
    data, weight = small(3, 64, bits=data_bits), small(5, 64, bits=weight_bits, seed=1)
    got = run(
        lambda a, b: topi.nn.bitserial_dense(
            a, b, data_bits, weight_bits, "uint32", "int16", unipolar
        ),
        data,
        weight,
    )
    signed = values_of(weight, weight_bits, unipolar)
    np.testing.assert_array_equal(got, data.astype("int16") @ signed.astype("int16").T)
    assert got.dtype == "int16"


def values_of(weight: np.ndarray, bits: int, unipolar: bool) -> np.ndarray:
    """A bit of a unipolar weight counts as 1 or -1 times its power of 2."""
    return 2 * weight.astype("int64") - ((1 << bits) - 1) if unipolar else weight.astype("int64")


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("unipolar", [False, True])
def test_convolutions_of_a_few_bits(run, layout, unipolar):
    data, weight = small(1, 32, 5, 6, bits=2), small(3, 32, 3, 3, bits=2, seed=1)
    padded = np.pad(data.astype("int64"), ((0, 0), (0, 0), (1, 0), (2, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    want = np.einsum("nchwyx,ocyx->nohw", windows, values_of(weight, 2, unipolar))
    image, kernel = (
        (data, weight)
        if layout == "nchw"
        else (data.transpose(0, 2, 3, 1).copy(), weight.transpose(2, 3, 1, 0).copy())
    )
    operator = getattr(topi.nn, f"bitserial_conv2d_{layout}")
    got = run(
        lambda a, b: operator(a, b, 2, (1, 2, 0, 1), 2, 2, "uint32", "int32", unipolar),
        image,
        kernel,
    )
    np.testing.assert_array_equal(got if layout == "nchw" else got.transpose(0, 3, 1, 2), want)


def test_products_of_signs(run, random):
    data, weight = random(3, 64), random(4, 64)
    got = run(
        lambda a, b: topi.nn.binary_dense(topi.nn.binarize_pack(a), topi.nn.binarize_pack(b)),
        data,
        weight,
    )
    signs = [np.where(x >= 0, 1, -1) for x in (data, weight)]
    np.testing.assert_array_equal(got, signs[0] @ signs[1].T)


@pytest.mark.parametrize("dtype", ["disable", "int8", "uint8", "int32"])
def test_simulated_quantisation(run, dtype):
    x = np.linspace(-300, 300, 12, dtype="float32").reshape(3, 4)
    scale = np.array([0.5, 1, 2, 3], "float32")
    zero = np.array([3], "int32")
    code = np.array(topi.nn.SQNN_DTYPE_TO_CODE[dtype], "int32")
    got = run(lambda a, c, s, z: topi.nn.simulated_quantize(a, c, s, z), x, code, scale, zero)
    back = run(lambda a, c, s, z: topi.nn.simulated_dequantize(a, c, s, z), x, code, scale, zero)
    want, unscaled = x, x
    if dtype != "disable":
        limits = np.iinfo(dtype)
        want = np.clip(np.rint(x / scale) + 3, limits.min, limits.max)
        unscaled = (x - 3) * scale
    np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(back, unscaled)


def test_refusals():
    data = te.placeholder((2, 33), "uint32")
    with pytest.raises(TVMError, match="a multiple of 32 elements, not 33"):
        topi.nn.bitpack(data, 1, 1, 1, "uint32")
    with pytest.raises(TVMError, match="words are uint8, uint16, uint32, uint64, not int32"):
        topi.nn.bitpack(data, 1, 1, 1, "int32")
    with pytest.raises(TVMError, match="words are uint32, not float32"):
        topi.nn.binary_dense(te.placeholder((2, 2)), te.placeholder((2, 2)))
    with pytest.raises(TVMError, match="needs a scale and a zero point"):
        topi.nn.simulated_quantize(te.placeholder((2, 2)), 1)
