"""Databases: what is committed is found again, also after a crash, and by a real TVM."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

from mlcweb.ir import DiagnosticError, assert_structural_equal
from mlcweb.meta_schedule.arg_info import ArgInfo, TensorInfo
from mlcweb.meta_schedule.database import (
    Database,
    JSONDatabase,
    MemoryDatabase,
    OrderedUnionDatabase,
    TuningRecord,
    UnionDatabase,
    tvm_graph,
)  # fmt: skip
from mlcweb.meta_schedule.database.json_database import RECORDS, WORKLOADS
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule import programs
from tests.meta_schedule.matmul import Matmul, columns, tiles

TARGET = "llvm --num-cores=1"


def record(database: Database, times: float, factor: int = 8, module=Matmul) -> TuningRecord:
    sch = Schedule(module)
    block = sch.get_block("C")
    _, j, _ = sch.get_loops(block)
    sch.split(j, sch.sample_perfect_tile(j, 2, decision=[32 // factor, factor]))
    workload = database.commit_workload(module)
    infos = ArgInfo.from_entry_func(module)
    return TuningRecord(sch.trace, workload, (times, 3 * times), TARGET, infos)


def filled(database: Database) -> Database:
    for times, factor in ((3.0, 2), (1.0, 4), (2.0, 8)):
        database.commit_tuning_record(record(database, times, factor))
    return database


@pytest.mark.parametrize("kind", ["memory", "json"])
def test_the_best_record_answers(kind: str, tmp_path: Path) -> None:
    options = {"work_dir": tmp_path} if kind == "json" else {}
    database = filled(Database.create(kind, **options))
    assert len(database) == 3
    assert database.has_workload(Matmul)
    assert not database.has_workload(programs.Double)
    top = database.get_top_k(database.commit_workload(Matmul), 2)
    assert [r.run_secs for r in top] == [(1.0, 3.0), (2.0, 6.0)]
    sch = database.query_schedule(Matmul, TARGET)
    assert sch is not None
    assert sch.trace.decisions[sch.trace.insts[2]] == [8, 4]
    module = database.query(Matmul, TARGET, kind="ir_module")
    assert_structural_equal(module, sch.mod)
    assert database.query_schedule(programs.Double, TARGET) is None


def test_failed_records_are_kept_and_never_answer() -> None:
    database = MemoryDatabase()
    database.commit_tuning_record(record(database, 1e10))
    assert len(database) == 1
    assert database.query_tuning_record(Matmul) is None


def test_files_have_one_line_for_each_item_and_are_read_again(tmp_path: Path) -> None:
    written = filled(JSONDatabase(work_dir=tmp_path))
    assert len((tmp_path / WORKLOADS).read_text().splitlines()) == 1
    lines = (tmp_path / RECORDS).read_text().splitlines()
    number, (trace, run_secs, target, infos) = json.loads(lines[0])
    assert (number, run_secs) == (0, [3.0, 9.0])
    assert target == {"kind": "llvm", "num-cores": 1}
    assert infos == [["TENSOR", "float32", [32, 32]]] * 3
    assert trace[0][0] == ["GetSBlock", [], ["C", "main"], ["b0"]]
    read = JSONDatabase(work_dir=tmp_path)
    assert [r.as_json() for r in read.get_all_tuning_records()] == [
        r.as_json() for r in written.get_all_tuning_records()
    ]
    assert read.get_all_tuning_records()[0].args_info == (TensorInfo("float32", (32, 32)),) * 3
    read.commit_tuning_record(record(read, 0.5, 16))
    assert len(JSONDatabase(work_dir=tmp_path)) == 4
    assert len((tmp_path / WORKLOADS).read_text().splitlines()) == 1


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_half_a_line_is_skipped_and_replaced(tmp_path: Path, cut: int) -> None:
    filled(JSONDatabase(work_dir=tmp_path))
    path = tmp_path / RECORDS
    path.write_bytes(path.read_bytes()[: -1 - cut])
    with pytest.warns(UserWarning, match=r"database_tuning_record.json, line 3, is skipped"):
        database = JSONDatabase(work_dir=tmp_path)
    assert [r.run_secs for r in database.get_all_tuning_records()] == [(3.0, 9.0), (1.0, 3.0)]
    database.commit_tuning_record(record(database, 7.0))
    assert [r.seconds for r in JSONDatabase(work_dir=tmp_path).get_all_tuning_records()] == [
        6.0, 2.0, 14.0
    ]  # fmt: skip


def test_a_last_line_without_its_end_is_whole(tmp_path: Path) -> None:
    filled(JSONDatabase(work_dir=tmp_path))
    for name in (RECORDS, WORKLOADS):
        path = tmp_path / name
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
    database = JSONDatabase(work_dir=tmp_path)
    database.commit_tuning_record(record(database, 7.0))
    database.commit_workload(programs.Double)
    again = JSONDatabase(work_dir=tmp_path)
    assert len(again) == 4
    assert again.has_workload(programs.Double)


def test_fuzzed_files_never_fail_and_lose_only_what_is_damaged(tmp_path: Path) -> None:
    filled(JSONDatabase(work_dir=tmp_path))
    workloads, records = ((tmp_path / name).read_bytes() for name in (WORKLOADS, RECORDS))
    rng = random.Random(0)
    foreign = [b"", b"null", b"[]", b"[0]", b'{"a": 1}', b"[0, [1, 2]]", b"\xff\xfe", b"[" * 99,
               b'[0,[[[["No"]],[]],[1],null,null]]', b'[7,[[[],[]],[1.0],null,null]]']  # fmt: skip
    for _ in range(60):
        lines = records.splitlines() + rng.sample(foreign, 3)
        rng.shuffle(lines)
        content = b"\n".join(lines)[: rng.randrange(len(records) * 2)]
        (tmp_path / WORKLOADS).write_bytes(workloads)
        (tmp_path / RECORDS).write_bytes(content)
        whole = sum(line in records.splitlines() for line in content.split(b"\n"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            database = JSONDatabase(work_dir=tmp_path)
        assert len(database) == whole
        database.commit_tuning_record(record(database, 5.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(JSONDatabase(work_dir=tmp_path)) == whole + 1


def test_many_damaged_lines_give_one_warning(tmp_path: Path) -> None:
    filled(JSONDatabase(work_dir=tmp_path))
    path = tmp_path / RECORDS
    whole = path.read_bytes()
    path.write_bytes(b"damaged\n" * 500 + whole)
    with pytest.warns(UserWarning, match="is skipped") as told:
        database = JSONDatabase(work_dir=tmp_path)
    (warning,) = told
    assert str(warning.message).startswith("database_tuning_record.json, line 1, is skipped: ")
    assert str(warning.message).endswith(" (499 more lines are skipped, too)")
    assert len(database) == len(whole.splitlines())


def test_a_damaged_workload_costs_its_records_and_shifts_none(tmp_path: Path) -> None:
    database = JSONDatabase(work_dir=tmp_path)
    database.commit_workload(programs.Double)
    filled(database)
    path = tmp_path / WORKLOADS
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["[broken", lines[1]]) + "\n")
    with pytest.warns(UserWarning, match="line 1, is skipped"):
        again = JSONDatabase(work_dir=tmp_path)
    assert again.query_tuning_record(Matmul).seconds == 2.0


WRITER = """
import sys
from mlcweb.meta_schedule.database import JSONDatabase
from tests.meta_schedule.test_database import record
database = JSONDatabase(work_dir=sys.argv[1])
number = 1
while True:
    database.commit_tuning_record(record(database, float(number)))
    number += 1
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing_that_it_had_written(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd()) as writer:
        assert writer.stdout is not None
        written = 0
        while written < 20:
            written = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split("\n")
    written = max([written, *(int(text) for text in rest[:-1])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        database = JSONDatabase(work_dir=tmp_path)
    times = [r.run_secs[0] for r in database.get_all_tuning_records() if r.run_secs]
    assert times == [float(n) for n in range(1, len(times) + 1)]
    assert len(times) >= written - 1


def test_text_moves_a_database_and_merging_adds_only_what_is_new() -> None:
    one = filled(MemoryDatabase())
    other = MemoryDatabase()
    other.commit_tuning_record(record(other, 9.0, 16))
    other.merge(one, one)
    other.merge(one)
    assert [r.seconds for r in other.get_all_tuning_records()] == [18.0, 6.0, 2.0, 4.0]
    pruned = MemoryDatabase()
    other.dump_pruned(pruned)
    assert [r.seconds for r in pruned.get_all_tuning_records()] == [2.0]


def test_unions_ask_their_parts() -> None:
    slow, fast = MemoryDatabase(), filled(MemoryDatabase())
    slow.commit_tuning_record(record(slow, 9.0))
    best, first = UnionDatabase(slow, fast), OrderedUnionDatabase(slow, fast)
    assert best.query_tuning_record(Matmul).seconds == 2.0
    assert first.query_tuning_record(Matmul).seconds == 18.0
    assert len(best) == 4
    with pytest.raises(TypeError, match="takes no records"):
        best.commit_tuning_record(record(slow, 1.0))


def test_a_function_may_answer_and_the_innermost_context_is_current() -> None:
    with Database.create(columns) as database:
        assert Database.current() is database
        assert "j_1" in database.query_ir_module(Matmul).script()
    assert Database.current() is None
    with pytest.raises(ValueError, match='Unknown database "sql"'):
        Database.create("sql")


@pytest.mark.parametrize(
    "module",
    [Matmul, programs.Double, programs.Divides, programs.Huge, programs.Symbolic],
    ids=lambda m: "",
)
def test_modules_survive_the_form_of_tvm(module) -> None:
    text = tvm_graph.save(module)
    assert not text.startswith("#")
    assert_structural_equal(tvm_graph.load(text), module)
    scheduled = Schedule(Matmul, seed=3)
    tiles(scheduled)
    assert_structural_equal(tvm_graph.load(tvm_graph.save(scheduled.mod)), scheduled.mod)


@pytest.mark.parametrize("text", ["", "abc", "AAAA", "e30=", "AAAAAAAAAAB7fQ=="])
def test_what_is_no_module_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        tvm_graph.load(text)


def test_the_script_of_a_workload_is_not_run() -> None:
    script = Matmul.script().replace("T.float32(0)", "sum([0.0 for _ in A.shape])")
    with pytest.raises(DiagnosticError, match="Python computes this when the script runs"):
        tvm_graph.load(script)


ORACLE = """
import sys, json
import tvm
from tvm import s_tir
from tvm.s_tir import meta_schedule as ms
database = ms.database.JSONDatabase(work_dir=sys.argv[1])
(record,) = database.get_all_tuning_records()
module = tvm.script.from_source(sys.stdin.read())
tvm.ir.assert_structural_equal(module, record.workload.mod)
assert database.has_workload(module)
sch = database.query_schedule(module, tvm.target.Target({"kind": "llvm"}), "main")
tvm.compile(sch.mod, target="llvm")
other = ms.database.JSONDatabase(work_dir=sys.argv[2])
infos = ms.arg_info.ArgInfo.from_prim_func(module["main"])
target = tvm.target.Target({"kind": "llvm", "num-cores": 1})
other.commit_tuning_record(
    ms.database.TuningRecord(sch.trace, other.commit_workload(module), [0.25], target, infos)
)
print(json.dumps([[float(s) for s in record.run_secs], sch.mod.script()]))
"""


@pytest.mark.oracle
@pytest.mark.thorough
def test_a_record_from_here_loads_in_tvm_and_comes_back(oracle_python, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    database = JSONDatabase(work_dir=ours)
    sch = Schedule(Matmul, seed=3)
    tiles(sch)
    database.commit_tuning_record(
        TuningRecord(
            sch.trace,
            database.commit_workload(Matmul),
            (0.5,),
            TARGET,
            ArgInfo.from_entry_func(Matmul),
        )
    )
    script = tmp_path / "ask.py"
    script.write_text(ORACLE)
    done = subprocess.run(
        [oracle_python, str(script), str(ours), str(theirs)],
        input=Matmul.script(dialect="s_tir"), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    times, scheduled = json.loads(done.stdout.splitlines()[-1])
    assert times == [0.5]
    assert_structural_equal(from_source(scheduled), sch.mod)
    back = JSONDatabase(work_dir=theirs)
    found = back.query_tuning_record(Matmul)
    assert found is not None
    assert (found.run_secs, str(found.target)) == ((0.25,), "llvm -num-cores=1")
    assert_structural_equal(found.schedule().mod, sch.mod)
