"""Rules for devices with threads. Where TVM has a rule of the same name, a function gets the same
schedule by both."""

from mlcweb.dlight.gpu.fallback import Fallback
from mlcweb.dlight.gpu.gemv import GEMV
from mlcweb.dlight.gpu.general_reduction import GeneralReduction
from mlcweb.dlight.gpu.low_batch_gemv import LowBatchGEMV
from mlcweb.dlight.gpu.matmul import Matmul
from mlcweb.dlight.gpu.reduction import Reduction
from mlcweb.dlight.gpu.rmsnorm import RMSNorm
from mlcweb.dlight.gpu.transpose import Transpose

__all__ = [
    "GEMV",
    "Fallback",
    "GeneralReduction",
    "LowBatchGEMV",
    "Matmul",
    "RMSNorm",
    "Reduction",
    "Transpose",
]
