"""The crawl of the demo: Scrapy as anyone runs it, with the add-on, and a witness."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response
from scrapy.settings import Settings
from twisted.python.failure import Failure

from scrapy_rep.cli.crawling import take_installed_reactor
from scrapy_rep.cli.demo.sites import FETCH_TIMEOUT, USER_AGENT
from scrapy_rep.exceptions import RobotsForbidden
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.verdict import Verdict

_SETTINGS: dict[str, Any] = {
    # The whole installation of scrapy-rep.
    "ADDONS": {"scrapy_rep.Addon": 500},
    # Each run is to see what the sites answer.
    "REP_STORE": "memory",
    "USER_AGENT": USER_AGENT,
    "REP_FETCH_TIMEOUT": FETCH_TIMEOUT,
    # Pages that wait for the robots.txt that never comes hold nobody up, not
    # even where all sites share one host.
    "CONCURRENT_REQUESTS": 100,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
    # Scrapy starts as many tasks for each response, items or not; there are none.
    "CONCURRENT_ITEMS": 1,
    # The one of Scrapy's default looks at every host for each request.
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    # A page is asked for once or never; a second time is for us to notice.
    "RETRY_ENABLED": False,
    # No proxy of the environment knows our loopback addresses.
    "HTTPPROXY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Where Scrapy's log goes, from which level on; ``None`` twice for no log."""

    level: str | None = None
    file: str | None = None


NO_LOG = LogOptions()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one request for a page: exactly one of these is set."""

    status: int | None = None
    verdict: Verdict | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """One answer to a robots.txt request, as the downloader got it.

    *octets* is the length of the body as sent, or as far as it was read if *cut*.
    """

    status: int
    octets: int
    cut: bool
    encoding: str
    location: str


@dataclass
class Witness:
    """What the spider sees: outcomes by the URL of the page, answers by that of the file."""

    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    answers: dict[str, RobotsAnswer] = field(default_factory=dict)
    #: What Scrapy says of the end of the crawl: "finished", if all went well.
    finish_reason: str = "not started"


def crawl(urls: Sequence[str], log: LogOptions, seen: Callable[[str, Outcome], None]) -> Witness:
    """Crawl *urls*, in this process, once in its life: a reactor runs only once.

    *seen* is called with each URL and outcome. Raises what Scrapy raises when
    it cannot start. What an interrupt does is for whoever called to say.
    """
    witness = Witness()
    process = CrawlerProcess(_settings(log))
    failures: list[Failure] = []
    crawling = process.crawl(DemoSpider, urls=urls, witness=witness, seen=seen)
    crawling.addErrback(failures.append)
    process.start(install_signal_handlers=False)
    if failures:
        failures[0].raiseException()
    return witness


def _settings(log: LogOptions) -> Settings:
    """The demo's own settings, whatever project it runs in."""
    settings = Settings(_SETTINGS)
    settings.set("LOG_ENABLED", log != NO_LOG)
    if log.level:
        settings.set("LOG_LEVEL", log.level)
    settings.set("LOG_FILE", log.file)
    take_installed_reactor(settings)
    return settings


class DemoSpider(Spider):
    """Asks for each URL once, and reports what came of it."""

    name = "robots-demo"

    def __init__(
        self, urls: Sequence[str], witness: Witness, seen: Callable[[str, Outcome], None]
    ) -> None:
        super().__init__()
        self._urls = urls
        self._witness = witness
        self._seen = seen

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> DemoSpider:
        """Made by Scrapy."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.downloaded, signals.response_downloaded)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """All requests, none of which is left out for being like another."""
        for url in self._urls:
            yield Request(
                url,
                callback=self.fetched,
                errback=self.failed,
                cb_kwargs={"asked": url},
                dont_filter=True,
                meta={"handle_httpstatus_all": True, "dont_redirect": True},
            )

    def fetched(self, response: Response, asked: str) -> None:
        """A page is there."""
        self._note(asked, Outcome(status=response.status))

    def failed(self, failure: Failure) -> None:
        """A page was refused, or did not come."""
        asked: str = failure.request.cb_kwargs["asked"]  # type: ignore[attr-defined]
        error = failure.value
        if isinstance(error, RobotsForbidden):
            self._note(asked, Outcome(verdict=error.verdict))
        else:
            self._note(asked, Outcome(error=printable(f"{type(error).__name__}: {error}")))

    def downloaded(self, response: Response, request: Request) -> None:
        """Signal response_downloaded: anything has arrived, a robots.txt too."""
        if "asked" in request.cb_kwargs:
            return
        self._witness.answers[request.url] = RobotsAnswer(
            status=response.status,
            octets=len(response.body),
            cut="download_stopped" in response.flags,
            encoding=_header(response, "Content-Encoding"),
            location=_header(response, "Location"),
        )

    def closed(self, reason: str) -> None:
        """The end of the crawl."""
        self._witness.finish_reason = reason

    def _note(self, url: str, outcome: Outcome) -> None:
        self._witness.outcomes.setdefault(url, []).append(outcome)
        self._seen(url, outcome)


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")
