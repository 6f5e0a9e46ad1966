"""Graphs of models: `symbolic_trace` runs a module once with a `Proxy`, which records the calls."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

from mlcweb.stand_ins.torch.nn import Module, Parameter
from mlcweb.stand_ins.torch.tensors import Traced, refusal, refusing

__all__ = ["Graph", "GraphModule", "Node", "Proxy", "symbolic_trace"]


__getattr__ = refusing("torch.fx")


class Node:
    """A step of a graph; `op` says what `target` is."""

    def __init__(self, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        self.name, self.op, self.target = name, op, target
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        return self.name


class Graph:
    """The nodes in the order in which they run."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def create_node(
        self, op: str, target: Any, args: Any = (), kwargs: Any = None, name: str = ""
    ) -> Node:
        """Add a node, with a name that is its own."""
        base = (name or getattr(target, "__name__", str(target))).replace(".", "_").strip("_")
        names, unique, number = {node.name for node in self.nodes}, base, 0
        while unique in names:
            number += 1
            unique = f"{base}_{number}"
        node = Node(unique, op, target, tuple(args), dict(kwargs or {}))
        self.nodes.append(node)
        return node

    def print_tabular(self) -> None:
        """Print one line for each node."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs")]
        rows += [
            (node.op, node.name, _shown(node.target), repr(node.args), repr(node.kwargs))
            for node in self.nodes
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())

    def __str__(self) -> str:
        lines = [
            f"    %{node.name} : {node.op}[target={_shown(node.target)}](args = {node.args}, "
            f"kwargs = {node.kwargs})"
            for node in self.nodes
        ]
        return "graph():\n" + "\n".join(lines)


def _shown(target: Any) -> str:
    return target if isinstance(target, str) else f"<function {target.__name__}>"


class Proxy(Traced):
    """A value that is not there yet: what a node gives."""

    def __init__(self, node: Node, tracer: Tracer) -> None:
        self.node, self.tracer = node, tracer

    def record(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Proxy:
        if isinstance(function, Module):
            return self.tracer.call("call_module", self.tracer.path(function), args, kwargs)
        return self.tracer.call("call_function", function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Attribute(self, name)

    def __getitem__(self, index: Any) -> Proxy:
        return self.record(operator.getitem, (self, index), {})

    def __bool__(self) -> bool:
        raise TypeError("symbolically traced variables cannot be used as inputs to control flow")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Proxy object cannot be iterated")


class _Attribute(Proxy):
    """An attribute of a proxy: a method that may be called, or a value such as a shape."""

    def __init__(self, owner: Proxy, name: str) -> None:
        self.owner, self.name, self.tracer = owner, name, owner.tracer

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.call("call_method", self.name, (self.owner, *args), kwargs)

    @property
    def node(self) -> Node:
        value = vars(self).get("value")
        if value is None:
            value = self.value = self.owner.record(getattr, (self.owner, self.name), {})
        return value.node


def _binary(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Proxy, Any], Proxy]:
    def operate(self: Proxy, other: Any) -> Proxy:
        return self.record(function, (other, self) if swapped else (self, other), {})

    return operate


for _name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
    setattr(Proxy, f"__{_name}__", _binary(getattr(operator, _name), False))
    setattr(Proxy, f"__r{_name}__", _binary(getattr(operator, _name), True))


class Tracer:
    """Makes the graph of one module."""

    def __init__(self, root: Module) -> None:
        self.root, self.graph = root, Graph()
        self.constants: dict[int, Node] = {}

    def path(self, module: Module) -> str:
        for name, part in self.root.named_modules():
            if part is module:
                return name
        raise NameError("module is not installed as a submodule")

    def call(self, op: str, target: Any, args: Any, kwargs: Any) -> Proxy:
        args, kwargs = self.nodes_of(tuple(args)), self.nodes_of(dict(kwargs))
        return Proxy(self.graph.create_node(op, target, args, kwargs), self)

    def nodes_of(self, value: Any) -> Any:
        """Arguments with proxies and parameters replaced by nodes."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.nodes_of(each) for each in value)
        if isinstance(value, dict):
            return {key: self.nodes_of(each) for key, each in value.items()}
        if isinstance(value, Proxy):
            return value.node
        if isinstance(value, Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is value:
                    return self.graph.create_node("get_attr", name)
            raise NameError("parameter is not part of the module")
        return value


class GraphModule(Module):
    """A module that runs a graph with the parts of another module."""

    def __init__(self, root: Module, graph: Graph) -> None:
        vars(self).update(vars(root))
        self.graph = graph

    def forward(self, *args: Any) -> Any:
        values: dict[Node, Any] = {}
        inputs = iter(args)
        for node in self.graph.nodes:
            arguments = _values(node.args, values)
            if node.op == "output":
                return arguments[0]
            if node.op == "placeholder":
                values[node] = next(inputs)
            elif node.op == "get_attr":
                values[node] = operator.attrgetter(node.target)(self)
            else:
                call = node.target
                if node.op == "call_module":
                    call = dict(self.named_modules())[node.target]
                elif node.op == "call_method":
                    call = getattr(arguments[0], node.target)
                    arguments = arguments[1:]
                values[node] = call(*arguments, **_values(node.kwargs, values))
        raise RuntimeError("the graph has no output")


def _values(value: Any, values: dict[Node, Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_values(each, values) for each in value)
    if isinstance(value, dict):
        return {key: _values(each, values) for key, each in value.items()}
    return values[value] if isinstance(value, Node) else value


def symbolic_trace(root: Module) -> GraphModule:
    """The graph of a module: its layers, functions and methods, called with its inputs."""
    if not isinstance(root, Module):
        raise refusal(f"torch.fx.symbolic_trace of a {type(root).__name__}")
    tracer = Tracer(root)
    inputs = [
        Proxy(tracer.graph.create_node("placeholder", name), tracer)
        for name in inspect.signature(root.forward).parameters
    ]
    result = tracer.nodes_of(root.forward(*inputs))
    tracer.graph.create_node("output", "output", (result,))
    return GraphModule(root, tracer.graph)
