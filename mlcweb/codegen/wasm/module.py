"""A WebAssembly module as plain frozen data.

Functions and globals are known by name, also inside instructions; the encoder turns names into
indices. Names therefore are unique within a module.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from mlcweb.codegen.wasm.instructions import Instruction, ValueType
from mlcweb.ir.errors import InternalError

PAGE_BYTES = 65536
"""Memories grow by pages of this size."""

MAXIMUM_PAGES = 65536
"""As many as addresses of 32 bits reach."""


class WasmError(InternalError):
    """A module that is no valid WebAssembly, or bytes that are no module we can read."""


@dataclass(frozen=True, slots=True)
class FunctionType:
    """What a function takes and gives."""

    parameters: tuple[ValueType, ...] = ()
    results: tuple[ValueType, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """The size of a memory in pages. A memory shared between threads needs a `maximum`."""

    minimum: int = 0
    maximum: int | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class GlobalType:
    """The type of a global variable."""

    type: ValueType
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Import:
    """Something from outside, found as `module`.`field`. Inside it is called `name`, except for a
    memory: there is only one, and it needs no name."""

    module: str
    field: str
    what: FunctionType | Memory | GlobalType
    name: str = ""


@dataclass(frozen=True, slots=True)
class Global:
    """A global variable; `initial` is one constant instruction, as `i32.const`."""

    name: str
    type: GlobalType
    initial: Instruction


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its locals after the parameters, and its instructions without the last `end`.

    `local_names` names parameters and locals ("" where one has no name), `label_names` the
    `block`, `loop` and `if` instructions in order; both may be empty. `sources` has a tag for each
    instruction, which says what it was made from; it is kept beside the code, not encoded.
    """

    name: str
    type: FunctionType
    locals: tuple[ValueType, ...]
    body: tuple[Instruction, ...]
    local_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    sources: tuple[Hashable, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Export:
    """Something to be found from outside as `field`. `kind` is "function", "global" or
    "memory", which needs no `name`."""

    field: str
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """A module."""

    functions: tuple[Function, ...] = ()
    imports: tuple[Import, ...] = ()
    memory: Memory | None = None
    globals: tuple[Global, ...] = ()
    exports: tuple[Export, ...] = ()
    name: str = ""

    def function_types(self) -> dict[str, FunctionType]:
        """The types of all functions by name, in the order of their indices: imports first."""
        types = {i.name: i.what for i in self.imports if isinstance(i.what, FunctionType)}
        for function in self.functions:
            if function.name in types:
                raise WasmError(f'Two functions of a module are called "{function.name}"')
            types[function.name] = function.type
        return types

    def global_types(self) -> dict[str, GlobalType]:
        """The types of all globals by name, in the order of their indices: imports first."""
        types = {i.name: i.what for i in self.imports if isinstance(i.what, GlobalType)}
        for variable in self.globals:
            if variable.name in types:
                raise WasmError(f'Two globals of a module are called "{variable.name}"')
            types[variable.name] = variable.type
        return types
