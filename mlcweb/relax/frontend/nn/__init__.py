"""Models as classes: `nn.Module`, written as in PyTorch, and traced into a module of Relax.

    class MLP(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(784, 10)

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return nn.op.softmax(self.fc(x))

    mod, params = MLP().export_tvm({"forward": {"x": nn.spec.Tensor((1, 784), "float32")}})

- tensor.py: tensors that stand for expressions, and parameters; op.py: functions of them.
- module.py: modules and lists of them; layers.py: the usual ones; subroutine.py: those that are
  functions of their own.
- effects.py: state that methods take and give back; kv_cache.py: that of attention.
- spec.py: what the methods of a model take; exporter.py traces the methods.
"""

from typing import Any

from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.relax.frontend.nn import op, spec
from mlcweb.relax.frontend.nn.effects import Effect, IOEffect
from mlcweb.relax.frontend.nn.kv_cache import KVCache
from mlcweb.relax.frontend.nn.layers import (
    GELU, Attention, Conv1D, Conv2D, Conv3D, ConvTranspose1D, Embedding, GroupNorm, Identity,
    LayerNorm, Linear, ReLU, RMSNorm, SiLU, TimestepEmbedding, Timesteps,
)  # fmt: skip
from mlcweb.relax.frontend.nn.module import (
    Module, ModuleDict, ModuleList, ParameterDict, ParameterList,
)  # fmt: skip
from mlcweb.relax.frontend.nn.op import *  # noqa: F403
from mlcweb.relax.frontend.nn.subroutine import SubroutineMixin
from mlcweb.relax.frontend.nn.tensor import (
    Object, Parameter, Tensor, get_default_dtype, set_default_dtype, wrap_nested,
)  # fmt: skip
from mlcweb.relax.frontend.nn.visitor import Mutator


_packages = lazy_attributes(__name__)


def __getattr__(name: str) -> Any:
    try:
        return _packages(name)
    except AttributeError:
        return getattr(op, name)  # says of what is not here what there is instead
