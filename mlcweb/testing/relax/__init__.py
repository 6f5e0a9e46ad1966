"""`tvm.relax.testing`: layers of the first notebooks, small models, functions that tests of the
virtual machine call, and nodes as text with the names of their fields."""

from mlcweb.testing.relax import ast_printer, nn, vm
from mlcweb.testing.relax.ast_printer import dump_ast
from mlcweb.testing.relax.models import (
    get_relax_attention_module, get_relax_matmul_module, get_relax_stacked_attention_module,
)  # fmt: skip
from mlcweb.testing.relax.nn import (
    Linear, LogSoftmax, Module, Parameter, Placeholder, ReLU, Sequential, checkpoint, emit,
    emit_checkpoint, emit_checkpoint_sequential, emit_te, init_params,
)  # fmt: skip
