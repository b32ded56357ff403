"""Shadow parsers: compares decisions with those of other parsers (``REP_COMPARE_WITH``).

They get the same bytes, and do not affect the crawl. External parsers have limits: see
:mod:`scrapy_rep.parsers.external`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

from scrapy.utils.datatypes import LocalCache
from scrapy.utils.python import global_object_name

from scrapy_rep.observers.feed import JsonLinesFeed
from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.report.model import Disagreement
from scrapy_rep.observers.stats import count
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.parsers.chain import body_to_read, check_usable
from scrapy_rep.parsers.external import ExternalRules, cost_of, too_costly
from scrapy_rep.parsers.logs import escape_logs
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

# For files with a higher cost, the reason for a difference is not searched.
_MOST_TO_CLASSIFY = 20_000

# Only decisions by the content of the file are compared.
_BY_FILE = (Reason.NO_RULE, Reason.RULE, Reason.NO_GROUP, Reason.OTHER_PARSER)

# The result of a comparison, and the last part of its stat. A parser is stricter if it refuses an
# admitted request, looser if it allows a refused one. The result is an error if the parser raises
# an exception. A comparison is skipped if the request is not in the sample or the file is too
# expensive.
Outcome = Literal["agree", "stricter", "looser", "error", "skipped"]


_ANSWER = {True: "allowed", False: "disallowed"}


class _File(NamedTuple):
    """One robots.txt as parsed by each parser, or the outcome without a parsed file."""

    read: tuple[RobotsTxt | ExternalRules | Outcome, ...]
    cost: int


class ShadowParsers(Observer):
    """The shadow parsers of one crawl.

    *recorder* gets the differences for the report.
    """

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
        #: By the body, and whether it is cut.
        self._files: OrderedDict[tuple[bytes, bool], _File] = OrderedDict()
        self._taken = 0
        #: The differences and errors that were logged, with the class of a difference.
        self._reported: LocalCache[tuple[object, ...], str | None] = LocalCache(_MAX_REPORTED)

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Compare the decision with all parsers, if the content of the robots.txt decided."""
        if policy is None or policy.copy is None or verdict.reason not in _BY_FILE:
            return
        if not in_sample(request.url, self._settings.compare_sample):
            for name in self._parsers:
                self._count(name, "skipped")
            return
        url = verdict.sent_as or request.url
        file = self._file(policy.origin, policy.copy.result)
        for name, read in zip(self._parsers, file.read, strict=True):
            if isinstance(read, str):
                self._count(name, read)
                continue
            try:
                theirs = _opinion(read, url, agents, verdict)
            except Exception as error:
                self._report_error(name, policy.origin, error)
                self._count(name, "error")
                continue
            if theirs is None:
                self._count(name, "agree")
            else:
                self._report(Difference(url, tuple(agents), policy, verdict, name, theirs))
                self._count(name, "looser" if theirs.allowed else "stricter")

    def _count(self, name: str, outcome: Outcome) -> None:
        count(self._crawler, f"robotstxt/compare/{name}/{outcome}")

    # -- files --------------------------------------------------------------------

    def _file(self, origin: Origin, result: FetchResult) -> _File:
        """*result*, the robots.txt of *origin*, parsed once by all parsers."""
        # Python caches the hash of bytes.
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
        decisive = difference.decisive
        # Not the rule itself: it may be long.
        rule = hash(decisive.rule)
        origin = difference.policy.origin
        key = (difference.parser, origin, decisive.reason, rule, decisive.allowed)
        if key not in self._reported:
            self._reported[key] = self._class_of(difference)
            self._log_difference(difference)
        known_class = self._reported[key]
        if self._feed is not None:
            self._feed.write(difference.as_json(known_class))
        if self._recorder is not None:
            self._recorder.compared(difference.policy, difference.disagreement(known_class))

    def _log_difference(self, difference: Difference) -> None:
        theirs = difference.theirs
        values = {
            "url": printable(difference.url),
            "ours": difference.ours,
            "parser": difference.parser,
            # External parsers return no reason.
            "theirs": _ANSWER[theirs.allowed] if theirs.reason is Reason.OTHER_PARSER else theirs,
        }
        extra = {"spider": self._crawler.spider}
        logger.info("%(url)s is %(ours)s. %(parser)s disagrees: %(theirs)s.", values, extra=extra)

    def _class_of(self, difference: Difference) -> str | None:
        """The known point of the standard on which the parsers differ, if there is one.

        The search parses the file about twenty times, so large files are left out.
        """
        decisive, policy = difference.decisive, difference.policy
        assert policy.copy is not None
        body = body_to_read(policy.copy.result, self._settings.max_size)
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

    def disagreement(self, known_class: str | None) -> Disagreement:
        """This difference for the report, with printable text."""
        return Disagreement(
            url=printable(self.url),
            parser=printable(self.parser),
            ours=self.ours.allowed,
            theirs=self.theirs.allowed,
            line=self.decisive.line,
            known_class=known_class or "",
        )

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
    """Whether *url* is in a sample of the size *share*, from 0 to 1.

    Only the URL decides, so the samples of several crawls are the same.
    """
    if share >= 1:
        return True
    digest = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _opinion(
    read: RobotsTxt | ExternalRules, url: str, agents: Sequence[str], ours: Verdict
) -> Verdict | None:
    """The verdict by *read*, the file of another parser, if it differs from *ours*.

    Exceptions of the parser are not caught. If both agree, no verdict is created.
    """
    if isinstance(read, RobotsTxt):
        return None if read.allowed(url, agents) is ours.allowed else read.verdict(url, agents)
    # Not allowed(), which first checks for the URL of the robots.txt. That would double the time.
    if read.answer(url, agents) is ours.allowed:
        return None
    return Verdict(not ours.allowed, Reason.OTHER_PARSER)
