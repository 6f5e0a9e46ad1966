"""Fourier transforms against NumPy's."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te, topi
from mlcweb.ir import TVMError

GENERATOR = np.random.default_rng(7)


def evaluate(build, *arrays):
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    outputs = build(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    results = [tvm.nd.empty([int(n) for n in out.shape], out.dtype) for out in outputs]
    kernel = tvm.build(te.create_prim_func([*inputs, *outputs]), "numpy")
    kernel["main"](*map(tvm.nd.array, arrays), *results)
    return [result.numpy() for result in results]


@pytest.mark.parametrize("inverse", [False, True])
def test_dft(inverse):
    re, im = GENERATOR.standard_normal((2, 3, 12)).astype("float32")
    expected = (np.fft.ifft if inverse else np.fft.fft)(re + 1j * im)
    found = evaluate(lambda a, b: topi.dft(a, b, inverse), re, im)
    np.testing.assert_allclose(found[0], expected.real, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], expected.imag, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [False, True])
def test_stft(normalized, onesided):
    data = GENERATOR.standard_normal((2, 40)).astype("float32")
    window = np.hanning(16).astype("float32")
    rows = 9 if onesided else 16
    frames = np.stack([data[:, at : at + 16] for at in range(0, 25, 4)], 1) * window
    expected = np.fft.fft(frames)[..., :rows].transpose(0, 2, 1) / (4 if normalized else 1)
    (found,) = evaluate(
        lambda x, w: topi.stft(x, 16, 4, 16, w, normalized, onesided, (2, rows, 7, 2)), data, window
    )
    np.testing.assert_allclose(found[..., 0], expected.real, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[..., 1], expected.imag, rtol=1e-4, atol=1e-5)


def test_long_signals_keep_their_precision():
    re = GENERATOR.standard_normal((1, 999)).astype("float32")
    found = evaluate(lambda a, b: topi.dft(a, b, False), re, 0 * re)
    np.testing.assert_allclose(found[0], np.fft.fft(re).real, rtol=1e-3, atol=1e-3)


def test_shapes_are_checked():
    x, w = te.placeholder((2, 40), "float32"), te.placeholder((16,), "float32")
    with pytest.raises(TVMError, match="signals, samples"):
        topi.stft(w, 16, 4, 16, w, False, True, (2, 9, 7, 2))
    with pytest.raises(TVMError, match="signals, frequencies, windows, 2"):
        topi.stft(x, 16, 4, 16, w, False, True, (2, 9, 7))
    with pytest.raises(TVMError, match="of one shape"):
        topi.dft(x, w, False)
