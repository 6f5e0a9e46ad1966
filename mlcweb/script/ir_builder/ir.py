"""`tvm.script.ir_builder.ir`: modules built call by call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.script.ir_builder.base import BuilderError, Frame, IRBuilder


def ir_module() -> Frame:
    """A module: the functions that are built inside."""

    @contextmanager
    def build() -> Iterator[IRModule]:
        builder = IRBuilder.current()
        builder.module = module = IRModule()
        try:
            yield module
        finally:
            builder.module = None
        builder.add(module)

    return Frame("I.ir_module()", build)


def _module(call: str) -> tuple[IRBuilder, IRModule]:
    builder = IRBuilder.current()
    if builder.module is None:
        raise BuilderError(f"{call} belongs inside `with I.ir_module():`")
    return builder, builder.module


def decl_function(func_name: str, func_signature: BaseFunc) -> GlobalVar:
    """The name of a function that is defined later; what is given says its type."""
    return _module("I.decl_function")[0].global_var(func_name, func_signature)


def def_function(func_name: str, func: BaseFunc) -> None:
    """Define a function of the module."""
    _module("I.def_function")[0].global_var(func_name, func)


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """Attributes of the module."""
    for key, value in attrs.items():
        module_set_attr(key, value, allow_overwrite)


def module_get_attr(attr_key: str) -> Any:
    """An attribute of the module, None where it has none."""
    return _module("I.module_get_attr")[1].attrs.get(attr_key)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """An attribute of the module."""
    attrs = _module("I.module_set_attr")[1].attrs
    if attr_key in attrs and not allow_overwrite:
        raise BuilderError(f'The module has the attribute "{attr_key}" already')
    attrs[attr_key] = attr_value
