"""The formatter of the Pygments stand-in."""


class HtmlFormatter:
    """HTML in a ``div`` of class ``cssclass``."""

    def __init__(self, *, cssclass: str = "highlight"):
        self.cssclass = cssclass

    def get_style_defs(self, arg: str = "") -> str:
        """The style sheet, for elements below the selector `arg`."""
        return f"{arg} pre {{ line-height: 1.4; }}".lstrip()
