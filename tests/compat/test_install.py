"""`import tvm` after `install`, in fresh interpreters: what is imported is global state."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(program: str, *, path: Path = ROOT, flags: tuple[str, ...] = ()) -> str:
    """What `program` prints, run in a new interpreter inside `path`."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", program],
        capture_output=True,
        text=True,
        cwd=path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_imports_of_the_course():
    run("""
import mlcweb, mlcweb.compat
mlcweb.compat.install()
import IPython
import tvm
from tvm.ir import assert_structural_equal
from tvm.ir.module import IRModule
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir.schedule.schedule import ScheduleError
assert tvm is mlcweb
assert tvm.IRModule is IRModule is mlcweb.ir.module.IRModule
assert T is mlcweb.script.tir
assert tvm.tir is mlcweb.tir and tvm.tir.ScheduleError is ScheduleError
assert callable(tvm.script.ir_module) and callable(tvm.build) and callable(tvm.nd.array)
IPython.display.Code("x = 1", language="python")
""")


def test_the_newer_spellings_are_the_same_objects():
    run("""
import mlcweb.compat
mlcweb.compat.install()
import tvm
from tvm import s_tir
from tvm.s_tir.schedule import Schedule
from tvm.script import tirx
assert Schedule is tvm.tir.Schedule is tvm.s_tir.Schedule
assert tirx is tvm.script.tir
assert tvm.compile is tvm.driver.compile
assert tvm.runtime.tensor is tvm.nd.array
assert tvm.tir.SBlock is tvm.tir.Block
""")


@pytest.mark.parametrize("flags", [(), ("-S",)], ids=["with site-packages", "bare"])
def test_a_course_helper_runs_with_and_without_pygments(flags):
    html = run(
        """
import mlcweb.compat
mlcweb.compat.install()
import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import Python3Lexer
formatter = HtmlFormatter()
print(pygments.highlight("for i in range(2): pass", Python3Lexer(), formatter))
print(formatter.get_style_defs(".highlight"))
""",
        flags=flags,
    )
    assert html.startswith('<div class="highlight"><pre>')
    assert "pre { line-height:" in html


def test_a_real_tvm_is_not_hidden_unasked(tmp_path):
    (tmp_path / "tvm.py").write_text("real = True")
    program = """
import mlcweb.compat
try:
    mlcweb.compat.install()
except ImportError as error:
    print(error)
import tvm
print(tvm.real, mlcweb.compat.installed())
mlcweb.compat.install(force=True)
import tvm
print(tvm.__name__)
mlcweb.compat.uninstall()
import tvm
print(tvm.real)
"""
    message, untouched, forced, back = run(program, path=tmp_path).splitlines()
    assert message.startswith(f"a real TVM is installed ({tmp_path / 'tvm.py'})")
    assert "mlcweb.compat.install(force=True)" in message
    assert (untouched, forced, back) == ("True False", "mlcweb", "True")


def test_uninstall_leaves_nothing_behind():
    run("""
import sys
import mlcweb
before = set(vars(mlcweb)), list(sys.meta_path)
import mlcweb.compat
mlcweb.compat.install()
mlcweb.compat.install()
import IPython, tvm.tir
mlcweb.compat.uninstall()
assert list(sys.meta_path) == before[1]
assert not [n for n in sys.modules if n.partition(".")[0] in ("tvm", "IPython")]
assert not hasattr(mlcweb, "s_tir")
try:
    import tvm
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("tvm still there")
""")
