"""Features: what cost models know of a scheduled program."""

from mlcweb.meta_schedule.feature_extractor.loop_feature import (
    NAMES,
    FeatureExtractor,
    PyFeatureExtractor,
    features,
)
