"""Passes, and the settings under which they run.

A pass makes a module of a module. `module_pass` turns a function or class into one, `Sequential`
runs several, and a `PassContext` says which may run, with which options, and who hears of them:

    @tvm.transform.module_pass(opt_level=0)
    def without_helpers(mod, ctx): ...

    with tvm.transform.PassContext(instruments=[PassTimingInstrument()]):
        mod = tvm.transform.Sequential([without_helpers, relax.transform.LegalizeOps()])(mod)

Instruments are in instrument.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, ClassVar

from mlcweb.ir.errors import TVMError, nesting_limit
from mlcweb.ir.module import IRModule


class NoModuleError(TVMError, TypeError):
    """A pass is given, or gives, what is no IRModule."""


class UnknownOption(TVMError, AttributeError):
    """An option of a name that nothing has registered."""


class OptionValueError(TVMError, ValueError):
    """An option set to what it cannot be."""


_options: dict[str, type] = {}
_stack: ContextVar[tuple[PassContext, ...]] = ContextVar("pass_context", default=())


def register_option(name: str, kind: type) -> str:
    """Let `name` be used in the `config` of a `PassContext`, with values of type `kind`."""
    _options[name] = kind
    return name


def option_names() -> list[str]:
    """The options that there are."""
    return sorted(_options)


def checked_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options with their values in their types.

    Raises:
        UnknownOption: lists the options that there are.
        OptionValueError: says what an option may be.
    """
    return {
        canonical: _checked(canonical, value)
        for name, value in (config or {}).items()
        for canonical in (canonical_name(name),)
    }


def canonical_name(name: str) -> str:
    """An option or pass under the name that TVM gave it until 0.22: the dialects `tirx` and `s_tir`
    were one, `tir`, and `StmtSimplify` was `Simplify`."""
    dialect, dot, rest = name.partition(".")
    if not (dot and dialect in ("tir", "tirx", "s_tir")):
        return name
    return f"tir.{'Simplify' if rest == 'StmtSimplify' else rest}"


def _checked(name: str, value: Any) -> Any:
    kind = _options.get(name)
    if kind is None:
        raise UnknownOption(f'Unknown option "{name}"; there are {", ".join(option_names())}')
    if kind is bool and isinstance(value, int) and value in (0, 1):
        return bool(value)
    if kind is dict and is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if type(value) is not kind:
        raise OptionValueError(f'Option "{name}" takes a {kind.__name__}, not {value!r}')
    return value


