"""From TensorIR down to flat loops: named passes in one visible order, and their record."""

from mlcweb.lower.pipeline import PASSES, PassRecord, lower, record_lowering, without_threads
from mlcweb.lower.specialize import specialize
