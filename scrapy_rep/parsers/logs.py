"""Log lines of parsers, without power over a terminal.

RFC 9309 §3: the content of a robots.txt is untrusted. Protego logs values of it as they
are, by loggers of its own, and other parsers put them into the exceptions that they raise.
"""

from __future__ import annotations

import logging
import traceback

import protego

from scrapy_rep.rep.text import printable


def _escape(record: logging.LogRecord) -> bool:
    """A filter that escapes what is not printable in message and traceback; drops nothing."""
    message = record.getMessage()
    if not message.isprintable():
        record.msg, record.args = printable(message, None), ()
    if record.exc_info and record.exc_info[1]:
        # What formatters show, if it is there.
        text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
        record.exc_text = "\n".join(printable(line, None) for line in text.split("\n"))
    return True


def escape_logs(logger: logging.Logger) -> None:
    """Keep control characters out of what *logger* and those of Protego log."""
    logger.addFilter(_escape)
    # A filter sees only what is logged by its own logger, not what its children log.
    for name in list(logging.root.manager.loggerDict):
        if f"{name}.".startswith(f"{protego.__name__}."):
            logging.getLogger(name).addFilter(_escape)
