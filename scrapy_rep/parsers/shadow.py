"""Shadow parsers: compares decisions with those of other parsers (``REP_COMPARE_WITH``).

They get the same bytes, and do not affect the crawl. External parsers have limits: see
:mod:`scrapy_rep.parsers.external`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import blake2b
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from scrapy.utils.datatypes import LocalCache
from scrapy.utils.python import global_object_name

from scrapy_rep.observers.feed import JsonLinesFeed
from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.report.model import Disagreement
from scrapy_rep.observers.stats import count
from scrapy_rep.parsers.external import ExternalRules, check_usable, cost_of, escape_logs, read_with
from scrapy_rep.rep.caching.recently_used import RecentlyUsed
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

# The result of a comparison, and the last part of its stat. A parser is stricter if it refuses an
# admitted request. A request that is not in the sample is skipped, as is a file that is too costly.
Outcome = Literal["agree", "stricter", "looser", "error", "skipped"]


class _File(NamedTuple):
    """One robots.txt as read by each parser, or the outcome if a parser did not read it."""

    read: Sequence[RobotsTxt | ExternalRules | Outcome]
    cost: int


class _Decision(NamedTuple):
    """The *verdict* by *policy* about *url*, as it was sent, for *agents*."""

    policy: Policy
    url: str
    agents: tuple[str, ...]
    verdict: Verdict


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
        self._files = RecentlyUsed[tuple[bytes, bool], _File](attrgetter("cost"), _ROOM)
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
        ours = _Decision(policy, verdict.sent_as or request.url, tuple(agents), verdict)
        for name, read in zip_longest(self._parsers, all_read, fillvalue="skipped"):
            outcome = read if isinstance(read, str) else self._compare(name, read, ours)
            count(self._crawler, f"robotstxt/compare/{name}/{outcome}")

    def _compare(self, name: str, read: RobotsTxt | ExternalRules, ours: _Decision) -> Outcome:
        allowed = ours.verdict.allowed
        try:
            if read.allowed(ours.url, ours.agents) is allowed:
                return "agree"
            if isinstance(read, RobotsTxt):
                theirs = read.verdict(ours.url, ours.agents)
            else:
                theirs = Verdict(not allowed, Reason.OTHER_PARSER)
        except Exception as error:
            self._report_error(name, ours.policy.origin, error)
            return "error"
        self._report(name, ours, theirs)
        return "stricter" if allowed else "looser"

    # -- files --------------------------------------------------------------------

    def _file(self, origin: Origin, result: FetchResult) -> _File:
        """*result*, the robots.txt of *origin*, read once by each parser."""
        key = (result.body, result.cut)
        file = self._files.use(key)
        if file is None:
            body = result.body_to_read(self._settings.max_size)
            read = [self._read(name, origin, body) for name in self._parsers]
            file = _File(read, cost_of(body) * len(read))
            self._files.put(key, file)
        return file

    def _read(self, name: str, origin: Origin, body: bytes) -> RobotsTxt | ExternalRules | Outcome:
        try:
            read = read_with(self._parsers[name], self._crawler, body, self._settings.dialect)
        except Exception as error:
            self._report_error(name, origin, error)
            return "error"
        return read or "skipped"

    # -- what is reported -----------------------------------------------------------

    def _report(self, name: str, ours: _Decision, theirs: Verdict) -> None:
        """Log that the parser *name* differs if that is new. Tell the feed and the report."""
        verdict, origin, url = ours.verdict, ours.policy.origin, printable(ours.url)
        # The verdict of our parser, which has a line, may be either of the two.
        decisive = theirs if theirs.rule else verdict
        # Not the rule itself: it may be long.
        key = (name, origin, decisive.reason, hash(decisive.rule), decisive.allowed)
        if key not in self._reported:
            self._reported[key] = self._class_of(ours, theirs=not decisive.allowed)
            # External parsers return no reason.
            is_bare = theirs.reason is Reason.OTHER_PARSER
            answer = ("allowed" if theirs.allowed else "disallowed") if is_bare else theirs
            message = "%(url)s is %(ours)s. %(parser)s disagrees: %(theirs)s."
            values = {"url": url, "ours": verdict, "parser": name, "theirs": answer}
            logger.info(message, values, extra={"spider": self._crawler.spider})
        known_class = self._reported[key]
        if self._feed is not None:
            self._feed.write(
                {
                    "url": ours.url,
                    "agents": ours.agents,
                    "allowed": verdict.allowed,
                    "parser": name,
                    "parser_allowed": theirs.allowed,
                    "reason": decisive.reason.value,
                    "rule": str(decisive.rule) if decisive.rule else None,
                    "line": decisive.line or None,
                    "origin": str(origin),
                    "difference": known_class,
                }
            )
        if self._recorder is not None:
            parser, answers = printable(name), (verdict.allowed, theirs.allowed)
            disagreement = Disagreement(url, parser, *answers, decisive.line, known_class or "")
            self._recorder.compared(ours.policy, disagreement)

    def _class_of(self, ours: _Decision, *, theirs: bool) -> str | None:
        """The known point of the standard on which the parsers differ, if there is one."""
        assert ours.policy.stored is not None
        body = ours.policy.stored.result.body_to_read(self._settings.max_size)
        if cost_of(body) > _MOST_TO_CLASSIFY:
            return None
        points = Differences(body, ours.policy.dialect).of_answer(ours.url, ours.agents, theirs)
        # The text has the markup of the documentation.
        return "; ".join(points).replace("``", "") or None

    def _report_error(self, name: str, origin: Origin, error: Exception) -> None:
        if (name, origin) in self._reported:
            return
        self._reported[name, origin] = None
        what, url = printable(f"{type(error).__name__}: {error}"), printable(origin.robots_url)
        logger.warning(
            "%(parser)s failed on %(url)s (%(error)s). Its verdicts on this origin are not "
            "compared.",
            {"parser": name, "url": url, "error": what},
            exc_info=error,
            extra={"spider": self._crawler.spider},
        )


def in_sample(url: str, share: float) -> bool:
    """Whether *url* is in a sample of the size *share*, from 0 to 1, the same in every crawl."""
    if share >= 1:
        return True
    digest = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
