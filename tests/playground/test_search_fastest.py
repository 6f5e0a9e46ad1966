"""The bounded records of a search."""

import pytest

from mlcweb.ir import TVMError
from mlcweb.meta_schedule.database import TuningRecord
from mlcweb.playground.search.history import FastestRecords
from tests.programs import matmul, matmul_relu


def record(database: FastestRecords, number: int, *seconds: float) -> TuningRecord:
    return TuningRecord(f"[[],[{number}]]", database.workload, seconds, program=number)


def test_the_fastest_are_kept_and_no_more_than_twice_as_many_as_wanted() -> None:
    database = FastestRecords(matmul(), max_records=10)
    for number in range(1000):
        database.commit_tuning_record(record(database, number, 1.0 + (number * 37) % 1000))
        assert len(database) < 20
    seconds = [each.seconds for each in database.get_top_k(database.workload, 10)]
    assert seconds == [float(rank) for rank in range(1, 11)]


def test_what_failed_is_not_kept_and_a_confirmed_time_counts() -> None:
    database = FastestRecords(matmul())
    database.commit_tuning_record(record(database, 1, 1e10))
    assert len(database) == 0
    database.commit_tuning_record(record(database, 2, 0.5))
    database.commit_tuning_record(record(database, 2, 0.9, 0.9, 0.9))
    [best] = database.get_top_k(database.workload, 5)
    assert best.seconds == pytest.approx(0.9)


def test_records_of_another_program_are_refused() -> None:
    database = FastestRecords(matmul())
    database.commit_workload(matmul())
    with pytest.raises(TVMError, match="another program"):
        database.commit_workload(matmul_relu())
