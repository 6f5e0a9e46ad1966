"""TVM's path to what builds the programs of a search."""

from mlcweb.meta_schedule.measure.local_runner import LocalBuilder
from mlcweb.meta_schedule.measure.user_runner import (
    Builder,
    BuilderInput,
    BuilderResult,
    PyBuilder,
)

create = Builder.create

__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder", "create"]
