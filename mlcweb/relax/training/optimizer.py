"""Optimizers: each makes a function that gives new parameters, and its own new state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from mlcweb.runtime.ndarray import NDArray


from collections.abc import Callable, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.struct_info import TensorStructInfo, TupleStructInfo
from mlcweb.relax.training.builders import emitted
from mlcweb.relax.transform.call_rules import static_shape

Number = Callable[[float], E.Constant]
"""A constant of the parameters' element type."""


class Optimizer:
    """Base. `init(params)` says what is to be optimized; then `state` is the state at first, and
    `get_function()` the function of parameters, gradients and state, each a tuple."""

    moments: tuple[str, ...] = ()
    """What is kept for each parameter, such as its velocity, by the end of its name."""
    products: tuple[str, ...] = ()
    """What is kept besides the number of steps."""

    def __init__(self, lr: float, weight_decay: float = 0) -> None:
        self.name = type(self).__name__
        self.lr = float(lr)
        self.weight_decay = float(weight_decay)
        self.param_list: list[E.Var] = []
        self.dtype = ""

    def init(self, params: E.Var | Sequence[E.Var]) -> Self:
        """Set the parameters, which are float tensors of known shapes and one element type."""
        listed = list(params) if isinstance(params, Sequence) else [params]
        if not all(isinstance(param, E.Var) for param in listed):
            raise ValueError(f"Parameters are variables, not {', '.join(map(str, listed))}")
        infos = [param.struct_info for param in listed]
        types = {getattr(info, "dtype", None) for info in infos}
        if not listed or len(types) != 1 or "float" not in str(next(iter(types))):
            raise ValueError("Parameters are tensors of one float type, at least one")
        names = [param.name_hint for param in listed]
        if len(set(names)) < len(names):
            raise ValueError(f"Parameters have different names, not {', '.join(names)}")
        self.param_list, self.dtype = listed, str(next(iter(types)))
        return self

    @property
    def state(self) -> tuple[NDArray, ...] | None:
        """The number of steps, products, and moments of all parameters, at first; None before
        `init`."""
        if not self.param_list:
            return None
        import numpy as np

        shapes = [static_shape(param) or [] for param in self.param_list]
        values = [np.zeros((), "int64"), *(np.ones((), self.dtype) for _ in self.products)]
        values += [np.zeros(shape, self.dtype) for _ in self.moments for shape in shapes]
        return tuple(map(provided("mlcweb.relax.frontend.common", "array"), values))

    def get_function(self) -> E.Function:
        if not self.param_list:
            raise DiagnosticError(f"{self.name} has no parameters yet: call init(params) first")
        infos = [param.struct_info for param in self.param_list]
        scalar = TensorStructInfo((), self.dtype)
        kept = [TensorStructInfo((), "int64"), *(scalar for _ in self.products)]
        kept += infos * len(self.moments)
        params, grads = (E.Var(n, TupleStructInfo(infos)) for n in ("params", "gradients"))
        states = E.Var("optim_states", TupleStructInfo(kept))
        builder = BlockBuilder()
        with builder.function(self.name, [params, grads, states]):
            with builder.dataflow():
                steps = emitted(E.TupleGetItem(states, 0), "num_steps")
                after = [emitted(steps + E.const(1, "int64"), "num_steps_new")]
                after += self.new_products(states)
                results, moments = self.new_values(params, grads, states, after)
                new = builder.emit_output(E.Tuple(results), "params_new")
                state = builder.emit_output(E.Tuple([*after, *moments]), "optim_states_new")
            var = builder.emit_func_output(E.Tuple([new, state]))
        func = builder.get()[var]
        assert isinstance(func, E.Function)
        return func

    def new_values(
        self, params: E.Var, grads: E.Var, states: E.Var, after: list[E.Var]
    ) -> tuple[list[E.Var], list[E.Var]]:
        """The new parameters, and the new moments kind by kind."""
        count, first = len(self.param_list), 1 + len(self.products)
        results: list[E.Var] = []
        moments: list[list[E.Var]] = []
        for i, param in enumerate(self.param_list):
            name = param.name_hint
            value = emitted(E.TupleGetItem(params, i), name)
            grad = emitted(E.TupleGetItem(grads, i), f"{name}_grad")
            own = [
                emitted(E.TupleGetItem(states, first + kind * count + i), f"{name}_{moment}")
                for kind, moment in enumerate(self.moments)
            ]
            if self.weight_decay:
                decayed = self.number(self.weight_decay) * value + grad
                grad = emitted(decayed, f"{name}_grad_new")
            step, new = self.step(name, grad, own, after)
            moments.append(new)
            results.append(emitted(value - step, f"{name}_new"))
        return results, [new[kind] for kind in range(len(self.moments)) for new in moments]

    def number(self, value: float) -> E.Constant:
        return E.const(value, self.dtype)

    def new_products(self, states: E.Var) -> list[E.Var]:
        return []

    def step(
        self, name: str, grad: E.Var, moments: list[E.Var], after: list[E.Var]
    ) -> tuple[E.Expr, list[E.Var]]:
        """What to subtract from a parameter, and its new moments."""
        raise NotImplementedError


