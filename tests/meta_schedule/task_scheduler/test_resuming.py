"""A search goes on where another with the same records has ended."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from mlcweb import meta_schedule as ms
from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.measure.measuring import FINALISTS
from tests.meta_schedule import programs
from tests.meta_schedule.matmul import FakeRunner, Matmul, columns, seconds, tiles


def tune(work_dir, trials: int, strategy: str = "evolutionary", space=tiles, **options):
    """Tunes `Matmul`; the hashes of the programs that were measured, but for the last rounds."""
    measured: list[int] = []

    class Watched(FakeRunner):
        async def measure(self, artifact):
            measured.append(structural_hash(artifact.module))
            return await super().measure(artifact)

    database = ms.tune_tir(
        Matmul, "numpy", work_dir, max_trials_global=trials, space=space, strategy=strategy,
        seed=options.pop("seed", 1), runner=lambda workload: Watched(), **options,
    )  # fmt: skip
    return measured[: len(measured) - 3 * min(4, len(measured) // 4)], database


@pytest.mark.parametrize("strategy", ["evolutionary", "replay-trace", "replay-func"])
def test_no_program_is_measured_twice(tmp_path, strategy: str) -> None:
    first, _ = tune(tmp_path, 24, strategy)
    second, database = tune(tmp_path, 24, strategy)
    assert len(first) >= 24
    assert not set(first) & set(second)
    records = database.get_records_of(database.commit_workload(Matmul))
    assert len(records) == 48
    assert len({record.trace_text for record in records}) == 48


def marked(sch) -> None:
    """Six programs, each of which has three traces."""
    j = sch.get_loops(sch.get_block("C"))[1]
    sch.split(j, sch.sample_perfect_tile(j, 2, 32))
    sch.annotate(
        sch.get_loops(sch.get_block("C"))[0], "mark", sch.sample_categorical([1] * 3, [1 / 3] * 3)
    )


@pytest.mark.parametrize("kept", [True, False])
def test_a_program_is_known_under_any_trace(tmp_path, kept: bool) -> None:
    first, database = tune(tmp_path, 40, "replay-trace", marked)
    assert len(set(first)) == len(database.get_standing_records()) == 6
    hashes = tmp_path / "database_tuning_record_programs.json"
    assert len(hashes.read_text().splitlines()) == 6
    if not kept:
        # As records of TVM are: they are replayed.
        hashes.unlink()
    again = ms.database.JSONDatabase(work_dir=tmp_path)
    assert all((record.program is not None) == kept for record in again.get_all_tuning_records())
    for seed in (2, 3):
        second, _ = tune(tmp_path, 40, "replay-trace", marked, seed=seed)
        assert second == []


def test_a_database_in_memory_knows_programs_too() -> None:
    _, database = tune(None, 40, "replay-trace", marked)
    merged = ms.database.MemoryDatabase()
    merged.merge(database)
    assert {record.program for record in merged.get_all_tuning_records()} == {
        structural_hash(record.schedule().mod) for record in database.get_standing_records()
    }
    assert tune(None, 40, "replay-trace", marked, seed=2, database=merged)[0] == []


def test_an_exhaustive_search_takes_up_the_rest(tmp_path) -> None:
    found = [tune(tmp_path, 2, "exhaustive", columns)[0] for _ in range(4)]
    # All five programs, two at a time.
    assert len({program for programs in found for program in programs}) == 5
    assert found[3] == []


def test_what_was_known_counts_as_progress_already(tmp_path) -> None:
    _, database = tune(tmp_path, 24)
    best = database.query_tuning_record(Matmul).seconds
    seen = []
    tune(tmp_path, 4, measure_callbacks=lambda scheduler, _: seen.append(scheduler.tasks[0].best))
    assert seen[-1] <= best
    assert max(seen[1:]) <= best


def test_a_database_in_memory_resumes_as_well() -> None:
    first, database = tune(None, 16)
    second, same = tune(None, 16, database=database)
    assert same is database
    assert not set(first) & set(second)


def test_the_same_seed_and_times_give_the_same_search(tmp_path) -> None:
    runs = []
    for name in ("a", "b"):
        first, _ = tune(tmp_path / name, 16)
        second, database = tune(tmp_path / name, 16)
        runs.append((first, second, [r.trace_text for r in database.get_all_tuning_records()]))
    assert runs[0] == runs[1]


SEARCH = """
    import sys
    from mlcweb import meta_schedule as ms
    from tests.meta_schedule.matmul import FakeRunner, Matmul, tiles
    def tell(scheduler, task_id):
        print(scheduler.total_trials, flush=True)
    ms.tune_tir(Matmul, "numpy", sys.argv[1], max_trials_global=5000, space=tiles, seed=1,
                runner=lambda workload: FakeRunner(), measure_callbacks=tell)
