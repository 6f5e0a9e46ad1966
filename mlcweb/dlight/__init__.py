"""Default schedules for functions that nobody scheduled, made without a search.

    with tvm.target.Target("llvm"):
        mod = dlight.ApplyDefaultSchedule(dlight.cpu.Matmul(), dlight.cpu.Reduction())(mod)

base/ has the pass and the interface of a rule; cpu/ and gpu/ have the rules; defaults.py has what
`relax.build` applies.
"""

from mlcweb.dlight import base, cpu, gpu
from mlcweb.dlight.base import ApplyDefaultSchedule, ScheduleRule, try_inline

__all__ = [
    "ApplyDefaultSchedule",
    "ScheduleRule",
    "base",
    "cpu",
    "gpu",
    "try_inline",
]
