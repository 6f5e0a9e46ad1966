"""Functions and modules built by calls of Python: `tvm.script.ir_builder`.

The parser of scripts and the calls of `tir.py` share one mechanism: `StatementBuilder`, and the
tables of what each construct does to it.
"""

from mlcweb.script.ir_builder.base import IRBuilder
