# SPDX-License-Identifier: Apache-2.0
"""The site: `make docs` builds it into build/docs."""

from __future__ import annotations

from bridge import __version__

project = "bridge"
author = "the authors of bridge"
project_copyright = "the authors of bridge, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["README.md"]
html_theme = "furo"
html_title = f"bridge {version}"
html_static_path = []


# Anchors of headings, so that links such as errors.md#... are checked.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "undoc-members": False, "imported-members": True}
# Words in single backticks are code; docstrings have no roles.
default_role = "code"
