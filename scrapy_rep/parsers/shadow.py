"""Second opinions: what a robots.txt decides is also put to other parsers (``REP_COMPARE_WITH``).

They get the bytes that decided, and change nothing. Those that are not ours are
asked within bounds: see :mod:`scrapy_rep.parsers.external`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from scrapy.utils.python import global_object_name

from scrapy_rep.observers.feed import JsonLinesFeed
from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.report.model import Disagreement
from scrapy_rep.observers.stats import count
from scrapy_rep.parsers.chain import body_to_read, check_usable, read_with, why_not
from scrapy_rep.parsers.external import ExternalRules, cost_of
from scrapy_rep.parsers.logs import escape_logs
from scrapy_rep.rep.rules.differences import class_of_difference
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

    from scrapy_rep.observers.report.recorder import Recorder
    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.rep.rules.robotstxt import RobotsTxt
    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# What other parsers make of files may take so much memory, in the unit of
# cost_of(): with Protego, up to 15 bytes each. Some 1,400 files of 30 rules.
_ROOM = 2_000_000

# Of so many origins and rules it is known that they were logged.
_MAX_REPORTED = 10_000

# Where the file did not decide, there is nothing to have another opinion about.
_BY_FILE = (Reason.NO_RULE, Reason.RULE, Reason.NO_GROUP, Reason.OTHER_PARSER)


# What comes of putting a decision to a parser, and the last part of its stat. It is
# stricter if it would refuse what is let through, looser if the other way round. It is an
# error if it raises, now or when it read the file. It is skipped if it is not asked: the
# request is not in the sample, or the file would cost too much.
Outcome = Literal["agree", "stricter", "looser", "error", "skipped"]


# Of a parser and an origin: that it failed, or by which rule it differs.
_Key = tuple[object, ...]


# Files that cost more to read are not looked through for why parsers differ.
_MOST_TO_CLASSIFY = 20_000


class _Opinion:
    """One parser that is asked, and the names of its stats."""

    def __init__(self, parser: type[RobotParser]) -> None:
        self.parser = parser
        self.name = global_object_name(parser)
        self.stats: dict[Outcome, str] = {
            outcome: f"robotstxt/compare/{self.name}/{outcome}" for outcome in get_args(Outcome)
        }


@dataclass(frozen=True, slots=True)
class _File:
    """What each parser makes of one robots.txt, or what comes of asking it; in their order."""

    read: tuple[RobotsTxt | ExternalRules | Outcome, ...]
    cost: int


class ShadowParsers(Observer):
    """The second opinions of one crawl.

    *recorder* is told of differences, for the report.
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
        self._opinions = tuple(_Opinion(parser) for parser in settings.compare_with)
        self._feed = JsonLinesFeed(crawler, feed) if feed else None
        #: By what was fetched: its bytes, and whether they are cut.
        self._files: OrderedDict[tuple[bytes, bool], _File] = OrderedDict()
        self._taken = 0
        #: What was logged, and what the feed says of it.
        self._reported: dict[_Key, dict[str, object]] = {}

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Put the decision to all parsers, if *policy*'s robots.txt has made it."""
        if policy is None or policy.copy is None or verdict.reason not in _BY_FILE:
            return
        if not in_sample(request.url, self._settings.compare_sample):
            for opinion in self._opinions:
                count(self._crawler, opinion.stats["skipped"])
            return
        file = self._file(policy.origin, policy.copy.result)
        for opinion, read in zip(self._opinions, file.read, strict=True):
            url = verdict.sent_as or request.url
            outcome = self._put(opinion, read, policy, url, agents, verdict)
            count(self._crawler, opinion.stats[outcome])

    def _put(
        self,
        opinion: _Opinion,
        read: RobotsTxt | ExternalRules | Outcome,
        policy: Policy,
        url: str,
        agents: Sequence[str],
        verdict: Verdict,
    ) -> Outcome:
        """Put one decision to one parser, which *read* the file so."""
        if isinstance(read, str):
            return read
        try:
            # Mostly they agree, and no verdict has to be made for that.
            if _allows(read, url, agents) is verdict.allowed:
                return "agree"
            theirs = _theirs(read, url, agents, not verdict.allowed)
        except Exception as error:
            self._report_error(opinion, policy.origin, error)
            return "error"
        self._report(Difference(url, tuple(agents), policy, verdict, opinion.name, theirs))
        return "looser" if theirs.allowed else "stricter"

    # -- files --------------------------------------------------------------------

    def _file(self, origin: Origin, result: FetchResult) -> _File:
        """*result*, the robots.txt of *origin*, read by all parsers, once."""
        # The hash of bytes is worked out once.
        key = (result.body, result.cut)
        file = self._files.get(key)
        if file is not None:
            self._files.move_to_end(key)
            return file
        body = body_to_read(result, self._settings.max_size)
        read = tuple(self._read(opinion, origin, body) for opinion in self._opinions)
        file = _File(read, cost_of(body) * len(self._opinions))
        self._files[key] = file
        self._taken += file.cost
        while self._taken > _ROOM and len(self._files) > 1:
            _, oldest = self._files.popitem(last=False)
            self._taken -= oldest.cost
        return file

    def _read(
        self, opinion: _Opinion, origin: Origin, body: bytes
    ) -> RobotsTxt | ExternalRules | Outcome:
        if why_not(opinion.parser, body) is not None:
            return "skipped"
        try:
            return read_with(opinion.parser, self._crawler, body, self._settings.dialect)
        except Exception as error:
            self._report_error(opinion, origin, error)
            return "error"

    # -- what is reported -----------------------------------------------------------

    def _report(self, difference: Difference) -> None:
        """Log *difference* if it is news, and write it to the feed."""
        decisive = difference.decisive
        # Not the rule itself: it may be long.
        rule = hash(decisive.rule)
        origin = difference.policy.origin
        key = (difference.parser, origin, decisive.reason, rule, decisive.allowed)
        known = self._reported.get(key)
        if known is None:
            known = self._remember(key, difference.known(self._class_of(difference)))
            self._log_difference(difference)
        if self._feed is not None:
            self._feed.write({"url": difference.url, "agents": difference.agents, **known})
        if self._recorder is not None:
            self._recorder.compared(difference.policy, difference.disagreement(known["difference"]))

    def _log_difference(self, difference: Difference) -> None:
        logger.info(
            "%(url)s is %(ours)s; by %(parser)s it is %(theirs)s",
            {
                "url": printable(difference.url),
                "ours": difference.ours,
                "parser": difference.parser,
                "theirs": _told(difference.theirs),
            },
            extra={"spider": self._crawler.spider},
        )

    def _class_of(self, difference: Difference) -> str | None:
        """On which known point of the standard the parsers differ, if it is one.

        Finding it takes to read the file some twenty times, so nobody looks in
        large ones.
        """
        decisive, policy = difference.decisive, difference.policy
        assert policy.copy is not None
        body = body_to_read(policy.copy.result, self._settings.max_size)
        if cost_of(body) > _MOST_TO_CLASSIFY:
            return None
        theirs = not decisive.allowed
        found = class_of_difference(body, difference.url, difference.agents, theirs, policy.dialect)
        # It is written for the documentation.
        return None if found is None else found.replace("``", "")

    def _report_error(self, opinion: _Opinion, origin: Origin, error: Exception) -> None:
        key = (opinion.name, origin)
        if key in self._reported:
            return
        self._remember(key, {})
        logger.warning(
            "%(parser)s failed on %(url)s (%(error)s): it has no second opinion",
            {
                "parser": opinion.name,
                "url": printable(origin.robots_url),
                "error": printable(f"{type(error).__name__}: {error}"),
            },
            exc_info=error,
            extra={"spider": self._crawler.spider},
        )

    def _remember(self, key: _Key, known: dict[str, object]) -> dict[str, object]:
        if len(self._reported) >= _MAX_REPORTED:
            del self._reported[next(iter(self._reported))]
        self._reported[key] = known
        return known


