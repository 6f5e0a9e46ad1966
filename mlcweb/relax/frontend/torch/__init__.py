"""Importing models of PyTorch: traced by torch.fx, or exported by torch.export.

Nothing of PyTorch is imported here: what a graph refers to is known by its name.

- translator.py walks a graph; what all converters use of it.
- functions/ has the converters of functions, methods and ATen operators by name, with the
  arguments that PyTorch gives them; modules.py those of layers.
- fx.py and exported_program.py have the two entries.
"""

from mlcweb.relax.frontend.torch import functions, modules
from mlcweb.relax.frontend.torch.exported_program import from_exported_program
from mlcweb.relax.frontend.torch.fx import from_fx
from mlcweb.relax.frontend.torch.translator import TorchError
