"""A language model in the page: built there, it writes one token after the other."""

from pathlib import Path

import pytest

MODEL = (
    (Path(__file__).parents[1] / "tests" / "llm" / "copying_model.py")
    .read_text("utf8")
    .replace("import mlcweb as tvm", "import tvm")
    .replace("from mlcweb", "from tvm")
)


@pytest.mark.thorough
def test_a_model_goes_on_with_what_repeats(run):
    printed = run(
        MODEL
        + """
for letter in generate("badge bad", 14):
    print(letter, end="")
print("|")
"""
    )
    assert "ge badge badge|" in printed
