"""External parsers, with a limit on the cost of a file, and with safe logs.

They parse untrusted files in the event loop. Protego 0.7.0 stores a rule once for each user-agent
line above it, so a robots.txt of 100 KiB can block the loop for ten seconds. Other parsers may
have similar problems. So the cost of a body is estimated before an external parser gets it.
"""

from __future__ import annotations

import logging
import traceback

import protego
from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.python import global_object_name

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.rep.dialects import Dialect
from scrapy_rep.rep.parsing.agents import EVERYONE, Agents
from scrapy_rep.rep.parsing.urls import is_robots_txt
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

# One unit is the cost of reading one byte; storing a rule costs as much as reading 15 bytes. With
# Protego 0.7.0, the most expensive bodies within the limit block the loop for about 50 ms. Of the
# 2,793 files of the conformance corpus, 99 % are within the limit.
MAX_COST = 100_000
_COST_OF_RULE = 15
_RULES = ("allow", "disallow")


def read_with(
    parser: type[RobotParser], crawler: Crawler, body: bytes, dialect: Dialect
) -> RobotsTxt | ExternalRules | None:
    """*body* as *parser* reads it; ``None`` if it is :func:`too_costly` for an external one."""
    if parser is RepRobotParser:
        return RobotsTxt.parse(body, dialect, max_size=len(body))
    if too_costly(body):
        return None
    return ExternalRules(build_from_crawler(parser, crawler, body), dialect)


def too_costly(body: bytes) -> str | None:
    """Why an external parser must not get *body*; ``None`` if it may."""
    why = f"its estimated parsing cost is above {MAX_COST:,}"
    return why if cost_of(body) > MAX_COST else None


def cost_of(body: bytes) -> int:
    """The highest cost of parsing *body*. Above :data:`MAX_COST`, the value is not exact.

    It does not use our parser: the estimate must be valid for all parsers, and for a body on which
    ours has failed.
    """
    cost = len(body)
    if cost > MAX_COST:
        return cost
    stacked = 0
    after_rule = False
    # Decoded as Scrapy does it for its parsers: bytes that are not UTF-8 are removed first, and
    # lines also end at form feeds and similar characters.
    for whole_line in body.decode("utf-8-sig", "ignore").lower().splitlines():
        line = whole_line.partition("#")[0].strip()
        if line.startswith("user"):
            # "bot*" is two agents to Protego, "bot*" and "bot".
            agents = 1 + ("*" in line)
            stacked = agents if after_rule else stacked + agents
            after_rule = False
            cost += _COST_OF_RULE * agents
        elif line:
            # Stored once for each agent; with "$" or an index page, in two forms.
            forms = (1 + ("$" in line)) * (1 + ("/index.htm" in line))
            cost += _COST_OF_RULE * max(stacked, 1) * forms
            # Only rules end a group for every parser.
            after_rule = after_rule or line.partition(":")[0].strip() in _RULES
        if cost > MAX_COST:
            break
    return cost


class ExternalRules:
    """A :class:`~scrapy.robotstxt.RobotParser` behind :class:`~scrapy_rep.rep.policy.Rules`.

    If no parser could read the file, *parser* is ``None``, and nothing is allowed.
    """

    def __init__(self, parser: RobotParser | None, dialect: Dialect) -> None:
        self.parser = parser
        self._dialect = dialect

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether the most preferred of *agents* may access *url*."""
        agent = agents if isinstance(agents, str) else next(iter(agents), EVERYONE)
        # The parser comes first, because the check of the URL would double the time.
        allowed = self.parser is not None and bool(self.parser.allowed(url, agent))
        return allowed or is_robots_txt(url, self._dialect)

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The answer of :meth:`allowed`. These parsers return neither a rule nor a line."""
        if is_robots_txt(url, self._dialect):
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF)
        reason = Reason.UNREADABLE if self.parser is None else Reason.OTHER_PARSER
        return Verdict(self.allowed(url, agents), reason)


def check_usable(parser: type[RobotParser], crawler: Crawler, setting: str) -> None:
    """Raise an error if *parser*, of *setting*, cannot be used, for example without its package."""
    if parser is RepRobotParser:
        return
    try:
        build_from_crawler(parser, crawler, b"")
    except Exception as error:
        raise ConfigurationError(
            f"{global_object_name(parser)}, of {setting}, cannot be used: {error}"
        ) from error


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
    """Escape control characters in the records of *logger* and of Protego's loggers.

    RFC 9309 §3: the content of a robots.txt is untrusted. Protego logs its values as they are, and
    other parsers put them into their exceptions.
    """
    logger.addFilter(_escape)
    # The filter of a logger does not see the records of its children.
    for name in list(logging.root.manager.loggerDict):
        if f"{name}.".startswith(f"{protego.__name__}."):
            logging.getLogger(name).addFilter(_escape)
