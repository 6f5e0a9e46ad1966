"""Parameters and requirements of tests, as pytest runs them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import mlcweb.testing as testing

size = testing.parameter(2, 3)
left, right = testing.parameters((1, 10), (2, 20))

@testing.fixture(cache_return_value=True)
def base():
    return 100

def test_one(size, base):
    assert size in (2, 3) and base == 100

def test_pairs(left, right):
    assert right == 10 * left

@testing.requires_cuda
def test_gpu():
    raise AssertionError

@testing.requires_llvm
def test_processor():
    pass

@testing.requires_gpu()
def test_gpu_too():
    raise AssertionError

@testing.parametrize_targets("llvm", "cuda")
def test_targets(target, dev):
    assert target == "llvm" and dev.exist

if __name__ == "__main__":
    testing.main()
"""


def test_a_file_of_tests(tmp_path):
    file = tmp_path / "test_file.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(file), "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert "6 passed, 3 skipped" in done.stdout, done.stdout
    assert done.returncode == 0
