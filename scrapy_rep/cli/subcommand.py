"""What a subcommand of ``scrapy robots`` is."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from scrapy.settings import BaseSettings


class Subcommand(ABC):
    """One subcommand: its help, its options, what it does.

    Made whenever any Scrapy command starts, so its module must import next to
    nothing; :meth:`run` imports the rest.
    """

    #: What it is called on the command line.
    name: str
    #: The options as the usage line shows them.
    syntax: str
    #: One line for the list of subcommands.
    summary: str
    #: Paragraphs for ``--help``, printed as they stand.
    description: str

    @abstractmethod
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options to *parser*, which has those of every Scrapy command."""

    @abstractmethod
    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Do it, and return the exit code.

        *settings* are those of the project, if there is one, and of ``-s`` and the
        other options of Scrapy. Raises :exc:`scrapy.exceptions.UsageError` for
        options that make no sense.
        """


@dataclass(frozen=True)
class SubcommandGroup:
    """Subcommands of a subcommand. The fields mean what those of :class:`Subcommand` do."""

    name: str
    summary: str
    description: str
    subcommands: tuple[Subcommand | SubcommandGroup, ...]

    @property
    def syntax(self) -> str:
        """The options as the usage line shows them."""
        return syntax_of(self.subcommands)


def syntax_of(commands: Iterable[Subcommand | SubcommandGroup]) -> str:
    """What to choose from, for the usage line."""
    return f"<{'|'.join(command.name for command in commands)}> [options]"
