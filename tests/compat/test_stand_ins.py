"""The stand-ins for IPython and Pygments, called as course cells call them."""

from types import SimpleNamespace

import pytest

from mlcweb.compat.ipython.display import HTML, Code, Markdown, display
from mlcweb.compat.pygments import formatters, highlight, lexers
from mlcweb.ir.display import display_hook


@pytest.fixture
def shown():
    seen = []
    with display_hook(lambda each, title: seen.append(each)):
        yield seen


def test_an_object_shows_itself_once(shown):
    code = Code("x = 1", language="python")
    display(code)
    assert shown == [code]
    assert code._repr_mimebundle_() == {"text/plain": "x = 1", "text/x-code": "x = 1"}


def test_display_passes_other_objects_on(shown):
    first, second = SimpleNamespace(), SimpleNamespace()
    display(first, second)
    assert shown == [first, second]


def test_without_a_hook_text_is_printed(capsys):
    Code("x = 1")
    Markdown("*x*")
    HTML("<b>x</b>")
    assert capsys.readouterr().out == "x = 1\n*x*\n<HTML of 8 characters>\n"


def test_highlighting_without_pygments_keeps_the_text():
    formatter = formatters.HtmlFormatter()
    html = highlight("a < b & c", lexers.Python3Lexer(), formatter)
    assert html == '<div class="highlight"><pre>a &lt; b &amp; c</pre></div>\n'
    assert formatter.get_style_defs(".highlight") == ".highlight pre { line-height: 1.4; }"


def test_libraries_find_no_shell_of_ipython() -> None:
    from mlcweb.compat import ipython

    assert ipython.get_ipython() is None
