"""Default schedules for functions that nobody scheduled, made without a search.

    with tvm.target.Target("llvm"):
        mod = dlight.ApplyDefaultSchedule(dlight.cpu.Matmul(), dlight.cpu.Reduction())(mod)

base/ has the pass and the interface of a rule; cpu/ and gpu/ have the rules; analysis/ tells of
blocks what rules ask; default_rules.py chooses rules for a target, and defaults.py has what
`relax.build` applies.
"""

from mlcweb.dlight import analysis, base, cpu, gpu
from mlcweb.dlight.analysis import normalize_prim_func
from mlcweb.dlight.base import ApplyDefaultSchedule, ScheduleRule, try_inline

__all__ = [
    "ApplyDefaultSchedule",
    "ScheduleRule",
    "analysis",
    "base",
    "cpu",
    "gpu",
    "normalize_prim_func",
    "try_inline",
]
