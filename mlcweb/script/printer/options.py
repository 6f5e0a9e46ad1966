"""How a text looks, by the options of TVM's `script()`: names of namespaces, indentation."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from mlcweb.ir.errors import TVMError

IGNORED = frozenset((
    "module_alias", "buffer_dtype", "num_context_lines", "show_all_struct_info", "show_all_ty",
    "extra_config",
))  # fmt: skip
"""Options of TVM that change nothing here: a text always says all that reading it back needs."""

PREFIXES = {"ir_prefix": "I", "tir_prefix": "T", "relax_prefix": "R"}

STYLES = ("indent_spaces", "print_line_numbers", *PREFIXES)

CONTENTS = (
    "int_dtype", "float_dtype", "syntax_sugar", "verbose_expr", "obj_to_annotate",
    "path_to_underline", "path_to_annotate", "show_object_address",
)  # fmt: skip
"""Options for what is written, not only for how it looks."""


def check(options: Mapping[str, Any]) -> None:
    """Refuse options that TVM does not have either, and prefixes that are no names.

    Raises:
        TypeError: there is no such option.
        TVMError: a prefix is no name.
    """
    for name in options:
        if name not in IGNORED and name not in STYLES and name not in CONTENTS:
            raise TypeError(f"script() has no option {name!r}")
    for option in PREFIXES:
        prefix = options.get(option, "T")
        if not prefix.isidentifier() or keyword.iskeyword(prefix):
            raise TVMError(f"script({option}={prefix!r}): a prefix is a name of Python")


def styled(text: str, options: Mapping[str, Any]) -> str:
    """The text with the indentation, the prefixes and the numbers of lines that are asked for."""
    names = {own: options.get(option, own) for option, own in PREFIXES.items()}
    if any(own != name for own, name in names.items()):
        text = _renamed(text, names)
    spaces = options.get("indent_spaces", 4)
    if spaces != 4:
        text = "\n".join(_indented(line, spaces) for line in text.split("\n"))
    return _numbered(text) if options.get("print_line_numbers") else text


def _numbered(text: str) -> str:
    lines = text.split("\n")
    width = len(str(len(lines)))
    return "\n".join(f"{number:>{width}} {line}" for number, line in enumerate(lines, start=1))


def _renamed(text: str, names: Mapping[str, str]) -> str:
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = [f"{line[:-1]}{names.get(line[-1:], line[-1:])}" if line.startswith("# from ") else line
             for line in text.split("\n")]  # fmt: skip
    for token, after in reversed(list(pairwise(tokens))):
        if token.type == tokenize.NAME and after.string == "." and token.string in names:
            row, start = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:start] + names[token.string] + line[token.end[1] :]
    return "\n".join(lines)


def _indented(line: str, spaces: int) -> str:
    code = line.lstrip(" ")
    return " " * ((len(line) - len(code)) // 4 * spaces) + code
