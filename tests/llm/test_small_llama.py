"""A small language model, from classes to tokens: exported, built, and run with a paged cache."""

import numpy as np
import pytest

from mlcweb.llm.kv_cache import RopeMode
from tests.llm.small_llama import Config, Generator, reference


@pytest.mark.parametrize(
    ("target", "mode"),
    [
        ("llvm", RopeMode.NORMAL),
        ("wasm", RopeMode.INLINE),
        ("webgpu", RopeMode.NORMAL),
        ("opencl", RopeMode.INLINE),
        ("cuda", RopeMode.NORMAL),
    ],
)
def test_prefill_and_decode_give_the_logits_of_numpy(target, mode):
    config = Config(target=target, rope_mode=mode)
    model = Generator(config)
    texts = {7: [3, 1, 4, 1, 5, 9, 2, 6], 2: [5, 3, 5]}
    for sequence, tokens in texts.items():
        model.state("add_sequence", sequence)
        logits = model.logits([sequence], tokens)
        expected = reference(config, model.weights, tokens)
        np.testing.assert_allclose(logits[0], expected[-1], rtol=1e-4, atol=1e-4)
    for token in (8, 11, 0):
        logits = model.logits([2, 7], [token, token + 1])
        texts[2].append(token)
        texts[7].append(token + 1)
        for row, sequence in zip(logits, (2, 7), strict=True):
            expected = reference(config, model.weights, texts[sequence])[-1]
            np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)
