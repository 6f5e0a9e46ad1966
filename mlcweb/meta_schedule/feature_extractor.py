"""Makes rows of numbers of scheduled programs, for cost models that learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mlcweb.ir import IRModule
from mlcweb.lower.layout_preproc import remove_layout_copies
from mlcweb.meta_schedule.cost_model import loop_features, store_features
from mlcweb.runtime.ndarray import NDArray, array
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.runtime.vector_unit import VectorUnit, vector_unit

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate
    from mlcweb.meta_schedule.tune_context import TuneContext

MAX_ROWS = 1024
"""Programs whose rows are cached, for when they come again."""


class FeatureExtractor(ABC):
    """Describes candidates by numbers."""

    @abstractmethod
    def extract_from(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[Any]:
        """An array for each candidate: a row of numbers, or several rows, one for each part."""

    @staticmethod
    def create(kind: str, *args: Any, **options: Any) -> FeatureExtractor:
        """An extractor by name: "per-store-feature", as TVM has it, or "per-program-feature"."""
        if kind not in _KINDS:
            raise ValueError(f'Unknown feature extractor "{kind}"; there are {", ".join(_KINDS)}')
        return _KINDS[kind](*args, **options)


PyFeatureExtractor = FeatureExtractor
"""What extractors of a program's own are subclasses of, in TVM."""

Key = TypeVar("Key")
Rows = TypeVar("Rows")


class _OfPrograms(FeatureExtractor, Generic[Key, Rows]):
    """Describes a candidate by its program alone. A search asks about the same programs again and
    again as it learns; their rows are cached."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, Key], Rows] = {}

    @abstractmethod
    def aspect(self, context: TuneContext) -> Key:
        """What of a task the rows depend on."""

    @abstractmethod
    def features(self, module: IRModule, aspect: Key) -> Rows:
        """The rows of a program."""

    def extract_from(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[Rows]:
        aspect = self.aspect(context)
        return [self._row(candidate, aspect) for candidate in candidates]

    def _row(self, candidate: MeasureCandidate, aspect: Key) -> Rows:
        key = candidate.shash, aspect
        rows = self._rows.get(key)
        if rows is None:
            while len(self._rows) >= MAX_ROWS:
                del self._rows[next(iter(self._rows))]
            # Copies of weights that are made ahead of calls take no time.
            module = remove_layout_copies(candidate.sch.mod)
            rows = self._rows[key] = self.features(module, aspect)
        return rows


class PerProgramFeature(_OfPrograms["VectorUnit | None", "np.ndarray"]):
    """One row of numbers for each candidate, a float64 array: for processors those of
    `loop_features`, for a GPU the sum of the rows of `PerStoreFeature`.

    Cost models take these by default: they rank better by them (`benchmarks/tuning/ranking.py`; see
    `NumPyModel`) than by those of `PerStoreFeature`, which takes three times as long: with it a
    search takes 32 ms to propose a convolution, and 23 ms without.
    """

    def aspect(self, context: TuneContext) -> VectorUnit | None:
        target = context.target
        has_threads = target is not None and target.kind.name in DEVICE_KINDS
        return None if has_threads else vector_unit(target)

    def features(self, module: IRModule, aspect: VectorUnit | None) -> np.ndarray:
        import numpy as np

        if aspect is None:
            options = store_features.Options()
            rows = store_features.store_features(module, True, options)
            return np.array([[0.0] * options.length, *rows]).sum(axis=0)
        return loop_features.features(module, aspect)


class PerStoreFeature(_OfPrograms[tuple[bool, tuple[float, ...]], NDArray]):
    """TVM's features: for each candidate a float64 array with a row for each buffer that is stored
    to (see `cost_model.store_features`).

    Args:
        buffers_per_store: how many buffers of a store are described, those first of which most
            cache lines are touched.
        arith_intensity_curve_num_samples: how many points of the arithmetic intensity.
        cache_line_bytes: bytes of a cache line.
        extract_workload: end each row with what kinds of operators the task's program has, as the
            names of its blocks tell.

    Attributes:
        feature_vector_length: how many numbers a row has.
    """

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        super().__init__()
        self.buffers_per_store = buffers_per_store
        self.arith_intensity_curve_num_samples = arith_intensity_curve_num_samples
        self.cache_line_bytes = cache_line_bytes
        self.extract_workload = extract_workload
        self._options = store_features.Options(
            buffers_per_store, arith_intensity_curve_num_samples, cache_line_bytes
        )
        workload = store_features.WORKLOAD if extract_workload else 0
        self.feature_vector_length = self._options.length + workload

    def aspect(self, context: TuneContext) -> tuple[bool, tuple[float, ...]]:
        workload: tuple[float, ...] = ()
        if self.extract_workload:
            if context.mod is None:
                raise ValueError("extract_workload=True needs a TuneContext with a module")
            workload = tuple(store_features.workload_features(context.mod))
        return context.target is not None and "gpu" in context.target.keys, workload

    def features(self, module: IRModule, aspect: tuple[bool, tuple[float, ...]]) -> NDArray:
        import numpy as np

        launches, workload = aspect
        rows = store_features.store_features(module, launches, self._options)
        shape = len(rows), self.feature_vector_length
        return array(np.array([[*row, *workload] for row in rows]).reshape(shape))


class RandomFeatureExtractor(FeatureExtractor):
    """Gives each candidate an array of random numbers, with a random number of rows.

    Args:
        feature_size: numbers in a row.
        max_block_num: rows, at most.
        seed: where the numbers come from.
    """

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int = 0) -> None:
        import numpy as np

        self.feature_size = feature_size
        self.max_block_num = max_block_num
        self._random = np.random.RandomState(seed)

    @property
    def random_state(self) -> Any:
        """The state of the generator, which may be set."""
        return self._random.get_state(legacy=True)

    @random_state.setter
    def random_state(self, state: Any) -> None:
        self._random.set_state(state)

    def extract_from(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        draw, most = self._random, self.max_block_num
        return [array(draw.rand(draw.randint(1, most + 1), self.feature_size)) for _ in candidates]


_KINDS: dict[str, Callable[..., FeatureExtractor]] = {
    "per-store-feature": PerStoreFeature,
    "per-program-feature": PerProgramFeature,
}
