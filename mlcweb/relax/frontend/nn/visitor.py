"""`nn.Mutator`: goes through the modules of a model and puts others in their places."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.frontend.nn.module import (
    Effect,
    Module,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
)  # fmt: skip
from mlcweb.relax.frontend.nn.tensor import Parameter


class Mutator:
    """Subclasses define `visit_module(name, node)` and the like, which return what stands for a
    part of a model; `visit` goes on inside of it."""

    def visit_module(self, name: str, node: Module) -> object:
        return self.visit(name, node)

    visit_modulelist = visit_moduledict = visit_parameterlist = visit_parameterdict = visit_module

    def visit_effect(self, name: str, node: Effect) -> object:
        return node

    def visit_param(self, name: str, node: Parameter) -> object:
        return node

    def visit(self, name: str, node: object) -> object:
        """The part with what is inside of it visited."""
        if isinstance(node, (ModuleList, ParameterList)):
            for index, item in enumerate(node):
                node[index] = self._visited(f"{name}.{index}" if name else str(index), item)
        elif isinstance(node, (ModuleDict, ParameterDict)):
            for key, item in list(node.items()):
                node[key] = self._visited(f"{name}.{key}" if name else key, item)
        else:
            for key, item in list(node.__dict__.items()):
                setattr(node, key, self._visited(f"{name}.{key}" if name else key, item))
        return node

    def _visited(self, name: str, item: object) -> Any:
        for kind, method in (
            (ModuleList, self.visit_modulelist),
            (ModuleDict, self.visit_moduledict),
            (ParameterList, self.visit_parameterlist),
            (ParameterDict, self.visit_parameterdict),
            (Module, self.visit_module),
            (Effect, self.visit_effect),
            (Parameter, self.visit_param),
        ):
            if isinstance(item, kind):
                return method(name, item)  # type: ignore[operator]
        return item
