"""Pictures in the output of a program: matplotlib's figures, and what else can draw itself.

This module is also the backend of matplotlib in the page, where `MPLBACKEND` names it: its
`FigureCanvas` draws in memory, and its `show` puts the open figures into the output, as a notebook
does.
"""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

from mlcweb.ir.display import publish
from mlcweb.playground.protocol.program import Picture
from mlcweb.playground.protocol.wire import tell
from mlcweb.runtime.host.clock import in_browser

SHARPNESS = 2
"""Dots of a figure's picture for each of the page's, so that it is sharp on fine screens."""


def __getattr__(name: str) -> Any:
    if name != "FigureCanvas":
        raise AttributeError(name)
    from matplotlib.backends.backend_agg import (  # pyright: ignore[reportMissingImports]
        FigureCanvasAgg,
    )

    # matplotlib looks into the module itself later.
    return globals().setdefault(name, FigureCanvasAgg)


def show(*args: Any, **kwargs: Any) -> None:
    """Show the figures that are open, and close them; does nothing without matplotlib."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return
    for manager in helpers.Gcf.get_all_fig_managers():
        publish(manager.canvas.figure)
    helpers.Gcf.destroy_all()


def show_picture(shown: Any) -> bool:
    """Put `shown` into the page's output as a picture; whether it is one, and there is a page."""
    if not in_browser():
        return False
    drawn = _drawn(shown)
    if drawn is None:
        return False
    png, scale = drawn
    sys.stdout.flush()
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    picture = Picture(url, round(width / scale), round(height / scale), str(shown))
    tell("picture", picture)
    return True


def show_html(shown: Any) -> bool:
    """Put `shown` into the page's output as HTML; whether it has some, and there is a page."""
    draw = None if isinstance(shown, type) else getattr(shown, "_repr_html_", None)
    text = draw() if callable(draw) and in_browser() else None
    if not isinstance(text, str):
        return False
    sys.stdout.flush()
    tell("html", text)
    return True


def _drawn(shown: Any) -> tuple[bytes, int] | None:
    """The bytes of a PNG file, and its dots for each of the page's."""
    if type(shown).__module__ == "matplotlib.figure":
        file = io.BytesIO()
        shown.savefig(file, format="png", dpi=SHARPNESS * shown.dpi, bbox_inches="tight")
        return file.getvalue(), SHARPNESS
    draw = None if isinstance(shown, type) else getattr(shown, "_repr_png_", None)
    png = draw() if callable(draw) else None
    return (png, 1) if isinstance(png, bytes) else None
