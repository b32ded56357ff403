"""Shadow parsers: compares decisions with those of other parsers (``REP_COMPARE_WITH``).

They get the same bytes, and do not affect the crawl. External parsers have limits: see
:mod:`scrapy_rep.parsers.external`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple

from scrapy.utils.datatypes import LocalCache
from scrapy.utils.python import global_object_name

from scrapy_rep.observers.feed import JsonLinesFeed
from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.report.model import Disagreement
from scrapy_rep.observers.stats import count
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.parsers.chain import body_to_read
from scrapy_rep.parsers.external import (
    ExternalRules,
    check_usable,
    cost_of,
    escape_logs,
    too_costly,
)
from scrapy_rep.rep.rules.differences import Differences
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.observers.report.recorder import Recorder
    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# The most memory for parsed files, in the unit of cost_of(): with Protego, up to 15 bytes each.
# That is enough for about 1,400 files of 30 rules.
_ROOM = 2_000_000
# The most origins and rules that are remembered as logged.
_MAX_REPORTED = 10_000
# Above this cost, the reason for a difference is not searched, which parses a file twenty times.
_MOST_TO_CLASSIFY = 20_000
# Only decisions by the content of the file are compared.
_BY_FILE = (Reason.NO_RULE, Reason.RULE, Reason.NO_GROUP, Reason.OTHER_PARSER)
_ANSWER = {True: "allowed", False: "disallowed"}

# The result of a comparison, and the last part of its stat. A parser is stricter if it refuses an
# admitted request. A request that is not in the sample is skipped, as is a file that is too costly.
Outcome = Literal["agree", "stricter", "looser", "error", "skipped"]


class _File(NamedTuple):
    """One robots.txt as parsed by each parser, or the outcome without a parsed file."""

    read: tuple[RobotsTxt | ExternalRules | Outcome, ...]
    cost: int


class ShadowParsers(Observer):
    """The shadow parsers of one crawl. *recorder* gets the differences for the report."""

    observes_allowed = True

    def __init__(
        self, crawler: Crawler, settings: RepSettings, recorder: Recorder | None = None
    ) -> None:
        for parser in settings.compare_with:
            check_usable(parser, crawler, "REP_COMPARE_WITH")
        escape_logs(logger)
        feed = settings.compare_feed
        self._crawler = crawler
        self._settings = settings
        self._recorder = recorder
        self._parsers = {global_object_name(parser): parser for parser in settings.compare_with}
        self._feed = JsonLinesFeed(crawler, feed) if feed else None
        # By the body, whose hash Python caches, and whether it is cut.
        self._files: OrderedDict[tuple[bytes, bool], _File] = OrderedDict()
        self._taken = 0
        # The differences and errors that were logged, with the class of a difference.
        self._reported: LocalCache[tuple[object, ...], str | None] = LocalCache(_MAX_REPORTED)

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Compare the decision with all parsers, if the content of the robots.txt decided."""
        if policy is None or policy.stored is None or verdict.reason not in _BY_FILE:
            return
        is_sampled = in_sample(request.url, self._settings.compare_sample)
        all_read = self._file(policy.origin, policy.stored.result).read if is_sampled else ()
        url = verdict.sent_as or request.url
        for name, read in zip_longest(self._parsers, all_read, fillvalue="skipped"):
            if isinstance(read, str):
                outcome = read
            else:
                outcome = self._compare(name, read, policy, url, agents, verdict)
            count(self._crawler, f"robotstxt/compare/{name}/{outcome}")

    def _compare(
        self,
        name: str,
        read: RobotsTxt | ExternalRules,
        policy: Policy,
        url: str,
        agents: Sequence[str],
        ours: Verdict,
    ) -> Outcome:
        try:
            theirs = _opinion(read, url, agents, ours)
        except Exception as error:
            self._report_error(name, policy.origin, error)
            return "error"
        if theirs is None:
            return "agree"
        self._report(Difference(url, tuple(agents), policy, ours, name, theirs))
        return "looser" if theirs.allowed else "stricter"

    # -- files --------------------------------------------------------------------

    def _file(self, origin: Origin, result: FetchResult) -> _File:
        """*result*, the robots.txt of *origin*, parsed once by all parsers."""
        key = (result.body, result.cut)
        file = self._files.get(key)
        if file is not None:
            self._files.move_to_end(key)
            return file
        body = body_to_read(result, self._settings.max_size)
        read = tuple(self._read(name, origin, body) for name in self._parsers)
        file = self._files[key] = _File(read, cost_of(body) * len(read))
        self._taken += file.cost
        while self._taken > _ROOM and len(self._files) > 1:
            _, oldest = self._files.popitem(last=False)
            self._taken -= oldest.cost
        return file

    def _read(self, name: str, origin: Origin, body: bytes) -> RobotsTxt | ExternalRules | Outcome:
        parser, dialect = self._parsers[name], self._settings.dialect
        try:
            if parser is RepRobotParser:
                return RobotsTxt.parse(body, dialect, max_size=len(body))
            if too_costly(body):
                return "skipped"
            return ExternalRules.parse(parser, self._crawler, body, dialect)
        except Exception as error:
            self._report_error(name, origin, error)
            return "error"

    # -- what is reported -----------------------------------------------------------

    def _report(self, difference: Difference) -> None:
        """Log *difference* if it is new, and write it to the feed and the report."""
        ours, theirs, policy = difference.ours, difference.theirs, difference.policy
        decisive = difference.decisive
        # Not the rule itself: it may be long.
        rule = hash(decisive.rule)
        key = (difference.parser, policy.origin, decisive.reason, rule, decisive.allowed)
        if key not in self._reported:
            self._reported[key] = self._class_of(difference)
            # External parsers return no reason.
            is_bare = theirs.reason is Reason.OTHER_PARSER
            logger.info(
                "%(url)s is %(ours)s. %(parser)s disagrees: %(theirs)s.",
                {
                    "url": printable(difference.url),
                    "ours": ours,
                    "parser": difference.parser,
                    "theirs": _ANSWER[theirs.allowed] if is_bare else theirs,
                },
                extra={"spider": self._crawler.spider},
            )
        known_class = self._reported[key]
        if self._feed is not None:
            self._feed.write(difference.as_json(known_class))
        if self._recorder is not None:
            names = (printable(difference.url), printable(difference.parser))
            opinions = (ours.allowed, theirs.allowed)
            disagreement = Disagreement(*names, *opinions, decisive.line, known_class or "")
            self._recorder.compared(policy, disagreement)

    def _class_of(self, difference: Difference) -> str | None:
        """The known point of the standard on which the parsers differ, if there is one."""
        decisive, policy = difference.decisive, difference.policy
        assert policy.stored is not None
        body = body_to_read(policy.stored.result, self._settings.max_size)
        if cost_of(body) > _MOST_TO_CLASSIFY:
            return None
        theirs = not decisive.allowed
        differences = Differences(body, policy.dialect)
        points = differences.of_answer(difference.url, difference.agents, theirs)
        # The text has the markup of the documentation.
        return "; ".join(points).replace("``", "") or None

    def _report_error(self, name: str, origin: Origin, error: Exception) -> None:
        if (name, origin) in self._reported:
            return
        self._reported[name, origin] = None
        logger.warning(
            "%(parser)s failed on %(url)s (%(error)s). Its verdicts on this origin are not "
            "compared.",
            {
                "parser": name,
                "url": printable(origin.robots_url),
                "error": printable(f"{type(error).__name__}: {error}"),
            },
            exc_info=error,
            extra={"spider": self._crawler.spider},
        )


