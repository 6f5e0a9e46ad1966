"""SetupTrainer: all that training needs of a model, in one module."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass, PassContext, PassInfo
from mlcweb.relax import expr as E
from mlcweb.relax.struct_info import StructInfo
from mlcweb.relax.training.loss import Loss
from mlcweb.relax.training.optimizer import Optimizer
from mlcweb.relax.training.utils import AppendLoss
from mlcweb.relax.transform.gradient import Gradient
from mlcweb.relax.transform.legalize_ops import LegalizeOps

BACKBONE, LOSS, ADJOINT = "backbone", "backbone_loss", "backbone_loss_adjoint"
OPTIMIZER = "optimizer"


class SetupTrainer(Pass):
    """Adds to the function "backbone" the functions "backbone_loss", "backbone_loss_adjoint" and
    "optimizer".

    The module says by the attribute "param_num" how many parameters of "backbone" are weights, and
    by "state_num" how many after them are states, whose new values it gives as last results.

    Args:
        loss, optimizer: of `relax.training.loss` and `.optimizer`.
        loss_args: the struct infos of what the loss takes: results of the model, and targets.
        legalize: lower operators to functions of TensorIR.
    """

    def __init__(
        self,
        loss: Loss,
        optimizer: Optimizer,
        loss_args: Sequence[StructInfo],
        legalize: bool = True,
    ) -> None:
        self.loss = loss
        self.optimizer = optimizer
        self.loss_args = loss_args
        self.legalize = legalize
        self.info = PassInfo(0, "SetupTrainer")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        backbone = mod[mod.get_global_var(BACKBONE)]
        for attr in ("param_num", "state_num"):
            if attr not in mod.attrs:
                raise DiagnosticError(
                    f'SetupTrainer: the module does not say its "{attr}": '
                    'I.module_attrs({"param_num": 1, "state_num": 0})'
                )
        params, states = int(mod.attrs["param_num"]), int(mod.attrs["state_num"])
        assert isinstance(backbone, E.Function)
        inputs = len(backbone.params) - params - states
        loss = self.loss(*self.loss_args)
        mod = AppendLoss(BACKBONE, loss, self.loss.num_backbone_outputs)(mod)
        whole = mod[LOSS]
        assert isinstance(whole, E.Function)
        weights = whole.params[inputs : inputs + params]
        mod = Gradient(LOSS, weights)(mod)
        optimizer = self.optimizer.init(list(weights))
        mod[OPTIMIZER] = optimizer.get_function().with_attr("global_symbol", OPTIMIZER)
        attrs = {**mod.attrs, "input_num": inputs, "optim_state": list(optimizer.state or ())}
        mod = IRModule(mod.functions, attrs)
        return LegalizeOps()(mod) if self.legalize else mod
