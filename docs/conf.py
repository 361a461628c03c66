# SPDX-License-Identifier: Apache-2.0
"""The site: `make docs` builds it into build/docs."""

from __future__ import annotations

import sys
from pathlib import Path

from bridge import __version__

sys.path.insert(0, str(Path(__file__).parent))
from stub_signatures import signature_of

project = "bridge"
author = "the authors of bridge"
project_copyright = "the authors of bridge, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]
html_theme = "furo"
html_title = f"bridge {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]


# Anchors of headings, so that links such as errors.md#... are checked.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "undoc-members": False, "imported-members": True}
# Words in single backticks are code; docstrings have no roles.
default_role = "code"


def _signature(app, what, name, obj, options, signature, returned):
    """Take the signature of a compiled function from its stub, which has the types."""
    return signature_of(name) if what in ("function", "method") else None


def _docstring(app, what, name, obj, options, lines):
    """Leave the layers to those who read the source; no headings within a class."""
    if name == "bridge":
        layers = next(i for i, line in enumerate(lines) if "is built in layers" in line)
        del lines[layers:]
    for i, line in enumerate(lines[1:], 1):
        if lines[i - 1].strip() and line and set(line) <= {"-"}:
            lines[i - 1 : i + 1] = [f".. rubric:: {lines[i - 1]}", ""]


def setup(app):
    """Connect what changes the reference."""
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _docstring)
