"""The command ``scrapy robots``, which runs the subcommand that its first argument names.

Scrapy loads this module whenever any of its commands starts, so it imports the subcommands
only when ``scrapy robots`` is called.
"""

from __future__ import annotations

import argparse
from functools import cached_property
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from scrapy_rep.cli.options import SubcommandGroup


class RobotsCommand(ScrapyCommand):
    """``scrapy robots SUBCOMMAND [options]``."""

    # Subcommands that crawl create a crawler process with the settings that they need.
    requires_crawler_process = False

    @cached_property
    def root(self) -> SubcommandGroup:
        """All subcommands, in the order of the help. A new one needs a line here."""
        from scrapy_rep.cli.audit import AUDIT
        from scrapy_rep.cli.cache import CACHE
        from scrapy_rep.cli.check import CHECK
        from scrapy_rep.cli.compare import COMPARE
        from scrapy_rep.cli.demo import DEMO
        from scrapy_rep.cli.diff import DIFF
        from scrapy_rep.cli.explain import EXPLAIN
        from scrapy_rep.cli.fetch import FETCH
        from scrapy_rep.cli.history import HISTORY
        from scrapy_rep.cli.lint import LINT
        from scrapy_rep.cli.options import SubcommandGroup
        from scrapy_rep.cli.page import PAGE
        from scrapy_rep.cli.report import REPORT
        from scrapy_rep.cli.sitemaps import SITEMAPS

        subcommands = (
            CHECK,
            EXPLAIN,
            COMPARE,
            LINT,
            FETCH,
            PAGE,
            SITEMAPS,
            CACHE,
            REPORT,
            AUDIT,
            HISTORY,
            DIFF,
            DEMO,
        )
        return SubcommandGroup("robots", self.short_desc(), "", subcommands)

    def syntax(self) -> str:
        """The arguments, for the usage line."""
        return self.root.syntax

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Check, explain, compare, lint and fetch robots.txt files"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add a parser for each subcommand, with Scrapy's own options."""
        self._add_parsers(parser, self.root, "scrapy robots")

    def _add_parsers(
        self, parser: argparse.ArgumentParser, group: SubcommandGroup, words: str
    ) -> None:
        from scrapy_rep.cli.options import SubcommandGroup

        parsers = parser.add_subparsers(title="Subcommands", metavar="<subcommand>", required=True)
        for command in group.subcommands:
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
                self._add_parsers(subparser, command, own_words)
            else:
                super().add_options(subparser)
                command.add_options(subparser)
                subparser.set_defaults(run_subcommand=command.run, words=own_words)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand that *opts* names."""
        from scrapy_rep.cli.errors import exit_code_of

        if args:
            # Scrapy accepts options that its parser does not know.
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)
        self.exitcode = exit_code_of(opts.words, lambda: opts.run_subcommand(opts, self.settings))


class _HelpFormatter(ScrapyHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """The headings of Scrapy, and descriptions printed as they stand."""
