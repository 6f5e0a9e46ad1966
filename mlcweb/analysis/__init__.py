"""What a program does: which regions it touches, and how its parts depend on each other.

The questions that TVM's users ask are in queries.py.
"""

from typing import Any

from mlcweb.analysis import queries
from mlcweb.analysis.access_regions import AccessRegions, block_access_regions


def __getattr__(name: str) -> Any:
    return getattr(queries, name)
