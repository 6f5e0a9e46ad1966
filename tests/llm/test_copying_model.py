"""A language model that copies generates text token by token."""

import pytest

from tests.llm.copying_model import generate


@pytest.mark.parametrize("target", ["llvm", "wasm", "webgpu"])
def test_a_model_goes_on_with_what_repeats(target):
    assert "".join(generate("badge bad", 14, target)) == "ge badge badge"
