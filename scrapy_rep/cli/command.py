"""The command ``scrapy robots``, which runs the subcommand that its first argument names.

Scrapy loads this module whenever any of its commands starts, so it imports the subcommands
only when ``scrapy robots`` is called.
"""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from scrapy import __version__ as scrapy_version
from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter

if TYPE_CHECKING:
    from .options import Subcommand

# Each is a constant of its name, in a module of its name.
_SUBCOMMANDS = (
    *("check", "explain", "compare", "lint", "fetch", "page", "sitemaps"),
    *("cache", "report", "audit", "history", "diff", "demo", "completion"),
)
_DOCUMENTATION = "docs/cli.rst in the source of scrapy-rep"
_LEVELS = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")


class RobotsCommand(ScrapyCommand):
    """``scrapy robots SUBCOMMAND [options]``."""

    # Subcommands that crawl create a crawler process with the settings that they need.
    requires_crawler_process = False

    @cached_property
    def subcommands(self) -> tuple[Subcommand, ...]:
        """All subcommands, in the order of the help."""
        modules = {name: import_module(f"scrapy_rep.cli.{name}") for name in _SUBCOMMANDS}
        return tuple(getattr(module, name) for name, module in modules.items())

    def syntax(self) -> str:
        """The arguments, for the usage line."""
        return "<subcommand> [options]"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Check, explain, compare, lint and fetch robots.txt files"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add a parser for each subcommand, with Scrapy's own options."""
        from scrapy_rep import __version__

        # Scrapy has made this parser.
        parser.prog = "scrapy robots"
        parser.error = lambda message: _error(parser, message)  # type: ignore[method-assign]
        version = f"scrapy-rep {__version__} (Scrapy {scrapy_version})"
        parser.add_argument("--version", action="version", version=version)
        self._add_parsers(parser, self.subcommands)

    def _add_parsers(
        self, parser: argparse.ArgumentParser, subcommands: tuple[Subcommand, ...]
    ) -> None:
        parsers = parser.add_subparsers(
            title="Subcommands", metavar="<subcommand>", required=True, parser_class=_Parser
        )
        for command in subcommands:
            prog = f"{parser.prog} {command.name}"
            subparser = parsers.add_parser(
                command.name,
                prog=prog,
                help=command.summary,
                usage=f"{prog} {command.syntax}",
                description=command.description,
                epilog=f"Examples\n========\n{command.examples}\n\nDocumentation: {_DOCUMENTATION}",
                formatter_class=_HelpFormatter,
                conflict_handler="resolve",
            )
            if command.subcommands:
                self._add_parsers(subparser, command.subcommands)
                continue
            self._add_global_options(subparser)
            for add_to in command.arguments:
                add_to(subparser)
            subparser.set_defaults(run_subcommand=command.run, parser=subparser)

    def _add_global_options(self, parser: argparse.ArgumentParser) -> None:
        """Those of Scrapy. The help shows two of them, the others are rarely needed here."""
        super().add_options(parser)
        # What is added again replaces what Scrapy has added.
        add = parser.add_argument_group("Options of all subcommands").add_argument
        text = "change a setting; may be repeated"
        add("-s", "--set", action="append", default=[], metavar="NAME=VALUE", help=text)
        text = f"write log messages from this level on ({', '.join(_LEVELS)})"
        add("-L", "--loglevel", metavar="LEVEL", type=str.upper, choices=_LEVELS, help=text)
        for name in ("--logfile", "--profile", "--pidfile"):
            add(name, help=argparse.SUPPRESS)
        for name in ("--nolog", "--pdb"):
            add(name, action="store_true", help=argparse.SUPPRESS)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand that *opts* names."""
        from .errors import exit_code_of

        parser: argparse.ArgumentParser = opts.parser
        if args:
            # Scrapy accepts options that its parser does not know.
            options = ", ".join(re.findall(r"--[\w-]+", parser.format_help()))
            known = f" (choose from {options})" if args[0].startswith("-") else ""
            parser.error(f"unrecognized argument: '{args[0]}'{known}")
        self.exitcode = exit_code_of(parser.prog, lambda: opts.run_subcommand(opts, self.settings))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _error(self, message)


def _error(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """End the process with *message*, and with a suggestion if something is misspelt."""
    known = re.search(r"'(?P<wrong>[^']+)' \(choose from (?P<known>.*)\)$", message)
    if known is not None:
        names = re.findall(r"[\w-]+", known["known"])
        close = get_close_matches(known["wrong"], names, 1)
        message = message[: known.start()] + f"'{known['wrong']}'"
        message += f": did you mean {close[0]}?" if close else f" (choose from {', '.join(names)})"
    parser.exit(2, f"{parser.prog}: error: {message}\n")


class _HelpFormatter(ScrapyHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """The headings of Scrapy, and descriptions printed as they stand."""
