"""`mlcweb run` of programs."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import PROGRAM, ROOT, mlcweb


def test_run_is_like_python_but_tvm_is_this_package(program):
    done = mlcweb("run", program, "--flag", "1")
    assert (done.stdout, done.stderr, done.returncode) == ("main ['--flag', '1']\n", "", 0)


def test_run_shows_the_users_frames_only(program):
    program.write_text(PROGRAM + "\nsch = tvm.tir.Schedule(Module)\nrefused(sch)\n")
    done = mlcweb("run", program)
    assert done.returncode == 1
    assert '    sch.get_block("C")\n' in done.stderr
    assert f'File "{program}", line' in done.stderr
    assert f'File "{ROOT}' not in done.stderr


def test_run_says_which_file_is_missing(tmp_path):
    done = mlcweb("run", tmp_path / "nothing.py")
    assert (done.returncode, done.stderr) == (
        1,
        f"{tmp_path / 'nothing.py'}: No such file or directory\n",
    )


def test_run_points_at_a_syntax_error(tmp_path):
    (tmp_path / "bad.py").write_text("a = 1\nb = (2 +\n")
    done = mlcweb("run", "bad.py", cwd=tmp_path)
    assert done.returncode == 1
    assert 'File "bad.py", line 2' in done.stderr
    assert "SyntaxError" in done.stderr


@pytest.mark.parametrize("command", [["-m", "mlcweb", "run"], []], ids=["mlcweb", "python"])
def test_a_program_that_tunes_need_not_ask_for_its_name(tmp_path, command):
    """Processes that measure do not run the program again, as those of `multiprocessing` would."""
    file = tmp_path / "tunes.py"
    tuning = (
        'print("begins")\n'
        "from mlcweb import meta_schedule as ms\n"
        'database = ms.tune_tir(Module, "llvm", max_trials_global=2, space=sampled, seed=1)\n'
        "print(len(database) > 1)\n"
    )
    source = PROGRAM.replace("import tvm\n", "import mlcweb as tvm\n")
    source = source.replace("from tvm.script", "from mlcweb.script")
    file.write_text(source[: source.index("if __name__")] + tuning)
    done = subprocess.run(
        [sys.executable, *command, str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout, done.returncode) == ("begins\nTrue\n", 0), done.stderr
