"""From TensorIR down to flat loops: named passes in one visible order, and their record."""

from mlcweb.lower.pipeline import PASSES, PassRecord, lower, record_lowering
from mlcweb.lower.specialize import specialize
