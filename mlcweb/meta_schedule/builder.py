"""TVM's path to what builds the programs of a search."""

from mlcweb.meta_schedule.measure.local_builder import (
    Builder,
    BuilderInput,
    BuilderResult,
    LocalBuilder,
    PyBuilder,
)

create = Builder.create

__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder", "create"]
