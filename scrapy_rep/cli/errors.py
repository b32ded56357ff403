"""Exit codes, and the errors that end a command with a message instead of a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

from scrapy.exceptions import NotConfigured

from ..exceptions import ConfigurationError
from ..rep.text import printable
from ..stores.base import StoreError

#: Done, and nothing is wrong.
FINE = 0
#: Something is refused, was found, or does not exist.
WRONG = 1
#: The command could not do its work.
FAILED = 2
#: The reader closed the pipe early. A shell reports SIGPIPE by this number.
PIPE_CLOSED = 128 + 13


class CommandError(Exception):
    """The command cannot do its work. The message says why, for people."""


_EXPECTED = (CommandError, ConfigurationError, NotConfigured, OSError, StoreError)


def exit_code_of(words: str, run: Callable[[], int]) -> int:
    """The exit code of *run*, or of the error that stopped it.

    Expected errors are written to standard error after *words*, the command as it was typed.
    """
    can_handle = threading.current_thread() is threading.main_thread()
    if can_handle:
        # An interrupt ends the process quietly and at once: no command leaves work half done.
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except _EXPECTED as error:
        message = printable(str(error) or type(error).__name__, most=None)
        sys.stderr.write(f"{words}: error: {message}\n")
        return FAILED
    finally:
        if can_handle:
            signal.signal(signal.SIGINT, before)
    return code
