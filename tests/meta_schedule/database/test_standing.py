"""Which record of a schedule counts, and what becomes of records that move."""

import pytest

from mlcweb.meta_schedule.database import JSONDatabase, MemoryDatabase, UnionDatabase, exchange
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


def test_merging_brings_what_counts_and_says_how_much() -> None:
    one, other = MemoryDatabase(), MemoryDatabase()
    for database in (one, other):
        database.commit_tuning_record(record(database, *CONFIRMED))
    source = MemoryDatabase()
    for seconds in (LUCKY, CONFIRMED):
        source.commit_tuning_record(record(source, *seconds))
    source.commit_tuning_record(record(source, 5.0, module=Other))
    assert exchange.merge(one, source) == 1
    assert exchange.merge(one, source) == 0
    assert times(one) == [3.0, 5.0]
    assert exchange.merge(other, UnionDatabase(source, one)) == 1


def test_text_holds_all_of_any_database() -> None:
    database = MemoryDatabase()
    for number in range(3):
        database.commit_tuning_record(record(database, 1.0 + number, factor=2**number))
        database.commit_tuning_record(record(database, 11.0 + number, module=Other))
    files = exchange.dump(UnionDatabase(database))
    assert sorted(files) == ["database_tuning_record.json", "database_workload.json"]
    assert [len(text.splitlines()) for _, text in sorted(files.items())] == [6, 2]
    again = exchange.load(files)
    assert times(again) == times(database)
    assert exchange.dump(again) == files
    assert len(exchange.load({})) == 0
    with pytest.warns(UserWarning, match="line 6, is skipped"):
        cut = exchange.load(
            {name: text[:-9] for name, text in files.items() if "work" not in name}
            | {name: text for name, text in files.items() if "work" in name}
        )
    assert times(cut) == times(database)[:5]
