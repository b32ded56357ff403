"""What a subcommand of ``scrapy robots`` is."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod


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
    def run(self, options: argparse.Namespace) -> int:
        """Do it, and return the exit code.

        Raises :exc:`scrapy.exceptions.UsageError` for options that make no sense.
        """
