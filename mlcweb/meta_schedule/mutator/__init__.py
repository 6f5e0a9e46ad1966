"""Mutators: how evolutionary search changes the decisions of a trace."""

from mlcweb.meta_schedule.mutator.mutate_compute_location import MutateComputeLocation
from mlcweb.meta_schedule.mutator.mutate_parallel import MutateParallel
from mlcweb.meta_schedule.mutator.mutate_tile_size import MutateTileSize
from mlcweb.meta_schedule.mutator.mutate_unroll import MutateUnroll
from mlcweb.meta_schedule.mutator.mutator import Mutator, PyMutator

create = Mutator.create

__all__ = [
    "MutateComputeLocation",
    "MutateParallel",
    "MutateTileSize",
    "MutateUnroll",
    "Mutator",
    "PyMutator",
    "create",
]
