"""Stand-in for IPython where it is missing: the display objects that course cells use."""

from mlcweb.compat.ipython import display

__all__ = ["display", "get_ipython", "version_info"]

version_info = (9, 0, 0)
"""Libraries choose by it what they call."""


def get_ipython() -> None:
    """There is no shell of IPython, which libraries such as matplotlib ask for."""
    return
