"""``.. default-and-accepted:: NAME``: what stands in ``settings.py`` about a setting.

What is accepted is what the error message says for a value that is not.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from scrapy.settings import Settings
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep import ConfigurationError
from scrapy_rep.settings import DEFAULTS, RepSettings


def accepted(name: str) -> str:
    """What the setting *name* takes."""
    said = _complaint(name, object())
    assert said is not None
    _, _, values = said.partition("accepted: ")
    takes_none = "None" not in values and _complaint(name, None) is None
    return f"{values}, or None" if takes_none else values


def default(name: str) -> str:
    """The default of the setting *name*, as one would write it."""
    value = DEFAULTS[name]
    if isinstance(value, (int, float)):
        return f"{value:_}" if value >= 10_000 else str(value)
    return repr(value).replace("'", '"')


def _complaint(name: str, value: object) -> str | None:
    try:
        RepSettings.read(Settings({name: value}, priority="project"))
    except ConfigurationError as error:
        return str(error)
    return None


class DefaultAndAccepted(SphinxDirective):
    """Two paragraphs."""

    required_arguments = 1

    # Nodes of docutils, which has no types of its own.
    def run(self) -> list[Any]:
        """Called by docutils."""
        name = self.arguments[0]
        if name not in DEFAULTS:
            raise self.error(f"there is no setting {name}")
        value = nodes.literal("", default(name))
        return [
            nodes.paragraph("", "", nodes.Text("Default: "), value),
            nodes.paragraph("", f"Accepted: {accepted(name)}."),
        ]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("default-and-accepted", DefaultAndAccepted)
    return {"version": "1", "parallel_read_safe": True}
