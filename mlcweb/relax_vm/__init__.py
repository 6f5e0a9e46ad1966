"""Running models: graph functions become instructions for a virtual machine.

- vm_build.py (`relax.build`) runs a pipeline on a module, compiles its TensorIR functions, and
  compiles its graph functions (compiler.py) to instructions.py on registers; listing.py prints
  them. The result is an executable.py.
- lifetimes.py and memory_plan.py decide which tensors share memory; memory_report.py tells what
  that saves.
- virtual_machine.py (`relax.VirtualMachine`) checks arguments (sizes.py) and keeps functions ready
  to run for shapes that it has met: frame.py. packed.py calls registered functions, builtins.py has
  what the machine does itself (registered.py: under TVM's names), explicit_memory.py is for
  programs that allocate themselves, profiling.py tells where the time goes, instrument.py lets
  functions see each call.
- kv_cache.py, paged_kv_cache.py (with cached_sequences.py and forward_batch.py), rnn_state.py,
  token_sampling.py and tensor_cache.py are functions that language models call by name;
  shape_heap.py has those of TVM's bytecode.
- exec_builder.py (`relax.ExecBuilder`) makes executables of calls and jumps: bytecode.py.
"""

from mlcweb.relax_vm import (
    kv_cache,
    paged_kv_cache,
    registered,
    rnn_state,
    shape_heap,
    tensor_cache,
    token_sampling,
    vm_build,
)
from mlcweb.relax_vm.exec_builder import ExecBuilder
from mlcweb.relax_vm.executable import Executable, VMExecutable
from mlcweb.relax_vm.instrument import VMInstrumentReturnKind
from mlcweb.relax_vm.memory_report import MemoryReport
from mlcweb.relax_vm.profiling import Report
from mlcweb.relax_vm.sizes import ShapeTuple
from mlcweb.relax_vm.virtual_machine import VirtualMachine
from mlcweb.relax_vm.vm_build import build

__all__ = [
    "ExecBuilder",
    "Executable",
    "MemoryReport",
    "Report",
    "ShapeTuple",
    "VMExecutable",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "build",
    "registered",
    "vm_build",
]
