"""How nodes become text. The printer is a later layer and registers itself here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.ir.display import Listing, publish

_printers: list[Callable[..., str]] = []


def register_printer(printer: Callable[..., str]) -> None:
    """Use `printer(value, dialect=…)` for the text of every node."""
    _printers.append(printer)


def text(value: Any, dialect: str = "tir", **options: Any) -> str:
    """TVMScript of a node in one of the spellings of `mlcweb.ir.dialect`; a plain description where
    no printer is loaded or it has no form."""
    return _printers[-1](value, dialect=dialect, **options) if _printers else object.__repr__(value)


class Scriptable:
    """What prints as TVMScript."""

    __slots__ = ()

    def script(self, *, dialect: str = "tir", **options: Any) -> str:
        """The text, which reads back as the same program where it is a whole one.

        `dialect` is the spelling: that of the courses ("tir") or, to be pasted into an installed
        TVM, that of TVM since 2026 ("s_tir"). Of TVM's options these have an effect: `name` of a
        function, `show_meta` (large constants are written before the program), `obj_to_underline`,
        `obj_to_annotate`, `path_to_underline` and `path_to_annotate` (of parts by `AccessPath`),
        `int_dtype`, `float_dtype`, `syntax_sugar`, `verbose_expr` (variables of
        an expression are declared), `ir_prefix`, `tir_prefix`, `relax_prefix`, `indent_spaces` and
        `print_line_numbers`.
        """
        return text(self, dialect, declares=True, **options)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The text, by the name that it had before `script`; of the options none has an effect."""
        return self.script()

    def show(
        self, style: Any = None, black_format: Any = None, *, dialect: str = "tir", **options: Any
    ) -> None:
        """Show the text, with the options of `script`."""
        listing = self.script(dialect=dialect, **options)
        publish(self if str(self) == listing else Listing(listing))


def cprint(printable: Any, style: Any = None, black_format: Any = None) -> None:
    """Show the text of a node, or a text, as `show` does."""
    publish(printable if hasattr(printable, "script") else Listing(str(printable)))
