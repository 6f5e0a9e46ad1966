"""Sphinx settings. `make docs` builds the site into docs/_build."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from reference import pages  # noqa: E402

import mlcweb  # noqa: E402

project = "mlcweb"
author = "the authors of mlcweb"
copyright = f"{author}; Apache-2.0"
release = mlcweb.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "reference"]

myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 3

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # types in signatures go by their short names, which repeat

html_theme = "furo"
html_title = "mlcweb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False


def setup(app):
    pages.write(HERE / "api")
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon


def _docstring(app, what, name, obj, options, lines):
    pages.literal_blocks(lines)
    pages.add_status(name, lines)
