"""Layers of the stand-in: modules with parameters, computed and traced, not trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from typing import Any

import numpy as np

from mlcweb.stand_ins.torch.functions import flatten, generator, relu, sigmoid, softmax, tanh
from mlcweb.stand_ins.torch.nn import functional
from mlcweb.stand_ins.torch.tensors import Tensor, Traced, array_of, refusing, wrap

__all__ = [
    "Conv2d", "Flatten", "Linear", "MaxPool2d", "Module", "Parameter", "ReLU", "Sequential",
    "Sigmoid", "Softmax", "Tanh", "functional",
]  # fmt: skip


__getattr__ = refusing("torch.nn")


class Parameter(Tensor):
    """A tensor that is a weight of the module whose attribute it is."""

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        self._array = array_of(data)
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Module:
    """A part of a model; subclasses define `forward`."""

    training = True

    forward: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for value in args:
            # Layers of the library are one step of a graph, modules of programs are looked into.
            if isinstance(value, Traced) and type(self).__module__ == Linear.__module__:
                if not isinstance(self, Sequential):
                    return value.record(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # Parts

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return ((n, part) for n, part in vars(self).items() if isinstance(part, Module))

    def children(self) -> Iterator[Module]:
        return (part for _, part in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, part in self.named_children():
            yield from part.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        for prefix, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Parameter):
                    yield f"{prefix}.{name}" if prefix else name, value

    def parameters(self) -> Iterator[Parameter]:
        return (parameter for _, parameter in self.named_parameters())

    def state_dict(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Any]) -> str:
        """Copy values into the parameters; the names must be the same."""
        own = dict(self.named_parameters())
        if different := own.keys() ^ state.keys():
            raise RuntimeError(f"Missing or unexpected key(s) in state_dict: {sorted(different)}")
        for name, parameter in own.items():
            if parameter.shape != np.shape(state[name]):
                raise RuntimeError(f"size mismatch for {name}")
            parameter.numpy()[...] = array_of(state[name])
        return "<All keys matched successfully>"

    # What changes nothing here but a mark

    def train(self, mode: bool = True) -> Module:
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        return self.train(False)

    def to(self, target: Any) -> Module:
        for parameter in self.parameters():
            parameter.data = parameter.to(target)
        return self

    def cpu(self) -> Module:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "forward":
            raise NotImplementedError(f'{type(self).__name__} is missing its "forward" function')
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}' in this stand-in for PyTorch"
        )

    # Printing

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        parts = [f"  ({name}): {part!r}" for name, part in self.named_children()]
        lines = "\n".join(parts).replace("\n", "\n  ").replace("\n    (", "\n  (")
        inside = f"\n{lines}\n" if parts else self.extra_repr()
        return f"{type(self).__name__}({inside})"


class Sequential(Module):
    """Modules one after the other, which are its attributes "0", "1", …"""

    def __init__(self, *modules: Module) -> None:
        for number, module in enumerate(modules):
            setattr(self, str(number), module)

    def forward(self, x: Any) -> Any:
        for module in self.children():
            x = module(x)
        return x

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]

    def __len__(self) -> int:
        return len(list(self.children()))


def _weights(fan_in: int, *shape: int) -> Parameter:
    """Random weights in the range that PyTorch draws them from."""
    bound = 1 / sqrt(fan_in)
    return Parameter(wrap(generator().uniform(-bound, bound, shape).astype(np.float32)))


class Linear(Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = _weights(in_features, out_features, in_features)
        self.bias = _weights(in_features, out_features) if bias else None

    def forward(self, x: Any) -> Any:
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Conv2d(Module):
    padding_mode = "zeros"

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = functional.pair(kernel_size), functional.pair(stride)
        self.padding = padding if isinstance(padding, str) else functional.pair(padding)
        self.dilation = functional.pair(dilation)
        fan_in = in_channels // groups * self.kernel_size[0] * self.kernel_size[1]
        self.weight = _weights(fan_in, out_channels, in_channels // groups, *self.kernel_size)
        self.bias = _weights(fan_in, out_channels) if bias else None

    def forward(self, x: Any) -> Any:
        return functional.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )


class MaxPool2d(Module):
    dilation, ceil_mode, return_indices = 1, False, False

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride

    def forward(self, x: Any) -> Any:
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            "dilation=1, ceil_mode=False"
        )


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Any:
        return flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Softmax(Module):
    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class ReLU(Module):
    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, x: Any) -> Any:
        return relu(x)


class Sigmoid(Module):
    def forward(self, x: Any) -> Any:
        return sigmoid(x)


class Tanh(Module):
    def forward(self, x: Any) -> Any:
        return tanh(x)
