"""What a subcommand of ``scrapy robots`` is, and the options that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from scrapy.settings import BaseSettings


@dataclass(frozen=True)
class Subcommand:
    """One subcommand: its help, its options, and the function that runs it.

    *syntax* shows the arguments in the usage line. *summary* is the line in the list of
    subcommands. *description* is printed by ``--help`` as it stands.

    *run* gets the options, and the settings of the project with those of ``-s``. It returns
    the exit code, and raises :exc:`~scrapy.exceptions.UsageError` for options that make no
    sense.
    """

    name: str
    syntax: str
    summary: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, BaseSettings], int]


@dataclass(frozen=True)
class SubcommandGroup:
    """Subcommands of a subcommand. The fields mean the same as in :class:`Subcommand`."""

    name: str
    summary: str
    description: str
    subcommands: tuple[Subcommand | SubcommandGroup, ...]

    @property
    def syntax(self) -> str:
        """The arguments in the usage line."""
        return f"<{'|'.join(each.name for each in self.subcommands)}> [options]"


def add_agents(parser: argparse.ArgumentParser) -> None:
    """--agent, which can be given more than once."""
    parser.add_argument(
        "--agent",
        metavar="TOKEN",
        action="append",
        default=[],
        help="the product token to ask as, such as ExampleBot; given more than once, in order "
        "of preference (by default what a crawl with these settings goes by)",
    )


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """--dialect."""
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="rfc9309, google, koster1996 or koster1994 (by default REP_DIALECT)",
    )


def add_file(parser: argparse.ArgumentParser) -> None:
    """--file."""
    parser.add_argument(
        "--file",
        metavar="FILE",
        help="take this robots.txt for that of all URLs, and fetch nothing; - is standard input",
    )


def add_fresh(parser: argparse.ArgumentParser) -> None:
    """--fresh."""
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="fetch robots.txt now, also where the store has a copy that is still good",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="write JSON, for machines")


def add_all(parser: argparse.ArgumentParser) -> None:
    """The options of the subcommands that ask about URLs."""
    add_agents(parser)
    add_file(parser)
    add_dialect(parser)
    add_fresh(parser)
    add_json(parser)
