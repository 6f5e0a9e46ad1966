"""Records of a small matrix product, as fast as a test wants them."""

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.database import Database, TuningRecord
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule.matmul import Matmul

OTHER = Matmul.script().replace(
    "for i, j, k in T.grid(32, 32, 32)", "for i, j, k in T.grid(16, 32, 32)"
)
Other = from_source(OTHER)
"""Half of the matrix product: another program with the same loops."""

TARGET = "llvm --num-cores=1"


def record(database: Database, *run_secs: float, factor: int = 8, module=Matmul) -> TuningRecord:
    """A search's record of the columns in blocks of `factor`; its program is added to the
    database."""
    sch = Schedule(module)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(j, sch.sample_perfect_tile(j, 2, decision=[32 // factor, factor]))
    workload = database.commit_workload(module)
    infos = ArgInfo.from_entry_func(module)
    program = structural_hash(sch.mod)
    return TuningRecord(sch.trace, workload, run_secs, TARGET, infos, program)


def times(database: Database) -> list[float]:
    """The first time of each record, in order."""
    return [r.run_secs[0] for r in database.get_all_tuning_records() if r.run_secs]
