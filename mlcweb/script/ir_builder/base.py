"""The builder that calls of `tvm.script.ir_builder.tir`, `.ir` and `.relax` add to.

with IRBuilder() as ib:
    with T.prim_func():
        T.func_name("double")
        A = T.arg("A", T.Buffer((8,), "float32"))
        with T.serial(0, 8) as i:
            T.buffer_store(A, A[i] * 2, [i])
ib.get()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.script.ir_builder.naming import rename

_open: ContextVar[tuple[IRBuilder, ...]] = ContextVar("ir_builder", default=())


class BuilderError(TVMError, ValueError):
    """A call of a builder at the wrong place."""


class IRBuilder:
    """Collects what is built inside of `with IRBuilder() as ib:`; `ib.get()` gives it."""

    def __init__(self, *functions: Any) -> None:
        self.module: IRModule | None = None
        self.functions = list(functions)
        """The functions that are being built, the innermost last."""
        self.at_end = ExitStack()
        """What is left when the builder is."""
        self.open_frames = 0
        """How many of what `with` opens are open."""
        self._results: list[Any] = []

    def __enter__(self) -> IRBuilder:
        _open.set((*_open.get(), self))
        return self

    def __exit__(self, *exception: Any) -> None:
        self.at_end.__exit__(*exception)
        _open.set(_open.get()[:-1])

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is open."""
        return bool(_open.get())

    @staticmethod
    def current() -> IRBuilder:
        """The innermost open builder.

        Raises:
            ValueError: there is none.
        """
        if not _open.get():
            raise BuilderError("No builder is open: write `with IRBuilder() as ib:` around this")
        return _open.get()[-1]

    def get(self) -> Any:
        """What was built: a function, a module, or a statement. Statements of no function are
        complete here, so that it may be asked before the builder is left."""
        if not self._results and not self.open_frames:
            self.at_end.close()
        if not self._results:
            raise BuilderError(
                "Nothing was built: `with T.prim_func():` and statements make results, once the "
                "outermost `with T.…:` has been left"
            )
        return self._results[-1]

    @staticmethod
    def name(s: str, v: Any) -> Any:
        """Give what was just built a name, and return it."""
        return rename(v, s)

    @staticmethod
    def name_many(s: Sequence[str], vs: Sequence[Any]) -> list[Any]:
        """`name` for each of several."""
        if len(s) != len(vs):
            raise BuilderError(f"{len(s)} names for {len(vs)} values")
        return [IRBuilder.name(name, value) for name, value in zip(s, vs, strict=True)]

    def add(self, result: Any, name: str | None = None) -> None:
        """Take a finished function, statement or module."""
        if self.module is None or name is None:
            self._results.append(result)
        else:
            self.module.update_func(self.global_var(name), result)

    def global_var(self, name: str, func: BaseFunc | None = None) -> GlobalVar:
        """The name of a function of the module, which is declared with it."""
        assert self.module is not None
        var = next((v for v in self.module.functions if v.name_hint == name), GlobalVar(name))
        if func is not None:
            self.module.update_func(var, func)
        return var


@contextmanager
def no_builder() -> Iterator[None]:
    """No builder is open inside, where the text of a script says itself what it builds."""
    token = _open.set(())
    try:
        yield
    finally:
        _open.reset(token)


def innermost(kind: type, call: str, where: str) -> Any:
    """The function of a kind that is being built; `call` asks for it, which belongs inside of
    `where`."""
    functions = IRBuilder.current().functions
    if not functions or not isinstance(functions[-1], kind):
        raise BuilderError(f"{call} belongs inside `with {where}:`")
    return functions[-1]


class Frame:
    """What `with` opens: `enter` is called when it does."""

    def __init__(self, call: str, enter: Callable[[], AbstractContextManager[Any]]) -> None:
        self._call = call
        self._enter = enter
        self._inside: AbstractContextManager[Any] | None = None

    def __enter__(self) -> Any:
        self._inside = self._enter()
        value = self._inside.__enter__()
        IRBuilder.current().open_frames += 1
        return value

    def __exit__(self, *exception: Any) -> Any:
        assert self._inside is not None
        IRBuilder.current().open_frames -= 1
        return self._inside.__exit__(*exception)

    def __iter__(self) -> Any:
        raise BuilderError(
            f"Python opens {self._call} by `with {self._call}(…) as i:`; a function with @T.macro "
            "is read as a script is, with `for`"
        )

    def __repr__(self) -> str:
        return f"<{self._call}, to be opened by `with`>"
