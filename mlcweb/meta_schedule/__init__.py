"""Search over schedules: spaces, strategies, cost models, measuring, keeping the best."""

from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.meta_schedule import (
    arg_info,
    builder,
    cost_model,
    database,
    feature_extractor,
    mutator,
    postproc,
    runner,
    schedule_rule,
    search_strategy,
    space_generator,
    task_scheduler,
    tir_integration,
    tune,
)
from mlcweb.meta_schedule.builder import Builder
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor
from mlcweb.meta_schedule.utils import Profiler
from mlcweb.meta_schedule.measure_callback import MeasureCallback
from mlcweb.meta_schedule.mutator import Mutator
from mlcweb.meta_schedule.space.postprocs import Postproc
from mlcweb.meta_schedule.space.rules import ScheduleRule
from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, SearchStrategy
from mlcweb.meta_schedule.space_generator import SpaceGenerator
from mlcweb.meta_schedule.task_scheduler import TaskScheduler
from mlcweb.meta_schedule.tir_integration import compile_tir, tune_tir
from mlcweb.meta_schedule.tune import (
    EvolutionarySearchConfig, ReplayFuncConfig, ReplayTraceConfig, TuneConfig, tune_tasks,
)  # fmt: skip
from mlcweb.meta_schedule.tune_context import TuneContext

# What tunes whole models needs the graph level, which takes time to import.
__getattr__ = lazy_attributes(
    __name__, {"relax_integration": ("compile_relax", "extract_tasks", "tune_relax")}
)
