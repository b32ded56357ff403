"""How a command ends: its exit code, and what it says when it cannot be done.

Exit codes of all commands: 0 done, nothing wrong; 1 something is refused, found, or
not there; 2 it could not be done. As Unix has it, 141 is that whoever read the output
has seen enough, and a command that is interrupted ends by the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scrapy.exceptions import NotConfigured

from scrapy_rep.cli.corpus import UnusableCorpus
from scrapy_rep.cli.crawling import CrawlFailed
from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import StoreError

FINE = 0
WRONG = 1
TROUBLE = 2
# What a shell makes of SIGPIPE.
NOBODY_READS = 128 + 13


class Trouble(Exception):
    """Why it cannot be done, for people."""


_EXPECTED = (
    ConfigurationError,
    CrawlFailed,
    NotConfigured,
    OSError,
    StoreError,
    Trouble,
    UnusableCorpus,
)


def ended(words: str, do: Callable[[], int]) -> int:
    """The exit code of *do*, or of what kept it from its end.

    That is said on standard error, after *words*, those that call the command.
    """
    try:
        with _interruptible():
            code = do()
            sys.stdout.flush()
    except BrokenPipeError:
        # Python would write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except _EXPECTED as error:
        sys.stderr.write(f"{words}: {_printable_message(error)}\n")
        return TROUBLE
    return code


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lets an interrupt end the process, quietly and at once: nothing is left half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _printable_message(error: Exception) -> str:
    """What *error* says, safe to print, however long."""
    return printable(str(error) or type(error).__name__, most=None)