class SGD(Optimizer):
    """p - lr · gradient; with `weight_decay`, that of the gradient and `weight_decay` · p."""

    def step(
        self, name: str, grad: E.Var, moments: list[E.Var], after: list[E.Var]
    ) -> tuple[E.Expr, list[E.Var]]:
        return self.number(self.lr) * grad, []


class MomentumSGD(Optimizer):
    """SGD by a velocity: v = momentum · v + (1 - dampening) · gradient, p - lr · v; with
    `nesterov`, p - lr · (gradient + momentum · v)."""

    moments = ("v",)

    def __init__(
        self,
        lr: float,
        momentum: float,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(lr, weight_decay)
        self.momentum = float(momentum)
        self.dampening = float(dampening)
        self.nesterov = nesterov

    def step(
        self, name: str, grad: E.Var, moments: list[E.Var], after: list[E.Var]
    ) -> tuple[E.Expr, list[E.Var]]:
        momentum = self.number(self.momentum)
        damped: E.Expr = grad
        if self.dampening:
            damped = self.number(1 - self.dampening) * grad
        velocity = emitted(momentum * moments[0] + damped, f"{name}_v_new")
        if self.nesterov:
            ahead = grad + momentum * velocity
            return self.number(self.lr) * emitted(ahead, f"{name}_g_nest"), [velocity]
        return self.number(self.lr) * velocity, [velocity]


class Adam(Optimizer):
    """Steps by the mean of gradients over the root of the mean of their squares, both fading by
    `betas` and freed of the bias of the first steps."""

    moments = ("m", "v")
    products = ("beta1_prod", "beta2_prod")

    def __init__(
        self,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(lr, weight_decay)
        self.beta1, self.beta2 = map(float, betas)
        self.eps = float(eps)

    def new_products(self, states: E.Var) -> list[E.Var]:
        betas = (self.beta1, self.beta2)
        return [
            emitted(E.TupleGetItem(states, i + 1) * self.number(beta), name)
            for i, (beta, name) in enumerate(zip(betas, self.products, strict=True))
        ]

    def step(
        self, name: str, grad: E.Var, moments: list[E.Var], after: list[E.Var]
    ) -> tuple[E.Expr, list[E.Var]]:
        def faded(old: E.Var, beta: float, new: E.Expr) -> E.Expr:
            # The difference as it is in decimal digits: 1 - 0.9 is 0.1.
            rest = self.number(round(1 - beta, 15))
            return self.number(beta) * old + rest * new

        def unbiased(mean: E.Var, product: E.Var) -> E.Expr:
            return mean / (self.number(1) - product)

        mean = emitted(faded(moments[0], self.beta1, grad), f"{name}_m_new")
        square = emitted(faded(moments[1], self.beta2, grad * grad), f"{name}_v_new")
        mean_hat = emitted(unbiased(mean, after[1]), f"{name}_m_hat")
        square_hat = emitted(unbiased(square, after[2]), f"{name}_v_hat")
        root = op.sqrt(square_hat) + self.number(self.eps)
        return self.number(self.lr) * (mean_hat / root), [mean, square]
