"""Sphinx configuration. Builds without network: no intersphinx."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

import scrapy_rep

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "scrapy-rep"
author = "The scrapy-rep developers"
copyright = author  # noqa: A001
release = scrapy_rep.__version__

extensions = ["sphinx.ext.autodoc", "access_table", "findings_table", "state_table"]
exclude_patterns = ["_build"]
html_theme = "sphinx_rtd_theme"
# "dialect=RFC9309", not what is in it.
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"


def setup(app: Sphinx) -> None:
    """``.. setting:: NAME`` marks what ``:setting:`NAME``` links to, as in Scrapy's docs."""
    app.add_crossref_type("setting", "setting", indextemplate="pair: %s; setting")
