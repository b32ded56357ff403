"""Escapes untrusted text in the log lines of parsers.

RFC 9309 §3: the content of a robots.txt is untrusted. Protego logs its values without escaping
them, and other parsers put them into their exceptions.
"""

from __future__ import annotations

import logging
import traceback

import protego

from scrapy_rep.rep.text import printable


def _escape(record: logging.LogRecord) -> bool:
    """A filter that escapes message and traceback. It drops no record."""
    message = record.getMessage()
    if not message.isprintable():
        record.msg, record.args = printable(message, None), ()
    if record.exc_info and record.exc_info[1]:
        # Formatters use this text if it is set.
        text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
        record.exc_text = "\n".join(printable(line, None) for line in text.split("\n"))
    return True


def escape_logs(logger: logging.Logger) -> None:
    """Escape control characters in the records of *logger* and of Protego's loggers."""
    logger.addFilter(_escape)
    # The filter of a logger does not see the records of its children.
    for name in list(logging.root.manager.loggerDict):
        if f"{name}.".startswith(f"{protego.__name__}."):
            logging.getLogger(name).addFilter(_escape)