class Difference(NamedTuple):
    """A decision, *ours*, on which a *parser* has another opinion, *theirs*."""

    url: str
    agents: tuple[str, ...]
    policy: Policy
    ours: Verdict
    parser: str
    theirs: Verdict

    @property
    def decisive(self) -> Verdict:
        """That of both verdicts which names a line: our parser's, whichever of the two it is."""
        return self.theirs if self.theirs.rule else self.ours

    def disagreement(self, known_as: object) -> Disagreement:
        """The same for the report, where everything has to be printable."""
        return Disagreement(
            url=printable(self.url),
            parser=printable(self.parser),
            ours=self.ours.allowed,
            theirs=self.theirs.allowed,
            line=self.decisive.line,
            known_class=str(known_as or ""),
        )

    def known(self, known_as: str | None) -> dict[str, object]:
        """What its line of the feed has in common with all of the same origin and rule.

        *known_as* is the class of the difference.
        """
        decisive = self.decisive
        return {
            "allowed": self.ours.allowed,
            "parser": self.parser,
            "parser_allowed": self.theirs.allowed,
            "reason": decisive.reason.value,
            "rule": str(decisive.rule) if decisive.rule else None,
            "line": decisive.line or None,
            "origin": str(self.policy.origin),
            "difference": known_as,
        }


def in_sample(url: str, share: float) -> bool:
    """Whether *url* is in the sample of so large a *share*.

    The URL alone decides, so that crawls can be compared with each other.
    """
    if share >= 1:
        return True
    digest = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _allows(read: RobotsTxt | ExternalRules, url: str, agents: Sequence[str]) -> bool:
    """What the parser says that *read* a file so. Raises whatever that raises."""
    # Not allowed(): that looks first whether the URL is that of the robots.txt, which
    # takes as long as everything else here.
    return (
        read.answer(url, agents) if isinstance(read, ExternalRules) else read.allowed(url, agents)
    )


def _theirs(
    read: RobotsTxt | ExternalRules, url: str, agents: Sequence[str], allowed: bool
) -> Verdict:
    """The same with what it rests on, where that is known: the answer was *allowed*."""
    if isinstance(read, ExternalRules):
        return Verdict(allowed, Reason.OTHER_PARSER)
    return read.verdict(url, agents)


def _told(verdict: Verdict) -> str:
    """*verdict*, without a reason where its parser names none."""
    if verdict.reason is Reason.OTHER_PARSER:
        return "allowed" if verdict.allowed else "disallowed"
    return str(verdict)
