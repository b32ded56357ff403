"""Sphinx configuration. Builds without network, unless DOCS_INTERSPHINX is set."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

import scrapy_rep

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "scrapy-rep"
author = "The scrapy-rep developers"
copyright = author  # noqa: A001
release = scrapy_rep.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "access_table",
    "clause_table",
    "cli_options",
    "decision_diagram",
    "findings_table",
    "setting_values",
    "state_table",
]
# Names of Python and Scrapy are plain text without the lists of what their documentation has,
# and links with them. To fetch those takes network, and a fetch that fails is a warning, which
# ends a build that takes warnings for errors. So only where somebody asks for it.
if os.environ.get("DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "scrapy": ("https://docs.scrapy.org/en/latest", None),
    }
exclude_patterns = ["_build"]
html_theme = "sphinx_rtd_theme"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
# The copy button leaves out the prompt and what a command prints.
copybutton_prompt_text = "$ "
# "dialect=RFC9309", not what is in it.
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"


def setup(app: Sphinx) -> None:
    """``.. setting:: NAME`` marks what ``:setting:`NAME``` links to, as in Scrapy's docs."""
    app.add_crossref_type("setting", "setting", indextemplate="pair: %s; setting")
