"""`nn.Module`: a model, or a part of one, with its parameters; lists and dictionaries of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mlcweb.ir.dialect import also_named
from mlcweb.ir.module import IRModule
from mlcweb.relax.frontend.nn.effects import Effect
from mlcweb.relax.frontend.nn.subroutine import SubroutineMixin
from mlcweb.relax.frontend.nn.tensor import Parameter, Tensor

if TYPE_CHECKING:
    from mlcweb.relax.constant_data import ArrayLike
    from mlcweb.relax.frontend.nn.compiled import Compiled
    from mlcweb.runtime.device import Device

Item = TypeVar("Item")
Value = TypeVar("Value")


class Module(SubroutineMixin):
    """A model, or a part of one. Parameters and modules among its attributes are its own;
    `forward`, and other methods, compute with tensors."""

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names, as `fc1.weight`, in the order of the attributes."""
        yield from named(self, prefix, Parameter)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        return (param for _, param in self.named_parameters())

    def named_effects(self, prefix: str = "") -> Iterator[tuple[str, Effect]]:
        """What methods take and give back besides, with names."""
        yield from named(self, prefix, Effect)

    def state_dict(
        self, *, prefix: str = "", destination: dict[str, Parameter] | None = None
    ) -> dict[str, Parameter]:
        """The parameters by name."""
        parameters = {} if destination is None else destination
        parameters.update(self.named_parameters(prefix))
        return parameters

    def load_state_dict(
        self, state_dict: Mapping[str, Parameter | ArrayLike], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Give parameters the values of others (or arrays) of the same names.

        Returns the names that were missing, and those that are not known.

        Raises: KeyError: for either, unless `strict` is False.
        """
        own = self.state_dict()
        for name in own:
            if name in state_dict:
                source = state_dict[name]
                if isinstance(source, Parameter):
                    if source.data is None:
                        raise ValueError(f"Parameter {name} is not set to any concrete tensor")
                    source = source.data
                own[name].data = source
        missing = [name for name in own if name not in state_dict]
        unknown = [name for name in state_dict if name not in own]
        if strict and (missing or unknown):
            raise KeyError(f"Missing keys: {missing}, Unexpected keys: {unknown}")
        return missing, unknown

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if not hasattr(self, "forward"):
            raise NotImplementedError(f"{type(self).__name__} does not define `forward`")
        return self.forward(*args, **kwargs)

    def to(self, dtype: str | None = None) -> None:
        """Change the element type of all parameters."""
        for value in self._parts():
            change = getattr(value, "to", None)
            if change is not None:
                change(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def _parts(self) -> Sequence[object]:
        return list(self.__dict__.values())

    def export_tvm(self, spec: object, debug: bool = False, allow_extern: bool = False) -> Any:
        """Trace methods into a module of Relax.

        Args:
            spec: by method, what it takes: `{"forward": {"x": nn.spec.Tensor((1, 8), "float32")}}`.
            debug: let methods print, and call registered functions.
            allow_extern: return external modules as well, of which there are none here.

        Returns the module, and the parameters with their names in the order in which each method
        takes them after its inputs.
        """
        from mlcweb.relax.frontend.nn.exporter import export
        from mlcweb.relax.frontend.nn.spec import ModuleSpec

        mod, params = export(ModuleSpec.from_raw(spec, self), debug)
        return (mod, params, []) if allow_extern else (mod, params)

    def jit(
        self,
        spec: object,
        device: Device | str = "cpu",
        pipeline: object = "default_build",
        out_format: str = "torch",
        debug: bool = False,
    ) -> Compiled:
        """The model compiled, with the values of its parameters: `model["forward"](x)`, of arrays.

        `out_format`: "numpy" or "torch", what the methods give. `debug`: let `nn.op.print_` print.

        Raises: ValueError: a parameter has no value.
        """
        from mlcweb.relax.frontend.nn.compiled import compiled

        return compiled(self, spec, device, out_format, debug)


def named(root: object, prefix: str, kind: type[Value]) -> Iterator[tuple[str, Value]]:
    """What is of a kind inside of a module, by its name."""
    if isinstance(root, (ModuleList, ParameterList)):
        items: Iterable[tuple[str, object]] = ((str(i), each) for i, each in enumerate(root))
    elif isinstance(root, (ModuleDict, ParameterDict)):
        items = root.items()
    else:
        items = root.__dict__.items()
    for name, item in items:
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(item, kind):
            yield path, item
        elif isinstance(item, (Module, list, tuple, dict)) and not isinstance(item, kind):
            if isinstance(item, (list, tuple)):
                item = ModuleList(list(item)) if _all_parts(item) else None
            elif isinstance(item, dict):
                item = ModuleDict(item) if _all_parts(item.values()) else None
            if item is not None:
                yield from named(item, path, kind)


def _all_parts(items: Iterable[object]) -> bool:
    listed = list(items)
    return bool(listed) and all(isinstance(each, (Module, Parameter, Effect)) for each in listed)


class _List(Module, Generic[Item]):
    """Modules or parameters in order, known by their positions."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = list(items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Item:
        return self.items[index]

    def __setitem__(self, index: int, item: Item) -> None:
        self.items[index] = item

    def __len__(self) -> int:
        return len(self.items)

    @also_named(module="item", param="item")
    def append(self, item: Item) -> None:
        self.items.append(item)

    @also_named(modules="items", params="items")
    def extend(self, items: Iterable[Item]) -> None:
        self.items.extend(items)

    def _parts(self) -> list[Item]:
        return self.items


class ModuleList(_List[Module]):
    """Modules in order. Called, each takes what the one before it gives."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__(modules)

    @property
    def modules(self) -> list[Module]:
        return self.items

    def forward(self, x: Tensor) -> Tensor:
        for module in self.items:
            x = module(x)
        return x


class ParameterList(_List[Parameter]):
    """Parameters in order."""

    def __init__(self, params: Iterable[Parameter] | None = None) -> None:
        super().__init__(params or ())


class _Dict(Module, MutableMapping[str, Item]):
    """Modules or parameters by name, known by its identity as all modules are."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, items: Mapping[str, Item] | None) -> None:
        self._items: dict[str, Item] = dict(items or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __getitem__(self, key: str) -> Item:
        return self._items[key]

    def __setitem__(self, key: str, item: Item) -> None:
        self._items[key] = item

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __len__(self) -> int:
        return len(self._items)

    @also_named(modules="items", params="items")
    def update(self, items: Mapping[str, Item]) -> None:  # type: ignore[override]
        self._items.update(items)

    def _parts(self) -> list[Item]:
        return list(self._items.values())


class ModuleDict(_Dict[Module]):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__(modules)


class ParameterDict(_Dict[Parameter]):
    """Parameters by name."""

    def __init__(self, params: Mapping[str, Parameter] | None = None) -> None:
        super().__init__(params)


Traced = tuple[IRModule, list[tuple[str, Parameter]]]
