"""Layouts of operators whose attributes name them by letters: convolutions, pooling, resizing.

These are the operators for which the reader may want a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import expr as E
from mlcweb.relax.op.infer import op_of
from mlcweb.relax.transform.layout.order import Layout, initial_of, order_of, renamed
from mlcweb.relax.transform.layout.rules import Decision, attribute, data_order

Wanted = Mapping[str, Sequence[str]]
"""Layouts of data, weight and result (default: that of the data), by names of operators."""

_CONVOLUTION = ("data_layout", "kernel_layout", "out_layout")
_POOL = ("layout", "out_layout")
LETTERED: dict[str, tuple[str, ...]] = {
    **{
        f"relax.nn.conv{rank}d{suffix}": _CONVOLUTION
        for rank in (1, 2, 3)
        for suffix in ("", "_transpose")
    },
    **{
        f"relax.nn.{kind}_pool{rank}d": _POOL
        for rank in (1, 2, 3)
        for kind in ("max", "avg", "adaptive_avg")
    },
    "relax.image.resize2d": ("layout",),
}
"""The attributes of operators that are layouts: of the data first, of the result last."""


def _text(call: E.Call, name: str) -> str:
    layout = attribute(call, name)
    assert isinstance(layout, str)
    return layout


def check_wanted(wanted: Wanted) -> None:
    """Raises: DiagnosticError for operators or counts of layouts for which there is no meaning."""
    for name, layouts in wanted.items():
        names = LETTERED.get(name)
        if names is None or names == _POOL:
            known = ", ".join(known for known, each in LETTERED.items() if each != _POOL)
            raise DiagnosticError(
                f"ConvertLayout: there is no layout to want for {name}. Layouts are wanted for "
                f"{known}; other operators follow what they are given"
            )
        least = 2 if names == _CONVOLUTION else 1
        if not least <= len(layouts) <= len(names) or isinstance(layouts, str):
            raise DiagnosticError(
                f"ConvertLayout: {name} needs {least} to {len(names)} layouts, for "
                f"{', '.join(names)}, not {layouts!r}"
            )


def _order(name: str, here: str, wanted: str) -> Layout:
    if sorted(wanted) != sorted(here):
        blocked = any(letter.isdigit() for letter in wanted)
        why = ": layouts with blocks of channels are not there" if blocked else ""
        raise DiagnosticError(
            f'ConvertLayout: {name} lies as "{here}"; an order of these letters is wanted, '
            f'not "{wanted}"{why}'
        )
    return order_of(here, wanted)


def decide(call: E.Call, layouts: Sequence[Layout], wanted: Wanted) -> Decision:
    """The layouts of a call of an operator of `LETTERED`."""
    name = op_of(call).name
    names = LETTERED[name]
    if name in wanted:
        letters = list(wanted[name])
        letters += [letters[0]] * (len(names) - len(letters))
        here = [_text(call, attr) for attr in names]
        orders = [_order(name, *both) for both in zip(here, letters, strict=True)]
        attrs: dict[str, object] = dict(zip(names, letters, strict=True))
    else:
        order = data_order(layouts)
        kernel = layouts[1] if names == _CONVOLUTION else None
        by_name = dict.fromkeys(names, order)
        if isinstance(kernel, tuple):
            by_name["kernel_layout"] = kernel
        orders = list(by_name.values())
        attrs = {attr: renamed(_text(call, attr), each) for attr, each in by_name.items()}
    arguments = orders[: len(call.args)] if names == _CONVOLUTION else [orders[0]]
    rest = [initial_of(arg) for arg in call.args[len(arguments) :]]
    return Decision([*arguments, *rest], orders[-1], attrs)
