"""The commands, as a user types them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from mlcweb import cli

ROOT = Path(__file__).parents[1]

PROGRAM = '''\
import sys

import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j in T.grid(64, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0


def sampled(sch):
    """Any tile of j."""
    i, j = sch.get_loops(sch.get_block("B"))
    sch.split(j, sch.sample_perfect_tile(j, n=2))
    return sch


def refused(sch):
    sch.get_block("C")


if __name__ == "__main__":
    print("main", sys.argv[1:])
'''


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def mlcweb(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mlcweb", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
    )


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


def test_serve_tells_where_it_is_and_ends_quietly(tmp_path):
    (tmp_path / "index.html").write_text("page")
    command = [sys.executable, "-m", "mlcweb", "serve", str(tmp_path), "--port", "0"]
    pipe = subprocess.PIPE

    def take_interrupts() -> None:
        # A shell starts what runs in its background with interrupts ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, preexec_fn=take_interrupts
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        with urlopen(address) as response:
            assert response.read() == b"page"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (errors, process.returncode) == ("", 0)


def test_serve_says_how_to_get_a_page(tmp_path, capsys):
    assert cli.main(["serve", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path} holds no built page (no index.html). In a checkout, `make play` builds it.\n"
    )


def search(*arguments: object) -> subprocess.CompletedProcess[str]:
    return mlcweb("search", *arguments)


def test_search_measures_and_tells_the_best(program, tmp_path):
    record = tmp_path / "trials.json"
    done = search(program, "--function", "sampled", "--trials", 4, "--seed", 1, "--json", record)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "Unscheduled:" in done.stdout
    assert "--seed 1 samples the same schedules again" in done.stdout
    found = json.loads(record.read_text())
    assert [trial["index"] for trial in found["trials"]] == [0, 1, 2, 3]
    assert {trial["state"] for trial in found["trials"]} <= {"measured", "repeated"}
    best = found["trials"][found["best"]]
    assert best["seconds"] == min(trial["seconds"] for trial in found["trials"]) > 0
    assert f"The trace of trial {best['index']}:" in done.stdout
    assert "sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=" in done.stdout


def test_search_reports_failed_trials_with_their_reason(program):
    done = search(program, "--function", "refused", "--trials", 2)
    assert done.returncode == 1
    assert done.stdout.count("failed") == 2
    assert '"C"' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--function", "nothing"],
            "The program has no function nothing. Functions of a schedule: sampled, refused.\n",
        ),
        (
            ["--function", "sampled", "--module", "Nothing"],
            "The program has no IRModule Nothing; choose one with --module: Module.\n",
        ),
    ],
)
def test_search_says_what_there_is_to_search(program, arguments, message):
    done = search(program, *arguments)
    assert (done.stderr, done.returncode) == (message, 1)


def test_search_without_a_function_makes_a_space_and_keeps_records(program, tmp_path):
    folder = tmp_path / "records"
    done = search(program, "--trials", 3, "--seed", 1, "--work-dir", folder)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "records are new in" in done.stdout
    assert "sch.enter_postproc()" in done.stdout
    first = (folder / "database_tuning_record.json").read_text().splitlines()
    again = search(program, "--trials", 3, "--seed", 1, "--work-dir", folder)
    assert again.returncode in (0, 1)  # 1: the space has no more
    lines = (folder / "database_tuning_record.json").read_text().splitlines()
    assert lines[: len(first)] == first


def test_search_tries_all_of_a_small_space(program, tmp_path):
    record = tmp_path / "trials.json"
    done = search(program, "--function", "sampled", "--strategy", "exhaustive", "--json", record)
    assert (done.stderr, done.returncode) == ("", 0)
    trials = json.loads(record.read_text())["trials"]
    # 64 is split into two factors of which the inner is at most 16.
    assert len(trials) == 5
    assert len({json.dumps(trial["trace"]) for trial in trials}) == 5


def test_search_ends_after_the_seconds_that_it_has(program, tmp_path):
    record = tmp_path / "trials.json"
    options = ["--strategy", "random", "--seconds", "0.5", "--json", record]
    done = search(program, "--function", "sampled", *options)
    assert (done.stderr, done.returncode) == ("", 0)
    assert len(json.loads(record.read_text())["trials"]) <= 5


@pytest.mark.slow
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
