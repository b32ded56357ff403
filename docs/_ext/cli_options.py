"""``.. subcommand-options:: check``: the options of a subcommand, read from its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from list_table import ListTable
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep.cli.command import RobotsCommand
from scrapy_rep.cli.options import Subcommand


class SubcommandOptions(ListTable):
    """The table."""

    required_arguments = 1
    final_argument_whitespace = True

    def rows(self) -> Iterator[tuple[str, str]]:
        """Each argument and option with its help."""
        parser = argparse.ArgumentParser(add_help=False)
        for add_to in _find(self.arguments[0].split()).arguments:
            add_to(parser)
        yield "option", "meaning"
        for action in parser._actions:  # noqa: SLF001
            if action.help != argparse.SUPPRESS:
                metavar = action.metavar if action.nargs != 0 else None
                names = [f"{name} {metavar or ''}".strip() for name in action.option_strings]
                text = (action.help or "") % vars(action)
                yield ", ".join(f"``{name}``" for name in names or [action.metavar]), text


def _find(words: list[str]) -> Subcommand:
    subcommands = RobotsCommand().subcommands
    for word in words:
        (command,) = (each for each in subcommands if each.name == word)
        subcommands = command.subcommands
    return command


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("subcommand-options", SubcommandOptions)
    return {"version": "1", "parallel_read_safe": True}
