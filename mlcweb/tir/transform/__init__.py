"""From TensorIR down to flat loops: named passes in one visible order, and their record."""

from mlcweb.tir.transform.lower import PASSES, PassRecord, lower, record_lowering
from mlcweb.tir.transform.specialize import specialize
