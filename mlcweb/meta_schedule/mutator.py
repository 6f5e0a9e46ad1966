"""Mutators: how evolutionary search changes the decisions of a trace."""

from mlcweb.meta_schedule.space.mutators import (
    MutateComputeLocation,
    MutateParallel,
    MutateThreadBinding,
    MutateTileSize,
    MutateUnroll,
    Mutator,
    PyMutator,
)

create = Mutator.create

__all__ = [
    "MutateComputeLocation",
    "MutateParallel",
    "MutateThreadBinding",
    "MutateTileSize",
    "MutateUnroll",
    "Mutator",
    "PyMutator",
    "create",
]
