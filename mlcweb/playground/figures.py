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
from mlcweb.playground.protocol.program import (
    MAX_HTML,
    MAX_PICTURE_BYTES,
    MAX_PICTURE_PIXELS,
    Picture,
)
from mlcweb.playground.protocol.wire import tell
from mlcweb.runtime.host.clock import in_browser

SHARPNESS = 2
"""Dots of a figure's picture for each of the page's, so that it is sharp on fine screens."""

_MARGIN = 0.1
"""Inches around what a figure draws."""


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
    try:
        for manager in helpers.Gcf.get_all_fig_managers():
            publish(manager.canvas.figure)
            # What it was drawn in takes megabytes.
            helpers.Gcf.destroy(manager)
    finally:
        helpers.Gcf.destroy_all()


def show_picture(shown: Any) -> bool:
    """Put `shown` into the page's output as a picture; whether it is one, and there is a page."""
    if not in_browser():
        return False
    try:
        drawn = _drawn(shown)
    except _TooLargeError as error:
        return _not_shown("Picture", str(error))
    if drawn is None:
        return False
    png, scale = drawn
    if len(png) > MAX_PICTURE_BYTES:
        return _not_shown("Picture", f"it has {len(png):,} bytes, more than {MAX_PICTURE_BYTES:,}")
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
    if len(text) > MAX_HTML:
        return _not_shown("HTML", f"it has {len(text):,} characters, more than {MAX_HTML:,}")
    sys.stdout.flush()
    tell("html", text)
    return True


def _not_shown(what: str, reason: str) -> bool:
    print(f"{what} not shown: {reason}", file=sys.stderr)
    return True


class _TooLargeError(Exception):
    """A figure has more pixels than the page shows."""


def _drawn(shown: Any) -> tuple[bytes, int] | None:
    """The bytes of a PNG file, and its dots for each of the page's."""
    if type(shown).__module__ == "matplotlib.figure":
        return _figure(shown)
    draw = None if isinstance(shown, type) else getattr(shown, "_repr_png_", None)
    png = draw() if callable(draw) else None
    return (png, 1) if isinstance(png, bytes) else None


def _figure(figure: Any) -> tuple[bytes, int]:
    """A figure of matplotlib, in the box around all that it draws, as sharp as there is room for.

    Raises:
        _TooLargeError: there is none.
    """
    # Drawing takes as much memory as the figure has, and the box is another than the figure where
    # something stands outside of it.
    _sharpness(figure.dpi, *figure.get_size_inches())
    figure.draw_without_rendering()
    box = figure.get_tightbbox().padded(_MARGIN)
    sharpness = _sharpness(figure.dpi, box.width, box.height)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=sharpness * figure.dpi, bbox_inches=box)
    return file.getvalue(), sharpness


def _sharpness(dpi: float, width: float, height: float) -> int:
    """Dots for each pixel of the page, of a figure whose size is in inches."""
    pixels = dpi * dpi * width * height
    for sharpness in (SHARPNESS, 1):
        if pixels * sharpness**2 <= MAX_PICTURE_PIXELS:
            return sharpness
    raise _TooLargeError(
        f"it has {width * dpi:,.0f} by {height * dpi:,.0f} pixels, "
        f"more than {MAX_PICTURE_PIXELS:,} in all; pass a smaller figsize or dpi"
    )
