"""TVM's path to features: what cost models know of a scheduled program."""

from mlcweb.meta_schedule.cost_model.feature_extractor import FeatureExtractor, PyFeatureExtractor
from mlcweb.meta_schedule.cost_model.loop_features import NAMES, features

__all__ = ["NAMES", "FeatureExtractor", "PyFeatureExtractor", "features"]
