"""Which record of a schedule counts, and what becomes of records that move."""

import pytest

from mlcweb.meta_schedule.database import (
    JSONDatabase,
    MemoryDatabase,
    TuningRecord,
    UnionDatabase,
)
from mlcweb.tir import Schedule
from tests.meta_schedule.database.records import Other, record, times
from tests.meta_schedule.matmul import Matmul

LUCKY, CONFIRMED = (1.0, 1.0), (3.0, 3.0, 3.0, 3.0)


def best(database) -> tuple[float, ...]:
    return database.query_tuning_record(Matmul).run_secs


@pytest.fixture(params=["memory", "json"])
def database(request, tmp_path):
    return MemoryDatabase() if request.param == "memory" else JSONDatabase(work_dir=tmp_path)


def test_what_was_confirmed_replaces_a_lucky_time(database) -> None:
    database.commit_tuning_record(record(database, *LUCKY))
    database.commit_tuning_record(record(database, 2.0, 2.0, factor=4))
    assert best(database) == LUCKY
    database.commit_tuning_record(record(database, *CONFIRMED))
    assert best(database) == (2.0, 2.0)
    workload = database.commit_workload(Matmul)
    assert [r.run_secs for r in database.get_top_k(workload, 9)] == [(2.0, 2.0), CONFIRMED]
    assert {r.run_secs for r in database.get_records_of(workload)} == {(2.0, 2.0), CONFIRMED}
    assert len(database) == 3
    pruned = MemoryDatabase()
    database.dump_pruned(pruned)
    assert times(pruned) == [2.0]


def test_a_lucky_time_does_not_replace_what_was_confirmed(database) -> None:
    for seconds in (CONFIRMED, LUCKY, (1e10,)):
        database.commit_tuning_record(record(database, *seconds))
    assert best(database) == CONFIRMED


def test_the_newer_of_two_that_are_alike_counts_and_failures_do_not(database) -> None:
    for seconds in ((1e10,), (1.0, 1.0), (2.0, 2.0), (1e10,)):
        database.commit_tuning_record(record(database, *seconds))
    assert best(database) == (2.0, 2.0)


@pytest.mark.parametrize(("seconds", "stays"), [(0.97, False), (0.99, True), (1.5, True)])
def test_what_has_no_steps_stays_until_another_is_faster_beyond_doubt(
    database, seconds, stays
) -> None:
    workload = database.commit_workload(Matmul)
    database.commit_tuning_record(TuningRecord(Schedule(Matmul).trace, workload, [1.0], "llvm"))
    database.commit_tuning_record(record(database, seconds))
    assert best(database) == ((1.0,) if stays else (seconds,))
    pruned = MemoryDatabase()
    database.dump_pruned(pruned)
    assert times(pruned) == [1.0 if stays else seconds]
    database.commit_tuning_record(TuningRecord(Schedule(Matmul).trace, workload, [1e10], "llvm"))
    assert best(database) == ((1.0,) if stays else (seconds,))


def test_merging_brings_what_counts() -> None:
    one, other = MemoryDatabase(), MemoryDatabase()
    for database in (one, other):
        database.commit_tuning_record(record(database, *CONFIRMED))
    source = MemoryDatabase()
    for seconds in (LUCKY, CONFIRMED):
        source.commit_tuning_record(record(source, *seconds))
    source.commit_tuning_record(record(source, 5.0, module=Other))
    one.merge(source)
    one.merge(source)
    assert times(one) == [3.0, 5.0]
    other.merge(UnionDatabase(source, one))
    assert len(other) == 2


def plain(database, *seconds):
    made = record(database, *seconds)
    return TuningRecord(made.trace, made.workload, seconds, made.target, made.args_info)


def test_records_that_no_search_made_all_count_and_by_their_means(database) -> None:
    for seconds in ((7.0, 8.0, 9.0), (1.0, 2.0, 3.0), (1.0, 1.0, 600.0), (4.0, 5.0, 6.0)):
        database.commit_tuning_record(plain(database, *seconds))
    workload = database.commit_workload(Matmul)
    fastest = [r.run_secs[0] for r in database.get_top_k(workload, 3)]
    assert fastest == [1.0, 4.0, 7.0]
    assert len(database.get_top_k(workload, 9)) == 4
    database.commit_tuning_record(record(database, 6.0, 6.0, 6.0))
    assert [r.run_secs for r in database.get_top_k(workload, 9)] == [(6.0, 6.0, 6.0)]


def test_files_are_made_at_once(tmp_path) -> None:
    folder = tmp_path / "some"
    database = JSONDatabase(folder / "workloads.json", folder / "records.json")
    assert database.path_workload.exists()
    assert database.path_tuning_record.exists()
