"""Cost models: which of many programs will be fast."""

from mlcweb.meta_schedule.cost_model.cost_model import KINDS, CostModel, PyCostModel, RandomModel
from mlcweb.meta_schedule.cost_model.learned_model import Ranking, rank, together
from mlcweb.meta_schedule.cost_model.numpy_model import NumPyModel
from mlcweb.meta_schedule.cost_model.numpy_model import XGBModel

KINDS |= {
    "numpy": NumPyModel,
    "mlp": NumPyModel,
    "xgb": XGBModel,
    "random": RandomModel,
}

create = CostModel.create
