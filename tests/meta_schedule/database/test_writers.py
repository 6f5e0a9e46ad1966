"""Several processes write one pair of files, and some are killed while they do."""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from mlcweb.meta_schedule.database import JSONDatabase
from mlcweb.meta_schedule.database.json_lines import RECORDS, WORKLOADS
from tests.meta_schedule import programs
from tests.meta_schedule.database.records import record, times
from tests.meta_schedule.matmul import Matmul

WRITER = """
import sys
from mlcweb.meta_schedule.database import JSONDatabase
from tests.meta_schedule.database.records import record
folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
database = JSONDatabase(work_dir=folder)
for number in range(first, first + count):
    database.commit_tuning_record(record(database, float(number)))
    print(number, flush=True)
"""


def writer(folder: Path, first: int, count: int) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(first), str(count)],
        stdout=subprocess.PIPE, text=True, cwd=os.getcwd(),
    )  # fmt: skip


def test_two_writers_lose_nothing_of_each_other(tmp_path: Path) -> None:
    with writer(tmp_path, 1, 150) as one, writer(tmp_path, 1001, 150) as other:
        assert (one.wait(), other.wait()) == (0, 0)
    database = JSONDatabase(work_dir=tmp_path)
    found = times(database)
    assert [t for t in found if t < 1000] == [float(n) for n in range(1, 151)]
    assert [t for t in found if t > 1000] == [float(n) for n in range(1001, 1151)]
    assert len((tmp_path / WORKLOADS).read_text().splitlines()) == 1


@pytest.mark.parametrize("lines", [1, 30])
def test_a_killed_writer_costs_the_others_nothing(tmp_path: Path, lines: int) -> None:
    with writer(tmp_path, 1, 10_000) as victim:
        assert victim.stdout is not None
        database = JSONDatabase(work_dir=tmp_path)
        for number in range(lines):
            victim.stdout.readline()
            database.commit_tuning_record(record(database, 1e6 + number))
        victim.send_signal(signal.SIGKILL)
        rest = victim.stdout.read().split("\n")
    written = max([lines, *map(int, rest[:-1])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        database.commit_tuning_record(record(database, 1e6 + lines))
    # What the dead process left half done is gone: the files are whole again.
    found = times(JSONDatabase(work_dir=tmp_path))
    of_victim = [t for t in found if t < 1e6]
    assert of_victim == [float(n) for n in range(1, len(of_victim) + 1)]
    assert len(of_victim) >= written
    assert [t - 1e6 for t in found if t >= 1e6] == list(range(lines + 1))


def test_what_another_wrote_is_known_after_the_next_write(tmp_path: Path) -> None:
    one, other = JSONDatabase(work_dir=tmp_path), JSONDatabase(work_dir=tmp_path)
    one.commit_tuning_record(record(one, 3.0))
    other.commit_workload(programs.Double)
    other.commit_tuning_record(record(other, 2.0, factor=4))
    assert times(other) == [3.0, 2.0]
    assert times(one) == [3.0]
    one.refresh()
    assert times(one) == [3.0, 2.0]
    assert one.query_tuning_record(Matmul).seconds == 2.0
    assert one.has_workload(programs.Double)
    assert len((tmp_path / WORKLOADS).read_text().splitlines()) == 2


def test_files_that_were_removed_are_begun_anew(tmp_path: Path) -> None:
    database = JSONDatabase(work_dir=tmp_path)
    database.commit_workload(programs.Double)
    database.commit_tuning_record(record(database, 3.0))
    for name in (RECORDS, WORKLOADS):
        (tmp_path / name).unlink()
    database.commit_tuning_record(record(database, 2.0, factor=4))
    assert times(database) == [3.0, 2.0]
    assert times(JSONDatabase(work_dir=tmp_path)) == [2.0]


def test_half_a_line_of_a_process_that_died_is_replaced(tmp_path: Path) -> None:
    database = JSONDatabase(work_dir=tmp_path)
    database.commit_tuning_record(record(database, 3.0))
    with (tmp_path / RECORDS).open("a") as file:
        file.write('[0,[[[["GetSB')
    with pytest.warns(UserWarning, match=r"database_tuning_record.json, line 2, is skipped"):
        database.commit_tuning_record(record(database, 2.0))
    with (tmp_path / WORKLOADS).open("a") as file:
        file.write('["12')
    with pytest.warns(UserWarning, match=r"database_workload.json, line 2, is skipped"):
        database.commit_workload(programs.Double)
    again = JSONDatabase(work_dir=tmp_path)
    assert times(again) == [3.0, 2.0]
    assert again.has_workload(programs.Double)


def test_missing_files_may_be_forbidden(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        JSONDatabase(work_dir=tmp_path, allow_missing=False)
