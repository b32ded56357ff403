"""What a subcommand of ``scrapy robots`` is, and the arguments that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from scrapy.settings import BaseSettings

from ..rep.dialects import DIALECTS

#: Adds an argument to a parser.
Argument = Callable[[argparse.ArgumentParser], object]
#: What was typed.
Options = argparse.Namespace
#: The settings of the project, with those of ``-s``.
Settings = BaseSettings
#: Returns the exit code, or raises :exc:`~scrapy_rep.cli.errors.CommandError`.
Run = Callable[[Options, Settings], int]


@dataclass(frozen=True)
class Subcommand:
    """One subcommand: its help, and how it runs, or *subcommands* of its own.

    *syntax* shows the arguments in the usage line, *summary* is the line in the list of
    subcommands. ``--help`` prints *description* before the options, and *examples* after them.
    """

    name: str
    syntax: str
    summary: str
    description: str
    examples: str
    arguments: tuple[Argument, ...] = ()
    run: Run | None = None
    subcommands: tuple[Subcommand, ...] = ()


def subcommand(syntax: str, summary: str, *arguments: Argument) -> Callable[[Run], Subcommand]:
    """Make a function the subcommand of its name. Its docstring ends with the examples."""

    def decorate(run: Run) -> Subcommand:
        name = run.__name__.rstrip("_")
        description, _, examples = cleandoc(run.__doc__ or "").partition("\n\nExamples:\n")
        return Subcommand(name, syntax, summary, description, examples, arguments, run)

    return decorate


def argument(*names: str, **keywords: Any) -> Argument:
    """An argument, as ``ArgumentParser.add_argument`` takes it."""
    return lambda parser: parser.add_argument(*names, **keywords)


URLS = argument(
    "urls", metavar="URL", nargs="+", help="URL to check; - reads URLs from standard input"
)
SOURCE = argument("source", metavar="SOURCE", help="URL, file, or - for standard input")
AGENT = argument(
    "--agent",
    metavar="TOKEN",
    action="append",
    default=[],
    help="product token of the crawler, such as ExampleBot; repeat it for more tokens, most "
    "preferred first (by default, those of a crawl with these settings)",
)
FILE = argument(
    "--file",
    metavar="FILE",
    help="use this robots.txt for all URLs and fetch nothing; - reads standard input",
)
DIALECT = argument(
    "--dialect",
    metavar="NAME",
    choices=list(DIALECTS),
    help=f"{', '.join(DIALECTS)} (by default, REP_DIALECT)",
)
FRESH = argument(
    "--fresh", action="store_true", help="fetch robots.txt even if the store has a fresh copy"
)


def format_of(*more: str) -> Argument:
    """--format, which is text, json or one of *more*, and --json."""
    forms = ("text", "json", *more)

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group()
        text = f"{', '.join(forms)} (text by default)"
        group.add_argument("--format", choices=forms, default="text", metavar="FORMAT", help=text)
        text = "same as --format json"
        group.add_argument("--json", action="store_const", const="json", dest="format", help=text)

    return add
