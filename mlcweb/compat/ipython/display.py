"""Rich text that shows itself: what ``IPython.display`` offers to a notebook cell.

A program has no last line whose value a notebook would show, so an object made here is
published when it is made. Natively that prints it; the page draws it.
"""

from mlcweb.ir.display import publish

__all__ = ["HTML", "Code", "Markdown", "display"]


class DisplayObject:
    """Text of one MIME type."""

    mime = "text/plain"

    def __init__(self, data: str):
        self.data = data
        publish(self)

    def __str__(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.data)} characters>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), self.mime: self.data}


class Code(DisplayObject):
    """Program text, highlighted as ``language`` where that can be done."""

    mime = "text/x-code"

    def __init__(self, data: str, language: str = "python"):
        self.language = language
        super().__init__(data)


class Markdown(DisplayObject):
    """Text in Markdown."""

    mime = "text/markdown"


class HTML(DisplayObject):
    """A piece of a page. On a terminal only its size is told."""

    mime = "text/html"

    def __str__(self) -> str:
        return repr(self)


def display(*shown: object) -> None:
    """Shows each object; one that has shown itself already is not shown again."""
    for each in shown:
        if not isinstance(each, DisplayObject):
            publish(each)
