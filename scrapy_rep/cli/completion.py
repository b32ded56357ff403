"""``scrapy robots completion``: completion of ``scrapy robots`` in shells."""

from __future__ import annotations

import argparse
import pkgutil
import sys

from scrapy import commands

from .errors import FINE, CommandError
from .options import Options, Settings, argument, subcommand

_SHELL = argument("shell", metavar="SHELL", choices=("bash", "zsh", "tcsh"), help="your shell")


@subcommand("SHELL [options]", "print a script for shell completion", _SHELL)
def completion(options: Options, settings: Settings) -> int:
    """Prints a script that completes "scrapy robots", its subcommands and options, and
    the names of Scrapy's own commands. Needs shtab (pip install shtab).

    Exit codes: 0 done, 2 error

    Examples:
      eval "$(scrapy robots completion bash)"
      scrapy robots completion zsh > ~/.zfunc/_scrapy
      scrapy robots completion tcsh > ~/.scrapy-completion.csh
    """
    try:
        import shtab
    except ImportError as error:
        raise CommandError(f"completion needs shtab ({error}): pip install shtab") from None
    from .command import RobotsCommand

    command = RobotsCommand()
    command.settings = settings  # type: ignore[assignment]
    parser = argparse.ArgumentParser(prog="scrapy", add_help=False)
    parsers = parser.add_subparsers()
    for module in pkgutil.iter_modules(commands.__path__):
        # Without a help, shtab leaves it out.
        parsers.add_parser(module.name, help="Scrapy's own")
    robots = parsers.add_parser("robots", help=command.short_desc(), conflict_handler="resolve")
    command.add_options(robots)
    sys.stdout.write(shtab.complete(parser, options.shell) + "\n")
    return FINE