class Difference(NamedTuple):
    """A decision, *ours*, that differs from the one of *parser*, *theirs*."""

    url: str
    agents: tuple[str, ...]
    policy: Policy
    ours: Verdict
    parser: str
    theirs: Verdict

    @property
    def decisive(self) -> Verdict:
        """The verdict of our parser, which has a line; it may be either of the two."""
        return self.theirs if self.theirs.rule else self.ours

    def as_json(self, known_class: str | None) -> dict[str, object]:
        """Its line of the feed."""
        decisive = self.decisive
        return {
            "url": self.url,
            "agents": self.agents,
            "allowed": self.ours.allowed,
            "parser": self.parser,
            "parser_allowed": self.theirs.allowed,
            "reason": decisive.reason.value,
            "rule": str(decisive.rule) if decisive.rule else None,
            "line": decisive.line or None,
            "origin": str(self.policy.origin),
            "difference": known_class,
        }


def in_sample(url: str, share: float) -> bool:
    """Whether *url* is in a sample of the size *share*, from 0 to 1, the same in every crawl."""
    if share >= 1:
        return True
    digest = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _opinion(
    read: RobotsTxt | ExternalRules, url: str, agents: Sequence[str], ours: Verdict
) -> Verdict | None:
    """The verdict by *read*, the file of another parser, if it differs from *ours*."""
    if isinstance(read, RobotsTxt):
        return None if read.allowed(url, agents) is ours.allowed else read.verdict(url, agents)
    # Not allowed(), which first checks for the URL of the robots.txt. That would double the time.
    if read.answer(url, agents) is ours.allowed:
        return None
    return Verdict(not ours.allowed, Reason.OTHER_PARSER)
