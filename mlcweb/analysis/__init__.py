"""What a program does: which regions it touches, and how its parts depend on each other."""

from mlcweb.analysis.access_regions import AccessRegions, block_access_regions

__all__ = ["AccessRegions", "block_access_regions"]
