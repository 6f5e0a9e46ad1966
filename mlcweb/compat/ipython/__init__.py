"""Stand-in for IPython where it is missing: the display objects that course cells use."""

from mlcweb.compat.ipython import display

__all__ = ["display"]
