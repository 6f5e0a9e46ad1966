"""Compiling for many small models whose kernels are mostly equal to one before."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from unittest import mock

from mlcweb.ir import structural_hash


@contextmanager
def equal_kernels_compiled_once(target: ModuleType) -> Iterator[None]:
    """While active, what a target compiles is kept, unless it calls Python."""
    compile_functions, compiled = target.compile_functions, {}

    def compile_once(functions, *others, **options):
        settings = [
            each for each in (*others, *options.values()) if not isinstance(each, partial)
        ]  # without the lookup of what is called
        hashes = [(name, structural_hash(func)) for name, func in functions.items()]
        key = (*hashes, *settings)
        if key not in compiled:
            module = compile_functions(functions, *others, **options)
            if module.python_calls:
                return module
            compiled[key] = module
        return compiled[key]

    with mock.patch.object(target, "compile_functions", compile_once):
        yield
