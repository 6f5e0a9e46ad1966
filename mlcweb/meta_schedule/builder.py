"""How programs are built, as an argument: `builder=` of the tuning functions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.lower.layout_preproc import remove_layout_copies
from mlcweb.meta_schedule.utils import Hook
from mlcweb.meta_schedule.utils import get_global_func_with_default_on_worker as hook_or
from mlcweb.runtime.build import build
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.target import Target


@dataclass(slots=True, eq=False)
class BuilderInput:
    """A program to build."""

    mod: IRModule
    target: Target
    params: Any = None


@dataclass(slots=True, eq=False)
class BuilderResult:
    """Where the artifact is, or why there is none."""

    artifact_path: str | None
    error_msg: str | None = None


class Builder:
    """Builds programs; subclasses define `build`."""

    @property
    def is_default(self) -> bool:
        """Whether a search may build as it does by itself."""
        return False

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """A result for each program."""
        raise NotImplementedError(f"{type(self).__name__}.build")

    @staticmethod
    def create(kind: str = "local", **options: Any) -> LocalBuilder:
        """The builder "local"."""
        if kind != "local":
            raise ValueError(f'Unknown builder "{kind}"; there is "local"')
        return LocalBuilder(**options)


PyBuilder = Builder
"""What builders of a program's own are subclasses of, in TVM."""


@dataclass(slots=True, eq=False)
class LocalBuilder(Builder):
    """Programs are built on this machine.

    Attributes:
        max_workers: processes that build in a search; they are those that measure.
        timeout_sec: seconds that `build` waits for one program; since threads cannot be ended, that
            of a program which takes longer goes on by itself, and nobody asks for what it makes. In
            a search by worker processes the runner's limit holds; in a page, where nothing can be
            left behind, there is none.
        f_build: makes a module from a program, a target and its parameters: a function, or the name
            of a registered one; by default `tvm.build`, after `RemoveWeightLayoutRewriteBlock`.
        f_export: writes a module to a file and gives its path; by default one that
            `tvm.runtime.load_module` reads, in a new folder.
        initializer: called first, to register the functions that are given by name.

    Raises:
        ValueError: no function of that name is registered.
    """

    max_workers: int | None = None
    timeout_sec: float = 30.0
    f_build: Hook = None
    f_export: Hook = None
    initializer: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        if self.initializer is not None:
            self.initializer()
        hook_or(self.f_build, None)
        hook_or(self.f_export, None)

    @property
    def is_default(self) -> bool:
        return self.f_build is None and self.f_export is None

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Build programs one after the other, in this process. What fails says why."""
        run = self._result if in_browser() else self._result_in_time
        return [run(item) for item in build_inputs]

    def _result_in_time(self, item: BuilderInput) -> BuilderResult:
        results: list[BuilderResult] = []
        context = copy_context()
        thread = Thread(target=lambda: results.append(context.run(self._result, item)), daemon=True)
        thread.start()
        thread.join(self.timeout_sec)
        if results:
            return results[0]
        return BuilderResult(
            None, f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds"
        )

    def _result(self, item: BuilderInput) -> BuilderResult:
        build_module = hook_or(self.f_build, _built)
        export = hook_or(self.f_export, _exported)
        try:
            return BuilderResult(str(export(build_module(item.mod, item.target, item.params))))
        except Exception as error:  # one program that cannot be built stops no other
            return BuilderResult(None, f"LocalBuilder: An exception occurred\n{error}")


def _built(mod: IRModule, target: Target, params: Any) -> Any:
    return build(remove_layout_copies(mod), target=target)


def _exported(module: Any) -> str:
    path = Path(tempfile.mkdtemp(), "module.wasm")
    module.export_library(str(path))
    return str(path)


create = Builder.create