class PassContext:
    """Settings for what is built inside of ``with PassContext(…):``.

    Args:
        opt_level: as in TVM; what is optional there is always done here.
        required_pass: names of passes that have to run.
        disabled_pass: names of passes that may not run.
        instruments: objects that want to hear of passes.
        config: options by name; see `option_names`.
    """

    __slots__ = ("config", "disabled_pass", "instruments", "opt_level", "required_pass")

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = list(required_pass or ())
        self.disabled_pass = list(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = checked_config(config)

    @staticmethod
    def current() -> PassContext:
        """The innermost context, or one with defaults outside of all."""
        stack = _stack.get()
        return stack[-1] if stack else PassContext()

    def __enter__(self) -> PassContext:
        _stack.set((*_stack.get(), self))
        entered: list[Any] = []
        try:
            for instrument in self.instruments:
                _tell(instrument, "enter_pass_ctx")
                entered.append(instrument)
        except BaseException:
            for instrument in entered:
                _tell(instrument, "exit_pass_ctx")
            _stack.set(_stack.get()[:-1])
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            for instrument in self.instruments:
                _tell(instrument, "exit_pass_ctx")
        finally:
            _stack.set(_stack.get()[:-1])

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Other instruments from here on; the present ones hear that they are done."""
        for instrument in self.instruments:
            _tell(instrument, "exit_pass_ctx")
        self.instruments = list(instruments or ())
        for instrument in self.instruments:
            _tell(instrument, "enter_pass_ctx")

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a pass may run: it is not disabled, and it is required or of this level."""
        if info.name in map(canonical_name, self.disabled_pass):
            return False
        required = info.name in map(canonical_name, self.required_pass)
        return required or info.opt_level <= self.opt_level

    def with_instruments(self, instruments: Iterable[Any]) -> PassContext:
        """The same settings where others hear of passes; in another process, nobody."""
        return PassContext(
            self.opt_level, self.required_pass, self.disabled_pass, instruments, self.config
        )

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """The options that there are, each with its type."""
        return {name: {"type": kind.__name__} for name, kind in sorted(_options.items())}

    def __repr__(self) -> str:
        return f"PassContext(opt_level={self.opt_level}, config={self.config})"


def _tell(instrument: Any, event: str, *arguments: Any) -> Any:
    """Call a method of an instrument, where it has it."""
    method = getattr(instrument, event, None)
    return None if method is None else method(*arguments)


def report_step(name: str, mod: IRModule) -> None:
    """Tell the instruments of the current context what a step of a schedule has made: those with
    a method `run_after_step(mod, info)` hear of it."""
    stack = _stack.get()
    if stack and stack[-1].instruments:
        for instrument in stack[-1].instruments:
            _tell(instrument, "run_after_step", mod, PassInfo(0, name))


@dataclass(frozen=True, slots=True)
class PassInfo:
    """What is known of a pass: its name, the least `opt_level` at which it runs, the names of
    passes that have to run before it, and what no function has any more after it (see
    analysis/properties.py)."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False
    removes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"The meta data of the pass - pass name: {self.name}, opt_level: {self.opt_level}"


class Pass:
    """A transformation of modules: `pass_(mod)` gives the new module.

    Subclasses define `transform_module`, and their instances carry `info`. Instruments of the
    current `PassContext` hear of the pass before and after it runs, and may have it skipped.
    """

    info: PassInfo
    transparent = False
    """Whether instruments hear only of what is inside, as of a `Sequential`."""

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def pass_info(self) -> PassInfo:
        return self.info

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The transformation itself."""
        raise NotImplementedError

    @nesting_limit("transformed")
    def __call__(self, mod: IRModule) -> IRModule:
        if not isinstance(mod, IRModule):
            raise NoModuleError(
                f"The pass {self.name} transforms an IRModule, not a {type(mod).__name__}: wrap a "
                "function as IRModule({name: function})"
            )
        context = PassContext.current()
        instruments = [] if self.transparent else context.instruments
        # Every instrument is asked: one that says no does not hide the pass from the others.
        if False in [_tell(one, "should_run", mod, self.info) for one in instruments]:
            return mod
        for instrument in instruments:
            _tell(instrument, "run_before_pass", mod, self.info)
        result = self.transform_module(mod, context)
        if not isinstance(result, IRModule):
            raise NoModuleError(f"The pass {self.name} gave no IRModule but {result!r}")
        for instrument in instruments:
            _tell(instrument, "run_after_pass", result, self.info)
        return result

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class FunctionalPass(Pass):
    """A pass whose work a Python function does. Subclasses say on what."""

    worker_method: ClassVar[str] = "transform_function"
    """The method of a class of passes that does the work."""

    def __init__(self, transform: Callable[..., Any], info: PassInfo) -> None:
        self.transform = transform
        self.info = info

    @classmethod
    def decorator(
        cls,
        pass_func: Any = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Any:
        """A pass of a function, or a class of passes of a class of which a method does the work:
        `transform_function(self, func, mod, ctx)`, `transform_module(self, mod, ctx)` or
        `transform_dataflowblock(self, block, mod, ctx)`. The function takes the same without
        `self`. Without either, the decorator that makes them, as in
        `@module_pass(opt_level=0)`."""
        if opt_level is None:
            raise TVMError("Say at which opt_level the pass runs: opt_level=0")

        def make(function_or_class: Any) -> Any:
            info = PassInfo(
                opt_level, name or function_or_class.__name__, tuple(required or ()), traceable
            )
            if not inspect.isclass(function_or_class):
                return cls(function_or_class, info)
            return _pass_class(cls, function_or_class, info)

        return make if pass_func is None else make(pass_func)


def _pass_class(base: type[FunctionalPass], worker: Any, info: PassInfo) -> type:
    """The class of passes whose instances are made as those of `worker`, which does the work."""
    method = base.worker_method
    if not callable(getattr(worker, method, None)):
        raise TVMError(f"The class {worker.__name__} needs a method {method}")

    class WorkerPass(base):
        def __init__(self, *args: Any, **options: Any) -> None:
            self.worker = worker(*args, **options)
            super().__init__(getattr(self.worker, method), info)

        def __getattr__(self, attribute: str) -> Any:
            if attribute == "worker":
                raise AttributeError(attribute)
            return getattr(self.worker, attribute)

    functools.update_wrapper(WorkerPass.__init__, worker.__init__)
    WorkerPass.__name__ = WorkerPass.__qualname__ = worker.__name__
    WorkerPass.__doc__ = worker.__doc__
    WorkerPass.__module__ = worker.__module__
    return WorkerPass


class ModulePass(FunctionalPass):
    """A pass made of `transform(mod, ctx) -> mod`."""

    worker_method = "transform_module"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self.transform(mod, ctx)


module_pass = ModulePass.decorator


def PrintIR(header: str = "", show_meta_data: bool = False) -> ModulePass:
    """A pass that prints the module, and changes nothing."""

    def shown(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"PrintIR({header}):\n{mod.script(show_meta=show_meta_data)}")
        return mod

    return ModulePass(shown, PassInfo(0, "PrintIR"))


class Sequential(Pass):
    """Passes one after the other. Those that the `PassContext` does not enable are left out."""

    transparent = True

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        self.passes = list(passes or ())
        for one in self.passes:
            if not isinstance(one, Pass):
                raise TVMError(f"Sequential takes passes, such as LegalizeOps(), not {one!r}")
        self.info = PassInfo(opt_level, name, tuple(required or ()), traceable)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for one in self.passes:
            if ctx.pass_enabled(one.info):
                mod = one(mod)
        return mod
