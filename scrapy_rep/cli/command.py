"""The command ``scrapy robots``: picks the subcommand that its first argument names.

Scrapy loads this module whenever any of its commands starts. What a subcommand
needs, it imports when it is run.
"""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.exceptions import UsageError

from scrapy_rep.cli.cache.subcommand import CACHE
from scrapy_rep.cli.check.subcommand import CheckSubcommand
from scrapy_rep.cli.compare.subcommand import CompareSubcommand
from scrapy_rep.cli.demo.subcommand import DemoSubcommand
from scrapy_rep.cli.explain.subcommand import ExplainSubcommand
from scrapy_rep.cli.fetch.subcommand import FetchSubcommand
from scrapy_rep.cli.lint.subcommand import LintSubcommand
from scrapy_rep.cli.report.subcommand import ReportSubcommand
from scrapy_rep.cli.sitemaps.subcommand import SitemapsSubcommand
from scrapy_rep.cli.subcommand import Subcommand, SubcommandGroup, syntax_of

#: In the order in which the help lists them. A new one needs a line here.
SUBCOMMANDS: tuple[Subcommand | SubcommandGroup, ...] = (
    CheckSubcommand(),
    ExplainSubcommand(),
    CompareSubcommand(),
    LintSubcommand(),
    FetchSubcommand(),
    SitemapsSubcommand(),
    CACHE,
    ReportSubcommand(),
    DemoSubcommand(),
)


class RobotsCommand(ScrapyCommand):
    """``scrapy robots SUBCOMMAND [options]``."""

    # Subcommands that crawl make a process with settings of their choice.
    requires_crawler_process = False

    def syntax(self) -> str:
        """The arguments, for the usage line."""
        return syntax_of(SUBCOMMANDS)

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Check, explain, compare, lint and fetch robots.txt files"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Give *parser* a parser for each subcommand, with Scrapy's own options."""
        self._add_parsers(parser, SUBCOMMANDS, "scrapy robots")

    def _add_parsers(
        self,
        parser: argparse.ArgumentParser,
        commands: tuple[Subcommand | SubcommandGroup, ...],
        words: str,
    ) -> None:
        parsers = parser.add_subparsers(title="Subcommands", metavar="<subcommand>", required=True)
        for command in commands:
            own_words = f"{words} {command.name}"
            subparser = parsers.add_parser(
                command.name,
                prog=own_words,
                help=command.summary,
                usage=f"{own_words} {command.syntax}",
                description=command.description,
                formatter_class=_HelpFormatter,
                conflict_handler="resolve",
            )
            if isinstance(command, SubcommandGroup):
                self._add_parsers(subparser, command.subcommands, own_words)
            else:
                super().add_options(subparser)
                command.add_options(subparser)
                subparser.set_defaults(subcommand=command)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand that was asked for."""
        if args:
            # Scrapy lets options pass that its parser does not know.
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)
        assert self.settings is not None
        subcommand: Subcommand = opts.subcommand
        self.exitcode = subcommand.run(opts, self.settings)


class _HelpFormatter(ScrapyHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Scrapy's headings, and descriptions printed as they stand."""
