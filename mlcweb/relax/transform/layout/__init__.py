"""ConvertLayout (convert_layout.py), and what the user may want of it (wanted.py). What operators
do with layouts is registered with them (mlcweb/relax/op/layout.py)."""

from mlcweb.relax.transform.layout.convert_layout import ConvertLayout

__all__ = ["ConvertLayout"]
