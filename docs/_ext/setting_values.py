"""Defaults and accepted values of settings, read from ``settings.py``.

``.. default-and-accepted:: NAME`` is for one setting. What is accepted is what the error message
for an invalid value says. ``.. settings-table:: TOPIC`` has a row for each line ``NAME: sentence``.
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


class SettingsTable(SphinxDirective):
    """A table of settings with their defaults."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[Any]:
        """Called by docutils."""
        rows = [line.partition(": ") for line in self.content]
        lines = [
            f".. list-table:: {self.arguments[0]}",
            "   :header-rows: 1",
            "   :widths: 30 50 20",
            "",
            "   * - setting",
            "     - what it controls",
            "     - default",
        ]
        for name, _, sentence in rows:
            lines += [
                f"   * - :setting:`{name}`",
                f"     - {sentence}",
                f"     - ``{default(name)}``",
            ]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("default-and-accepted", DefaultAndAccepted)
    app.add_directive("settings-table", SettingsTable)
    return {"version": "1", "parallel_read_safe": True}
