"""One request in: let through, or refused with the verdict."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.utils.python import global_object_name

from scrapy_rep.exceptions import ConfigurationError, RobotsForbidden
from scrapy_rep.keeper import PolicyKeeper
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import InvalidURL, Origin, is_robots_txt
from scrapy_rep.rep.verdict import Reason, Verdict
from scrapy_rep.settings import RepSettings, downloader_middlewares, obeys_robotstxt
from scrapy_rep.stats import count
from scrapy_rep.tokens import AgentTokens

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

# What has a robots.txt: RFC 9309 §2.3 names HTTP and FTP as examples.
_SCHEMES = ("http:", "https:", "ftp:")


class RepMiddleware:
    """The downloader middleware that takes the place of Scrapy's own.

    Use :class:`scrapy_rep.Addon` to enable it, or set both::

        ROBOTSTXT_OBEY = True
        DOWNLOADER_MIDDLEWARES = {
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            "scrapy_rep.RepMiddleware": 100,
        }
    """

    def __init__(self, crawler: Crawler, clock: Callable[[], float] = time.time) -> None:
        if not obeys_robotstxt(crawler.settings):
            raise NotConfigured
        _check_alone(crawler)
        self._crawler = crawler
        self._settings = RepSettings.read(crawler.settings)
        self._tokens = AgentTokens(self._settings, crawler.spider)
        self._clock = clock
        self._keeper = PolicyKeeper(crawler, self._settings, clock)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RepMiddleware:
        """Made by Scrapy. Raises
        :exc:`~scrapy_rep.exceptions.ConfigurationError` for settings that make
        no sense."""
        return cls(crawler)

    def process_request(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Let *request* through, or raise :exc:`~scrapy_rep.RobotsForbidden`.

        Waits only where the robots.txt has to be fetched first.
        """
        if request.meta.get("dont_obey_robotstxt") or not request.url.startswith(_SCHEMES):
            return None
        try:
            origin = Origin.of(request.url)
        except InvalidURL as error:
            verdict = Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))
            raise self._forbidden(request, verdict) from None
        policy = self._keeper.current(origin)
        if policy is None:
            if is_robots_txt(request.url, self._settings.dialect):
                # Allowed whatever is in it, so not asked for first.
                return None
            return self._obtain_and_judge(origin, request)
        self._judge(policy, request)
        return None

    async def _obtain_and_judge(self, origin: Origin, request: Request) -> None:
        self._judge(await self._keeper.obtain(origin, request), request)

    def _judge(self, policy: Policy, request: Request) -> None:
        agents = self._tokens.of(request)
        if not policy.allowed(request.url, agents):
            verdict = policy.verdict(request.url, agents, now=self._clock())
            raise self._forbidden(request, verdict)

    def _forbidden(self, request: Request, verdict: Verdict) -> RobotsForbidden:
        logger.debug(
            "Forbidden by robots.txt: %(request)s is %(verdict)s",
            {"request": request, "verdict": verdict},
            extra={"spider": self._crawler.spider},
        )
        count(self._crawler, "robotstxt/forbidden")
        count(self._crawler, f"robotstxt/forbidden/{verdict.reason.value}")
        return RobotsForbidden(verdict)


def _check_alone(crawler: Crawler) -> None:
    """Refuse to start beside a middleware that does the same by other rules."""
    for middleware in downloader_middlewares(crawler.settings):
        if isinstance(middleware, type) and issubclass(middleware, RobotsTxtMiddleware):
            path = global_object_name(middleware)
            raise ConfigurationError(
                f"{path} and scrapy_rep.RepMiddleware are both enabled, and would obey "
                f"robots.txt by different rules. Switch one of them off: add "
                f'"{path}": None to DOWNLOADER_MIDDLEWARES to keep scrapy-rep'
            )