"""


def test_a_search_that_is_killed_has_its_records(tmp_path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SEARCH), str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=os.getcwd()
    ) as search:
        assert search.stdout is not None
        done = 0
        while done < 20:
            done = int(search.stdout.readline())
        search.send_signal(signal.SIGKILL)
        done = max([done, *map(int, search.stdout.read().split())])
    killed = ms.database.JSONDatabase(work_dir=tmp_path)
    # Trials are recorded in order, just after they are told of.
    assert len(killed) >= done - 2 * FakeRunner.workers
    measured, database = tune(tmp_path, 12)
    before = {r.trace_text for r in killed.get_all_tuning_records()}
    after = [r.trace_text for r in database.get_records_of(database.commit_workload(Matmul))]
    assert before <= set(after)
    assert len(after) == len(before) + 12
    assert len(measured) >= 12


def test_what_shared_the_time_of_a_lucky_program_is_confirmed_with_it(tmp_path) -> None:
    """Two traces arrive at one code: both records change when it is measured again."""

    class Lucky(FakeRunner):
        async def measure(self, artifact):
            times = self.__dict__.setdefault("times", {})
            program = structural_hash(artifact.module)
            times[program] = times.get(program, 0) + 1
            lucky = 0.1 if times[program] == 1 else 1.0
            return (lucky * seconds(artifact.module),) * 2

    database = ms.tune_tir(
        Matmul, "numpy", str(tmp_path), max_trials_global=12, space=tiles, seed=1,
        strategy="replay-trace", runner=lambda workload: Lucky(),
    )  # fmt: skip
    workload = database.commit_workload(Matmul)
    confirmed = [r for r in database.get_records_of(workload) if len(r.run_secs) > 2]
    assert FINALISTS <= len(confirmed) < 12
    assert len(database) == 12 + len(confirmed)
    assert all(r.seconds == pytest.approx(seconds(r.schedule().mod), rel=1e-6) for r in confirmed)


def test_one_task_that_fails_does_not_end_the_others() -> None:
    class Refuses(FakeRunner):
        async def begin(self, reference):
            raise RuntimeError("no such machine")

    def open_runner(workload):
        return FakeRunner() if len(workload.inputs) == 3 else Refuses()

    def context(module, space, name):
        return ms.TuneContext(
            module, target="numpy", space_generator=space, search_strategy="replay-trace",
            task_name=name, rand_state=1,
        )  # fmt: skip

    options = {"work_dir": None, "max_trials_global": 8, "runner": open_runner}
    good, bad = context(Matmul, tiles, "good"), context(programs.Double, programs.tile, "bad")
    with pytest.warns(UserWarning, match='"bad" is not tuned: RuntimeError: no such machine'):
        database = ms.tune_tasks(tasks=[bad, good], task_weights=[1.0, 1.0], **options)
    assert len(database) == 8 + 8
    with pytest.raises(RuntimeError, match="no such machine"):
        ms.tune_tasks(tasks=[bad.clone()], task_weights=[1.0], **options)


def test_a_budget_of_seconds_ends_a_search(monkeypatch) -> None:
    ticks = iter(range(100_000))
    monkeypatch.setattr("mlcweb.meta_schedule.search.clock", lambda: float(next(ticks)))
    _, database = tune(None, 1000, "replay-trace", max_seconds=20.0)
    assert 10 <= len(database) <= 20 + FINALISTS
