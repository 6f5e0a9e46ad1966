"""Sphinx directives for live cells and lessons: ``.. mlc-cell::`` and ``.. mlc-lesson::``."""

from __future__ import annotations

from html import escape
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

OPTIONS = {
    "src": directives.unchanged,
    "panes": directives.unchanged,
    "height": directives.unchanged,
    "theme": lambda text: directives.choice(text, ("light", "dark")),
    "autorun": directives.flag,
}


class MlcCell(SphinxDirective):
    """A program that its reader can run. The content is the program."""

    has_content = True
    option_spec: ClassVar[Any] = OPTIONS

    def run(self) -> list[nodes.Node]:
        """The element for HTML around a code block that every writer can print."""
        code = "\n".join(self.content)
        block = nodes.literal_block(code, code, language="python")
        return [_html(f"<mlc-cell{_attributes(self.options)}>"), block, _html("</mlc-cell>")]


class MlcLesson(SphinxDirective):
    """A lesson of the playground. The argument is its name."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar[Any] = OPTIONS

    def run(self) -> list[nodes.Node]:
        """The element for HTML around the content, which stands for it elsewhere."""
        options = {"lesson": self.arguments[0], **self.options}
        content = self.parse_content_to_nodes()
        return [_html(f"<mlc-lesson{_attributes(options)}>"), *content, _html("</mlc-lesson>")]


def _attributes(options: dict[str, Any]) -> str:
    """Options as attributes; a flag's value is None."""
    return "".join(
        f" {name}" if value is None else f' {name}="{escape(value, quote=True)}"'
        for name, value in options.items()
    )


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives and puts the playground's script into every page."""
    app.add_config_value("mlc_playground", "", "html", types=(str,))
    app.add_directive("mlc-cell", MlcCell)
    app.add_directive("mlc-lesson", MlcLesson)
    app.connect("builder-inited", _add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _add_script(app: Sphinx) -> None:
    app.add_js_file(f"{app.config.mlc_playground.rstrip('/')}/embed.js")
