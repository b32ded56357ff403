"""What a subcommand of ``scrapy robots`` is, and the options that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_rep.rep.dialects import DIALECTS


@dataclass(frozen=True)
class Subcommand:
    """One subcommand: its help, its options, and the function that runs it.

    *syntax* shows the arguments in the usage line, *summary* is the line in the list of
    subcommands. *description* and *examples* are printed by ``--help`` before and after the
    options. *run* gets the options, and the settings of the project with those of ``-s``. It
    returns the exit code, or raises :exc:`~scrapy_rep.cli.errors.CommandError`.
    """

    name: str
    syntax: str
    summary: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, BaseSettings], int]
    examples: str = ""


@dataclass(frozen=True)
class SubcommandGroup:
    """Subcommands of a subcommand. The fields mean the same as in :class:`Subcommand`."""

    name: str
    summary: str
    description: str
    subcommands: tuple[Subcommand | SubcommandGroup, ...]
    examples: str = ""

    @property
    def syntax(self) -> str:
        """The arguments in the usage line."""
        return f"<{'|'.join(each.name for each in self.subcommands)}> [options]"


_SHARED: dict[str, dict[str, Any]] = {
    "urls": {
        "metavar": "URL",
        "nargs": "+",
        "help": "URL to check; - reads URLs from standard input",
    },
    "source": {"metavar": "SOURCE", "help": "URL, file, or - for standard input"},
    "--agent": {
        "metavar": "TOKEN",
        "action": "append",
        "default": [],
        "help": "product token of the crawler, such as ExampleBot; repeat it for more tokens, most "
        "preferred first (by default, those of a crawl with these settings)",
    },
    "--file": {
        "metavar": "FILE",
        "help": "use this robots.txt for all URLs and fetch nothing; - reads standard input",
    },
    "--dialect": {
        "metavar": "NAME",
        "choices": list(DIALECTS),
        "help": f"{', '.join(DIALECTS)} (by default, REP_DIALECT)",
    },
    "--fresh": {
        "action": "store_true",
        "help": "fetch robots.txt even if the store has a fresh copy",
    },
}


def add(parser: argparse.ArgumentParser, *names: str) -> None:
    """The arguments *names*, which several subcommands have."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def add_json(parser: argparse.ArgumentParser, *more: str) -> None:
    """--format, which is text, json or one of *more*, and --json."""
    group = parser.add_mutually_exclusive_group()
    forms = ("text", "json", *more)
    group.add_argument(
        "--format",
        choices=forms,
        default="text",
        metavar="FORMAT",
        help=f"{', '.join(forms)} (text by default)",
    )
    group.add_argument(
        "--json", action="store_const", const="json", dest="format", help="same as --format json"
    )
