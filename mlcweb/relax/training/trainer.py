"""Trainer: a model with its weights, which are updated by batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.training.setup_trainer import ADJOINT, BACKBONE, LOSS, OPTIMIZER
from mlcweb.relax.transform.call_rules import static_shape

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.relax_vm.virtual_machine import VirtualMachine
    from mlcweb.runtime.device import Device
    from mlcweb.runtime.ndarray import NDArray

Array: TypeAlias = "NDArray | np.ndarray"


class Trainer:
    """Runs what `SetupTrainer` made, in a virtual machine, and keeps weights and states.

    Args:
        train_mod: the module that `SetupTrainer` gave.
        vm: a virtual machine of it, built.
        device: where weights and states are.
        zero_init_param_state: begin with zeros.
    """

    BACKBONE_FUNC = BACKBONE
    BACKBONE_LOSS_FUNC = LOSS
    ADJOINT_FUNC = ADJOINT
    OPTIMIZER_FUNC = OPTIMIZER

    def __init__(
        self,
        train_mod: IRModule,
        vm: VirtualMachine,
        device: Device,
        zero_init_param_state: bool = True,
    ) -> None:
        if "optim_state" not in train_mod.attrs:
            raise TVMError("A Trainer runs what SetupTrainer gives")
        self.mod = train_mod.without_attr("optim_state")
        self.vm = vm
        self.device = device
        self._optim_state = tuple(train_mod.attrs["optim_state"])
        inputs, params, states = (
            int(train_mod.attrs[f"{kind}_num"]) for kind in ("input", "param", "state")
        )
        adjoint = train_mod[ADJOINT]
        assert isinstance(adjoint, E.Function)
        self._input_num = inputs
        self._param_vars = adjoint.params[inputs : inputs + params]
        self._state_vars = adjoint.params[inputs + params : inputs + params + states]
        self._params: list[NDArray | None] = [None] * params
        self._states: list[NDArray | None] = [None] * states
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    def _array(self, value: Array) -> NDArray:
        if hasattr(value, "layout"):
            return cast("NDArray", value)
        return provided("mlcweb.relax.frontend.common", "array")(value, self.device)

    def _zeros(self, variables: Sequence[E.Var]) -> list[NDArray | None]:
        import numpy as np

        return [self._array(np.zeros(_shape(v), _info(v).dtype)) for v in variables]

    def xaiver_uniform_init_params(self) -> None:
        """Begin with random weights of Glorot and Bengio: uniform, within the root of 6 over the
        sum of the extents."""
        import numpy as np

        draw = np.random.default_rng()
        self._params = [
            self._array(
                draw.uniform(-1, 1, _shape(var)).astype(_info(var).dtype)
                * np.sqrt(6 / sum(_shape(var))).astype(_info(var).dtype)
            )
            for var in self._param_vars
        ]

    def zero_init_params(self) -> None:
        self._params = self._zeros(self._param_vars)

    def zero_init_states(self) -> None:
        self._states = self._zeros(self._state_vars)

    def load_params(self, params: Sequence[Array] | Mapping[str, Array]) -> None:
        """Set all weights by a list, or some by name."""
        self._load(self._params, self._param_vars, params, "parameter")

    def load_states(self, states: Sequence[Array] | Mapping[str, Array]) -> None:
        """Set all states by a list, or some by name."""
        self._load(self._states, self._state_vars, states, "state")

    def _load(
        self,
        values: list[NDArray | None],
        variables: Sequence[E.Var],
        new: Sequence[Array] | Mapping[str, Array],
        kind: str,
    ) -> None:
        names = [var.name_hint for var in variables]
        if not isinstance(new, Mapping):
            if len(new) != len(names):
                raise ValueError(f"There are {len(names)} {kind}s, not {len(new)}")
            new = dict(zip(names, new, strict=True))
        for name, value in new.items():
            if name not in names:
                raise ValueError(f'There is no {kind} "{name}"; there are {", ".join(names)}')
            values[names.index(name)] = self._array(value)

    def export_params(self) -> dict[str, NDArray | None]:
        """The weights by name."""
        names = (var.name_hint for var in self._param_vars)
        return dict(zip(names, self._params, strict=True))

    def export_states(self) -> dict[str, NDArray | None]:
        """The states by name."""
        names = (var.name_hint for var in self._state_vars)
        return dict(zip(names, self._states, strict=True))

    def _arguments(self, inputs: Sequence[Array], *targets: Array) -> list[NDArray | None]:
        if len(inputs) != self._input_num:
            raise ValueError(f"The model takes {self._input_num} input(s), not {len(inputs)}")
        missing = [
            var.name_hint
            for var, value in zip(
                (*self._param_vars, *self._state_vars),
                (*self._params, *self._states),
                strict=True,
            )
            if value is None
        ]
        if missing:
            raise RuntimeError(f"Without a value: {', '.join(missing)}; call load_params first")
        own = map(self._array, inputs)
        return [*own, *self._params, *self._states, *map(self._array, targets)]

    def predict(self, *input_instances: Array) -> NDArray | tuple[NDArray, ...]:
        """What the model gives, without new states."""
        result = self.vm[BACKBONE](*self._arguments(input_instances))
        if self._state_vars:
            result = result[: -len(self._state_vars)]
            return result[0] if len(result) == 1 else result
        return result

    def update(self, input_instances: Array | list[Array], targets: Array | list[Array]) -> NDArray:
        """One step of the optimizer by a batch; gives the loss before it. Several inputs or targets
        are lists."""
        inputs = input_instances if isinstance(input_instances, list) else [input_instances]
        expected = targets if isinstance(targets, list) else [targets]
        result, gradients = self.vm[ADJOINT](*self._arguments(inputs, *expected))
        if self._state_vars:
            self._states = list(result[1:])
            result = result[0]
        params, state = self.vm[OPTIMIZER](tuple(self._params), gradients, self._optim_state)
        self._params, self._optim_state = list(params), tuple(state)
        return result


def _info(var: E.Var) -> TensorStructInfo:
    assert isinstance(var.struct_info, TensorStructInfo)
    return var.struct_info


def _shape(var: E.Var) -> list[int]:
    return static_shape(var) or []
