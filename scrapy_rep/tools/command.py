"""The command ``scrapy robots``: picks the subcommand that its first argument names.

Scrapy loads this module whenever any of its commands starts. What a subcommand
needs, it imports when it is run.
"""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.exceptions import UsageError

from scrapy_rep.tools.demo.subcommand import DemoSubcommand
from scrapy_rep.tools.subcommand import Subcommand

#: In the order in which the help lists them. A new one needs a line here.
SUBCOMMANDS: tuple[Subcommand, ...] = (DemoSubcommand(),)


class RobotsCommand(ScrapyCommand):
    """``scrapy robots SUBCOMMAND [options]``."""

    # Subcommands that crawl make a process with settings of their choice.
    requires_crawler_process = False

    def syntax(self) -> str:
        """The arguments, for the usage line."""
        return f"<{'|'.join(command.name for command in SUBCOMMANDS)}> [options]"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Tools for robots.txt, such as a demonstration crawl"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Give *parser* a parser for each subcommand, with Scrapy's own options."""
        parsers = parser.add_subparsers(
            title="Subcommands", dest="subcommand", metavar="<subcommand>", required=True
        )
        for command in SUBCOMMANDS:
            subparser = parsers.add_parser(
                command.name,
                help=command.summary,
                usage=f"scrapy robots {command.name} {command.syntax}",
                description=command.description,
                formatter_class=_HelpFormatter,
                conflict_handler="resolve",
            )
            super().add_options(subparser)
            command.add_options(subparser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand that was asked for."""
        if args:
            # Scrapy lets options pass that its parser does not know.
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)
        command = next(command for command in SUBCOMMANDS if command.name == opts.subcommand)
        self.exitcode = command.run(opts)


class _HelpFormatter(ScrapyHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Scrapy's headings, and descriptions printed as they stand."""
