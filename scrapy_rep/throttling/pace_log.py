"""What people are told about sites that ask for a delay: log lines and stats."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy_rep.observers.stats import count
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import RequestRate
from scrapy_rep.rep.text import printable, span

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.throttling.throttle import Throttle

logger = logging.getLogger(__name__)

# Sites that ask for more seconds than this get a line, one each,
_SLOW = 1.0
# so many seconds after a request was held: by then, most that will be held are.
_TELL_AFTER = 1.0
# So many sites are remembered.
_MAX_SITES = 10_000
# So many of the slowest sites are named at the end.
_NAMED = 10


class PaceLog:
    """Lines and stats of one crawl."""

    def __init__(self, crawler: Crawler, throttle: Throttle) -> None:
        self._crawler = crawler
        self._throttle = throttle
        #: Who asked for the delay of each slow site.
        self._why: dict[str, str] = {}
        #: Those of them that a line is about, or will be.
        self._told: set[str] = set()

    def asked(
        self, policy: Policy, agents: tuple[str, ...], wanted: float, delay: float, *, is_new: bool
    ) -> None:
        """*policy* asks for *wanted* seconds, or for others than before, and gets *delay*."""
        capped = delay < wanted
        count(self._crawler, "robotstxt/paced_count", is_new)
        count(self._crawler, "robotstxt/paced_capped_count", capped)
        url = printable(policy.origin.robots_url)
        because = " (REP_CRAWL_DELAY_MAX)" if capped else ""
        message = "%s asks for %g s between two requests, and gets %g s%s"
        level = logging.INFO if capped else logging.DEBUG
        self._log(level, message, url, wanted, delay, because)
        self._note(policy.origin.host, delay, f"by {_line(policy, agents, wanted)}{url}")

    def answered(self, site: str, delay: float, why: str) -> None:
        """*site* asks for *delay* by its answers; *why* says by which."""
        message = "%s asks for %g s between two requests %s"
        self._log(logging.DEBUG, message, printable(site), delay, why)
        self._note(site, delay, why)

    def _note(self, site: str, delay: float, why: str) -> None:
        if delay <= _SLOW:
            return
        if len(self._why) >= _MAX_SITES and site not in self._why:
            self._why.clear()
            self._told.clear()
        self._why[site] = why

    def held(self, site: str) -> None:
        """A request is held at *site*."""
        if site in self._why and site not in self._told:
            self._told.add(site)
            self._throttle.call_later(_TELL_AFTER, self._tell, site)

    def _tell(self, site: str) -> None:
        delay, held = self._throttle.delay(site), self._throttle.waiting(site)
        if delay > _SLOW and site in self._why:
            message = "%s asks for %g s between two requests %s. Requests held: %d, for %s"
            time = span(held * delay)
            self._log(logging.INFO, message, printable(site), delay, self._why[site], held, time)

    def close(self) -> None:
        """The crawl is over: put the slowest sites into the stats."""
        slowest = [
            {
                "site": printable(site),
                "requests": spent.requests,
                "seconds": round(spent.seconds, 1),
                "why": self._why.get(site, ""),
            }
            for site, spent in self._throttle.slowest(_NAMED)
        ]
        assert self._crawler.stats is not None
        if slowest:
            self._crawler.stats.set_value("robotstxt/slowest_sites", slowest)
        # No more lines.
        self._why.clear()

    def _log(self, level: int, message: str, *values: object) -> None:
        logger.log(level, message, *values, extra={"spider": self._crawler.spider})


def _line(policy: Policy, agents: tuple[str, ...], wanted: float) -> str:
    """Which line of the robots.txt asks for *wanted* seconds, where it is one of those for us."""
    assert policy.robots is not None
    for record in policy.robots.records_for(agents, (Field.CRAWL_DELAY, Field.REQUEST_RATE)):
        value = record.value.delay if isinstance(record.value, RequestRate) else record.value
        if value == wanted:
            return f'"{record}" (line {record.line}) in '
    return ""
