"""Rules for processors. Each makes one kernel of a function: whatever comes after a reduction is
computed with it, while its results are in registers or in the cache."""

from mlcweb.dlight.cpu.elementwise import Elementwise
from mlcweb.dlight.cpu.gemv import GEMV
from mlcweb.dlight.cpu.matmul import Matmul
from mlcweb.dlight.cpu.reduction import Reduction

__all__ = ["GEMV", "Elementwise", "Matmul", "Reduction"]
