"""Programs that attack the interpreter that they share with the page: it can say what they did, and
the next program runs as if nothing had been."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from mlcweb.playground import bridge, cell, files
from mlcweb.playground.protocol.program import ProgramFile

DAMAGE = {
    "no output": "import sys\nsys.stdout = sys.stderr = None",
    "output that raises": (
        "import sys\n"
        "class Output:\n"
        "    def write(self, text): raise RuntimeError('write')\n"
        "sys.stdout = sys.stderr = Output()\n"
        "print('x')"
    ),
    "no hooks": "import sys\nsys.displayhook = sys.excepthook = sys.unraisablehook = None\n5",
    "no builtins": "import builtins\nvars(builtins).clear()",
    "wrong builtins": "import builtins\nbuiltins.len = builtins.str = builtins.isinstance = None",
    "no import": "import builtins\nbuiltins.__import__ = None",
    "no modules": "import sys\nsys.modules.clear()",
    "no json": "import sys\nsys.modules['json'] = sys.modules['ast'] = None",
    "nowhere to import from": "import sys\nsys.path[:] = []\nsys.meta_path[:] = []",
    "a trace function that raises": (
        "import sys\ndef trace(*event): raise RuntimeError('trace')\nsys.settrace(trace)"
    ),
    "a profile function that raises": (
        "import sys\ndef profile(*event): raise RuntimeError('profile')\nsys.setprofile(profile)"
    ),
    "a garbage collector that raises": (
        "import gc\ndef raises(*event): raise RuntimeError('gc')\ngc.callbacks.append(raises)"
    ),
    "no interrupts": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
    "a module of another name": "import sys\nsys.modules['__main__'] = None",
    "a file that is none": "__file__ = 5\nimport sys\nsys.modules['odd'] = 7",
    "names that are no text": (
        "class Name(str):\n"
        "    def startswith(self, *other): raise RuntimeError('name')\n"
        "globals()[Name('odd')] = 1\n"
        "globals()[5] = 2"
    ),
    "objects that lie": (
        "class Liar:\n"
        "    __class__ = property(lambda self: 1 / 0)\n"
        "    def __getattr__(self, name): raise RuntimeError(name)\n"
        "liar = Liar()"
    ),
    "a class that lies": (
        "class Meta(type):\n"
        "    def __getattribute__(cls, name): raise RuntimeError(name)\n"
        "class Liar(metaclass=Meta): pass"
    ),
}

NEXT = """
import gc, json, signal, sys
import numpy
print(json.dumps([len("abc"), str(numpy.ones(2).sum())]))
print(sys.gettrace(), sys.getprofile(), signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)
gc.collect();
"""


@pytest.fixture
def _clean_modules():
    yield
    sys.modules.pop("odd", None)


@pytest.fixture
def _hears_interrupts():
    """Whoever runs the tests in the background may have them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_clean_modules", "_hears_interrupts")
@pytest.mark.parametrize("name", DAMAGE)
def test_the_next_program_runs(name, capfd):
    cell.execute(DAMAGE[name])
    files.place([ProgramFile("helper.py", "")])
    result = cell.execute(NEXT)
    assert result.error is None
    assert capfd.readouterr().out.endswith('[3, "2.0"]\nNone None True\n')


def test_output_that_a_program_has_closed_is_open_for_the_next():
    program = "import sys\nsys.stdin.close(); sys.stdout.close(); sys.stderr.close()"
    script = f"""
from mlcweb.playground import cell
assert cell.execute({program!r}).ok
assert cell.execute("import sys; print('\xe9 out'); print('err', file=sys.stderr)").ok
assert cell.execute("import sys; sys.stdin.read();").ok
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, input=b"", timeout=100
    )
    assert ran.stdout.decode() == "é out\n"
    assert ran.stderr.decode() == "err\n"


def test_what_programs_change_of_modules_and_import_stays(capsys):
    cell.execute("import json, sys\njson.mark = 1\nsys.path.append('/nowhere')")
    cell.execute("import json, sys\nprint(json.mark, '/nowhere' in sys.path)")
    assert capsys.readouterr().out == "1 True\n"
    sys.path.remove("/nowhere")


@pytest.mark.parametrize("base", ["Exception", "BaseException", "Exception, metaclass=Liar"])
def test_an_error_that_cannot_say_what_it_is(base):
    source = f"""
class Liar(type):
    def __getattribute__(cls, name): raise Bad

class Bad({base}):
    def __str__(self): raise Bad
    __repr__ = __str__

raise Bad
"""
    result = json.loads(asyncio.run(bridge.call("cell.execute", json.dumps([source]))))
    error = result["value"]["error"]
    assert error["kind"] == "Bad"
    assert error["text"] == "Bad: it cannot be described: its own methods raise Bad"


def test_a_syntax_error_of_nonsense():
    values = "'a', 5, [], 'lesson.py'"
    source = f"e = SyntaxError('x')\ne.lineno, e.text, e.offset, e.filename = {values}\nraise e"
    error = cell.execute(source).error
    assert error is not None
    assert error.kind == "SyntaxError"
