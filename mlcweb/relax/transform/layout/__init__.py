"""ConvertLayout: how tensors lie in memory (order.py), what operators make of it (rules.py, with
those of windows in windows.py), and the pass (convert_layout.py)."""

from mlcweb.relax.transform.layout.convert_layout import ConvertLayout

__all__ = ["ConvertLayout"]
