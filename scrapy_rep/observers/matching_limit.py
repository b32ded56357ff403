"""One warning for each origin whose rules would take too long to try."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.observers.observer import Observer
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

logger = logging.getLogger(__name__)

# An origin that is forgotten is warned about again.
_MAX_ORIGINS = 1_000


class MatchingLimit(Observer):
    """Warns of :attr:`.Reason.MATCHING_LIMIT`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._warned: LocalCache[Origin, None] = LocalCache(_MAX_ORIGINS)

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Warn if this is the first such URL of its origin."""
        origin = verdict.origin
        if verdict.reason is not Reason.MATCHING_LIMIT or origin is None or origin in self._warned:
            return
        self._warned[origin] = None
        logger.warning(
            "Refused %(url)s %(because)s. Other URLs of this origin may be refused for the same "
            'reason, "matching-limit". To see the rules, run: scrapy robots fetch %(origin)s',
            {
                "url": printable(request.url),
                "because": str(verdict).removeprefix("disallowed "),
                "origin": printable(str(origin)),
            },
            extra={"spider": self._crawler.spider},
        )
