"""`tvm.relax.testing`: layers of the first notebooks, small models, and functions that tests of the
virtual machine call."""

from mlcweb.testing.relax import nn, vm
from mlcweb.testing.relax.models import (
    get_relax_attention_module, get_relax_matmul_module,
)  # fmt: skip
