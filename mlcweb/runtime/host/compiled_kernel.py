"""Kernels of targets that compile: WebAssembly and LLVM.

Symbolic sizes become constants: a function is compiled once for each combination of sizes that it
meets. What a target has no form for is left to NumPy.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.codegen.registry import FunctionLookup, find_target
from mlcweb.lower.specialize import size_symbols, specialize
from mlcweb.runtime.arguments import written_parameters
from mlcweb.runtime.build import UnknownFunction
from mlcweb.runtime.direct_call import PointerCall
from mlcweb.runtime.module import in_place
from mlcweb.tir.function import PrimFunc

MAX_VARIANTS = 64
"""Combinations of sizes for which a function caches its code."""

Variant = TypeVar("Variant")

_log = logging.getLogger("mlcweb")


class CompiledKernel(ABC, Generic[Variant]):
    """A `Kernel` with code for each combination of sizes, its variants.

    Its code takes all arrays for distinct, whether the function is declared so or not: calls find
    out before, and those with arrays that share memory go to `run_aliased`, where `distinct` is
    false.
    """

    takes_arrays = True
    call_seconds = None

    def __init__(self, name: str, func: PrimFunc, lookup: FunctionLookup, distinct: bool) -> None:
        self.name = name
        self.function = func
        self.lookup = lookup
        self.distinct = distinct
        self.symbols = size_symbols(func)
        self.variants: dict[tuple[int, ...], Variant] = {}
        self._positions = [
            index for index, param in enumerate(func.params) if param in func.buffer_map
        ]

    @abstractmethod
    def new_variant(self, sizes: tuple[int, ...]) -> Variant:
        """Compile for these values of the symbolic sizes.

        Raises:
            UnsupportedError: the target has no form for something in the function.
        """

    @abstractmethod
    def pointers(self, arguments: tuple[Any, ...]) -> PointerCall | None:
        """How to call the kernel with addresses alone, for arrays of the shapes of these."""

    @abstractmethod
    def run_code(self, *arguments: Any) -> None:
        """Call the code for the sizes of these arrays.

        Raises:
            UnsupportedError: as in `new_variant`, before anything runs.
        """

    def run(self, *arguments: Any) -> None:
        """Call the kernel with arrays and numbers."""
        if not self.symbols or self._has_code(arguments):
            self.run_code(*arguments)
            return
        with in_place(arguments) as views:
            self._in_numpy.run_aliased(*views)

    def _has_code(self, arguments: tuple[Any, ...]) -> bool:
        """Whether there is code for the sizes of these arrays; what forms a function with symbolic
        sizes needs shows only here."""
        if "_in_numpy" in self.__dict__:
            return False
        try:
            self.variant_for(arguments)
        except UnsupportedError as error:
            _log.info('"%s" runs in NumPy: %s', self.name, error.message)
            assert self._in_numpy
            return False
        return True

    @cached_property
    def _in_numpy(self) -> Any:
        return find_target("numpy").build({self.name: self.function}, self.lookup)[self.name]

    @abstractmethod
    def for_shared_arrays(self) -> Self:
        """The same kernel, with code that takes no array for distinct."""

    def specialized(self, sizes: tuple[int, ...]) -> PrimFunc:
        """The function with these values of its symbolic sizes."""
        if not sizes:
            return self.function
        return specialize(self.function, dict(zip(self.symbols, sizes, strict=True)))

    def variant(self, sizes: tuple[int, ...]) -> Variant:
        """The code for these values of the symbolic sizes."""
        variant = self.variants.get(sizes)
        if variant is None:
            variant = self.new_variant(sizes)
            if len(self.variants) >= MAX_VARIANTS:
                self.variants.pop(next(iter(self.variants)))
            self.variants[sizes] = variant
        return variant

    def variant_for(self, arguments: tuple[Any, ...]) -> Variant:
        """The code for the sizes of these arrays."""
        if not self.symbols:
            return self.variant(())
        places = self.symbols.values()
        return self.variant(tuple(arguments[position].shape[axis] for position, axis in places))

    @property
    def pointer_call(self) -> PointerCall | None:
        """How to call the kernel with addresses alone, if its shapes are constant."""
        return None if self.symbols else self.pointers(())

    @cached_property
    def _written(self) -> set[int]:
        return written_parameters(self.function)

    @cached_property
    def _aliased(self) -> Self:
        return self.for_shared_arrays()

    @cached_property
    def run_aliased(self) -> Callable[..., None]:
        """`run` for arrays that share memory."""
        return self._aliased.run


def build_kernels(
    functions: Mapping[str, PrimFunc],
    lookup: FunctionLookup,
    new_kernel: Callable[[str, PrimFunc], CompiledKernel[Any]],
) -> dict[str, Any]:
    """A kernel for each function; NumPy's for those that the target has no form for."""
    kernels: dict[str, Any] = {}
    for name, func in functions.items():
        try:
            kernel = new_kernel(name, func)
            if not kernel.symbols:
                kernel.variant(())
            kernels[name] = kernel
        except UnsupportedError as error:
            _log.info('"%s" runs in NumPy: %s', name, error.message)
            kernels.update(find_target("numpy").build({name: func}, lookup))
    return kernels


def known_by(lookup: FunctionLookup, name: str) -> Any:
    """What a called name means; None while nothing is known by it."""
    try:
        return lookup(name)
    except UnknownFunction:
        return None
