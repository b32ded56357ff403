"""What a crawl of the demo came to, site by site, and how it differs from what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from scrapy import Request

from scrapy_rep.cli.demo.crawl import Outcome, RobotsAnswer, Witness
from scrapy_rep.cli.demo.serving import ServedSite
from scrapy_rep.cli.demo.sites import Page, RefusesConnections
from scrapy_rep.rep.urls import ROBOTS_TXT
from scrapy_rep.rep.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class SiteResult:
    """One site: what the spider saw of it, and what its server saw."""

    served: ServedSite
    #: Of each page of the site, in the same order.
    outcomes: tuple[tuple[Outcome, ...], ...]
    #: The answers on the way to the rules, redirects first. Empty if none came.
    answers: tuple[RobotsAnswer, ...]

    @property
    def fetched(self) -> int:
        """How many responses to page requests the spider got."""
        return sum(outcome.status is not None for outcome in self._all())

    @property
    def verdicts(self) -> list[Verdict]:
        """Why pages were refused."""
        return [outcome.verdict for outcome in self._all() if outcome.verdict is not None]

    def _all(self) -> Iterator[Outcome]:
        for outcomes in self.outcomes:
            yield from outcomes

    def differences(self) -> Iterator[str]:
        """What is not as expected, a line each."""
        site = self.served.site
        for page, outcomes in zip(site.pages, self.outcomes, strict=True):
            yield from _spider_differences(page, outcomes)
        yield from _server_differences(self.served)


def page_url(served: ServedSite, page: Page) -> str:
    """The URL of *page*, as Scrapy writes it."""
    return Request(served.server.url + page.path).url


def site_results(sites: Iterable[ServedSite], witness: Witness) -> list[SiteResult]:
    """Sort what *witness* has seen by site."""
    return [
        SiteResult(
            served,
            tuple(
                tuple(witness.outcomes.get(page_url(served, page), ()))
                for page in served.site.pages
            ),
            tuple(_answers(served.server.url + ROBOTS_TXT, witness)),
        )
        for served in sites
    ]


def because(verdict: Verdict) -> str:
    """What *verdict* rests on, in short: "line 3: Disallow: /private/"."""
    if verdict.reason is Reason.RULE:
        return f"line {verdict.line}: {verdict.rule}"
    return f"{verdict.reason.value}: {verdict.detail}" if verdict.detail else verdict.reason.value


def _answers(url: str, witness: Witness) -> Iterator[RobotsAnswer]:
    """The answers that *url* and its redirects got."""
    asked: set[str] = set()
    while url in witness.answers and url not in asked:
        asked.add(url)
        answer = witness.answers[url]
        yield answer
        if not answer.location:
            return
        url = urljoin(url, answer.location)


def _spider_differences(page: Page, outcomes: Sequence[Outcome]) -> Iterator[str]:
    expected = "fetched" if page.allowed else "refused"
    if page.because:
        expected += f" ({page.because})"
    if len(outcomes) != 1:
        yield f"{page.path}: expected one outcome, {expected}, but there are {len(outcomes)}"
    for outcome in outcomes:
        if not _as_expected(page, outcome):
            yield f"{page.path}: expected {expected}, but {_in_words(outcome)}"


def _as_expected(page: Page, outcome: Outcome) -> bool:
    if page.allowed:
        return outcome.status == 200
    verdict = outcome.verdict
    return verdict is not None and because(verdict).startswith(page.because)


def _in_words(outcome: Outcome) -> str:
    if outcome.verdict is not None:
        return f"refused ({because(outcome.verdict)})"
    if outcome.status is not None:
        return f"fetched (status {outcome.status})"
    return f"failed ({outcome.error})"


def _server_differences(served: ServedSite) -> Iterator[str]:
    """Each allowed page once, each refused one never, robots.txt once, nothing else."""
    expected = _expected_requests(served)
    seen = Counter(served.server.targets())
    for target in expected | seen:
        if expected[target] != seen[target]:
            yield (
                f"{target}: expected {_times(expected[target])} at the server, "
                f"but it was asked for {_times(seen[target])}"
            )


def _expected_requests(served: ServedSite) -> Counter[str]:
    site = served.site
    expected: Counter[str] = Counter()
    if isinstance(site.robots, RefusesConnections):
        return expected
    expected.update(_target(page_url(served, page)) for page in site.pages if page.allowed)
    expected.update(path for path, _ in site.hops)
    # Nobody asks for the rules of a site without pages.
    expected[ROBOTS_TXT] += bool(site.pages) + site.redirects_here
    return expected


def _target(url: str) -> str:
    """What a server is asked for when *url* is fetched."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
