"""Cost models: which of many programs will be fast."""

from mlcweb.meta_schedule.cost_model.cost_model import CostModel, PyCostModel
from mlcweb.meta_schedule.cost_model.metric import Ranking, pairwise_accuracy, rank, together
from mlcweb.meta_schedule.cost_model.numpy_model import NumPyModel
from mlcweb.meta_schedule.cost_model.random_model import RandomModel
from mlcweb.meta_schedule.cost_model.xgb_model import XGBModel

KINDS: dict[str, type[CostModel]] = {
    "numpy": NumPyModel,
    "mlp": NumPyModel,
    "xgb": XGBModel,
    "random": RandomModel,
}
"""The models by the names that `CostModel.create` takes."""

create = CostModel.create
