"""`mlcweb search`."""

import json
import subprocess
import sys

import pytest

from mlcweb import cli
from mlcweb import meta_schedule as ms
from mlcweb.cli.run import load_program
from mlcweb.meta_schedule.database import JSONDatabase
from tests.cli.conftest import mlcweb


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
    assert "with the name: C" in done.stdout


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
    # As many as there were trials, though the best were measured and written twice.
    assert "3 records are new in" in done.stdout
    assert "sch.enter_postproc()" in done.stdout
    first = (folder / "database_tuning_record.json").read_text().splitlines()
    again = search(program, "--trials", 3, "--seed", 1, "--work-dir", folder)
    assert again.returncode in (0, 1)  # 1: the space has no more
    lines = (folder / "database_tuning_record.json").read_text().splitlines()
    assert lines[: len(first)] == first


def test_a_folder_of_records_changes_nothing_but_what_is_measured(program, tmp_path):
    """The same seed samples the same schedules, by the same number of workers."""
    plain, kept = tmp_path / "plain.json", tmp_path / "kept.json"
    options = ["--function", "sampled", "--trials", 6, "--seed", 5]
    for file, more in ((plain, []), (kept, ["--work-dir", tmp_path / "records"])):
        done = search(program, *options, *more, "--json", file)
        assert (done.stderr, done.returncode) == ("", 0)
    first, second = (json.loads(file.read_text())["trials"] for file in (plain, kept))
    assert len(first) == 6
    # There are five programs.
    assert "(duplicate of trial " in done.stdout
    assert [(t["seed"], t["trace"]) for t in first] == [(t["seed"], t["trace"]) for t in second]
    again = search(program, *options, "--work-dir", tmp_path / "records", "--json", kept)
    assert "0 records are new in" in again.stdout
    states = {trial["state"] for trial in json.loads(kept.read_text())["trials"]}
    assert states <= {"recalled", "repeated"}


def test_records_of_a_function_of_another_name_are_those_of_tune_tir(program, tmp_path):
    renamed, folder = tmp_path / "renamed.py", tmp_path / "records"
    renamed.write_text(program.read_text().replace("def main(", "def scale("))
    done = search(renamed, "--trials", 2, "--seed", 1, "--work-dir", folder)
    assert (done.stderr, done.returncode) == ("", 0)
    module = load_program(renamed, "__renamed__")["Module"]
    assert [var.name_hint for var in module.functions] == ["scale"]
    best = ms.tir_integration.compile_tir(JSONDatabase(work_dir=folder), module, "llvm")
    assert best is not None and best.trace.insts


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
    options = ["--strategy", "random", "--seconds", "0", "--json", record]
    done = search(program, "--function", "sampled", *options)
    assert (done.stderr, done.returncode) == ("", 1)
    assert json.loads(record.read_text())["trials"] == []


def test_search_names_the_extra_that_it_needs(program, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "mlcweb.cli.schedule_search", raising=False)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main(["search", str(program)]) == 1
    message = capsys.readouterr().err
    assert message.startswith("this command needs rich")
    assert message.endswith(": pip install 'mlcweb[cli]'\n")
