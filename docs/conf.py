"""The site: `sphinx-build -W --keep-going docs site`; pages are the Markdown beside this file."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "mbsfmu"
author = "the mbsfmu authors"
copyright = "2026, the mbsfmu authors"  # noqa: A001 - Sphinx's word
release = version = version_of("mbsfmu")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "mathml", "site_pages"]
html_math_renderer = "mathml"
myst_update_mathjax = False
exclude_patterns = ["_site", "_extra", "jupyter_execute"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["parts.css"]
html_js_files = ["reach.js"]
html_title = f"mbsfmu {version}"
EXTRA = Path(__file__).parent / "_extra"  # animations, which are made once this has been read
EXTRA.mkdir(exist_ok=True)
html_extra_path = [EXTRA.name]
html_copy_source = False
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_linkify_fuzzy_links = False
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # attributes are references by bare name, which several classes may have
