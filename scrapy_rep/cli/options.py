"""Options that several subcommands have. Imported with each of them, so it imports nothing."""

from __future__ import annotations

import argparse


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


def add_asking(parser: argparse.ArgumentParser) -> None:
    """What says how URLs are asked about: as whom, by which file and how it is read."""
    add_agents(parser)
    add_file(parser)
    add_dialect(parser)
    add_fresh(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="write JSON, for machines")
