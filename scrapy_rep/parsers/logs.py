"""Log lines of parsers, without power over a terminal.

RFC 9309 §3: the content of a robots.txt is untrusted. Protego logs values of it as they
are, by loggers of its own, and other parsers put them into the exceptions that they raise.
"""

from __future__ import annotations

import logging
import traceback

import protego

from scrapy_rep.rep.text import printable


class _Escaping(logging.Filter):
    """Escapes everything that is not printable in message and traceback; drops nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change *record* where it has something to escape."""
        message = record.getMessage()
        if not message.isprintable():
            record.msg, record.args = printable(message, None), ()
        if record.exc_info and record.exc_info[1]:
            # What formatters show, if it is there.
            text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
            record.exc_text = "\n".join(printable(line, None) for line in text.split("\n"))
        return True


_ESCAPING = _Escaping()


def escape_logs(*loggers: logging.Logger) -> None:
    """Keep control characters out of what *loggers* and those of Protego log."""
    # A filter sees only what is logged by its own logger, not what its children log.
    names = [name for name in logging.root.manager.loggerDict if _is_protegos(name)]
    for logger in (*loggers, *map(logging.getLogger, names)):
        logger.addFilter(_ESCAPING)


def _is_protegos(name: str) -> bool:
    return f"{name}.".startswith(f"{protego.__name__}.")
