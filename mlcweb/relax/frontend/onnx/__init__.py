"""Importing models in the ONNX format, which is read here without any other package.

- wire.py reads protocol buffers, schema.py says which messages, tensors.py makes constants.
- graph.py walks the nodes; node.py is what a converter sees of one, arguments.py reads what moved
  between attributes and inputs as operators changed.
- operators/ has the converters; a new operator is one function with `@converter("Name")`.
- known.py and folding.py compute with shapes while the model is imported.
- importer.py has `from_onnx`.
"""

from mlcweb.relax.frontend.onnx import operators
from mlcweb.relax.frontend.onnx.errors import ConstantNeeded, OnnxError, OpNotImplemented
from mlcweb.relax.frontend.onnx.importer import from_onnx, load
