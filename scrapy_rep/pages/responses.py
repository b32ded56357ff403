"""The rules of a crawl's pages: responses are annotated with them, or refused by them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, HtmlResponse, Response

from scrapy_rep.observers.stats import count
from scrapy_rep.pages.headers import STATING_HEADERS, header_statements
from scrapy_rep.pages.html import meta_statements, meta_tags
from scrapy_rep.pages.statements import (
    PAGE_RULES,
    USES,
    PageRules,
    Source,
    Stated,
    Statement,
    evaluate,
)
from scrapy_rep.rep.directives import purposes
from scrapy_rep.rep.parsing.agents import preferences
from scrapy_rep.rep.parsing.lines import may_have
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.settings import PageRuleMode

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.exceptions import RobotsForbidden
    from scrapy_rep.pages.tdmrep import TdmFiles
    from scrapy_rep.settings import RepSettings
    from scrapy_rep.tokens import AgentTokens

logger = logging.getLogger(__name__)

_HEADERS = frozenset(map(Headers().normkey, STATING_HEADERS))
_HTML = (b"text/html", b"application/xhtml+xml")
# Request meta keys: of Scrapy, and the rules by which a download was stopped.
_EXEMPT, _STOPPED = "dont_obey_robotstxt", "rep_page_rules_stopped"


class ResponseRules:
    """Annotates the responses of one crawl, and refuses those that are reserved.

    *policy_of* gives the policy for a request where it is known, *refused* counts a refusal and
    makes the exception. *clock* gives seconds since the epoch.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        tokens: AgentTokens,
        clock: Callable[[], float],
        policy_of: Callable[[Request], Policy | None],
        tdm_files: TdmFiles | None,
        refused: Callable[[Policy | None, Request, Verdict], RobotsForbidden],
    ) -> None:
        self._crawler = crawler
        self._tokens = tokens
        self._clock = clock
        self._policy_of = policy_of
        self._refused = refused
        self._tdm_files = tdm_files
        declared = tuple(dict.fromkeys(map(purposes.canonical_purpose, settings.honoured.purposes)))
        obeys = settings.page_rules is PageRuleMode.OBEY
        self._purposes = declared if obeys else ()
        if self._purposes:
            crawler.signals.connect(self._headers_received, signals.headers_received)
        elif obeys:
            crawler.signals.connect(self._warn, signals.spider_opened)
        others = tuple(purpose for purpose in declared if purpose not in USES)
        # The pages of a site have the same robots.txt and the same statements.
        in_robots_txt = partial(_preferences, purposes.PURPOSES + others)
        self._preferences = lru_cache(maxsize=1000)(in_robots_txt)
        self._evaluate = lru_cache(maxsize=256)(partial(evaluate, uses=USES + others))

    def _warn(self) -> None:
        logger.warning(
            "REP_PAGE_RULES is obey, and REP_PURPOSES is empty. No response is refused by its "
            "headers or meta tags. Say what the crawl is for: REP_PURPOSES = ['search']",
            extra={"spider": self._crawler.spider},
        )

    def process_response(self, request: Request, response: Response) -> Response:
        """Annotate *response*; raise :exc:`~scrapy_rep.RobotsForbidden` if it is reserved.

        Only a successful response is a page: the rules of others are about an error message.
        """
        if request.meta.get(_EXEMPT) or not 200 <= response.status < 300:
            return response
        is_html = isinstance(response, HtmlResponse)
        tags = meta_tags(response.body, preferences(self._tokens.of(request))) if is_html else []
        rules = self._evaluated(self._stated(request, response.headers, tags))
        request.meta[PAGE_RULES] = rules
        if rules.statements:
            self._check(request, rules)
        return response

    def process_exception(self, request: Request, exception: Exception) -> Response | None:
        """Refuse the request whose download :meth:`_headers_received` has stopped."""
        refusing = request.meta.pop(_STOPPED, None)
        if refusing is None or not isinstance(exception, StopDownload):
            return None
        response = exception.response
        assert response is not None
        if 200 <= response.status < 300:
            request.meta[PAGE_RULES] = refusing
            self._check(request, refusing)
        # An error, for which the other middlewares may try again. There is no body to decode.
        response.headers.pop("Content-Encoding", None)
        return response

    def _headers_received(self, headers: Headers, request: Request) -> None:
        """Stop the download of a body that its headers reserve, whatever may be in it."""
        # A redirect is not a page; the status is not known here.
        if request.meta.get(_EXEMPT) or b"Location" in headers:
            return
        stated = self._stated(request, headers)
        if (headers.get("Content-Type") or _HTML[0]).lower().startswith(_HTML):
            # A tag may lift a TDM reservation, and nothing else.
            stated = [each for each in stated if isinstance(each, Statement) and not each.is_tdm]
        rules = self._evaluated(stated)
        if self._refuses_all(rules):
            request.meta[_STOPPED] = rules
            raise StopDownload(fail=True)

    def _stated(
        self, request: Request, headers: Headers, tags: Sequence[tuple[str, str]] = ()
    ) -> list[Stated]:
        agents, policy = self._tokens.of(request), self._policy_of(request)
        stated: list[Stated] = []
        robots = policy.robots if policy is not None else None
        in_robots_txt = self._preferences(robots, agents) if robots is not None else None
        if in_robots_txt is not None:
            for purpose, record, allows in in_robots_txt.stated(request.url):
                text = f"{record} (line {record.line} of robots.txt)"
                stated.append(Statement(Source.ROBOTS_TXT, text, frozenset({purpose}), allows))
        if self._tdm_files is not None:
            stated += self._tdm_files.stated(policy, request)
        # Quicker than to ask for each.
        if not _HEADERS.isdisjoint(headers):
            stated += header_statements(headers.getlist, preferences(agents))
        return [*stated, *meta_statements(tags, preferences(agents))]

    def _evaluated(self, stated: list[Stated]) -> PageRules:
        # Most statements hold always: pages of any time have the same rules.
        timed = any(isinstance(each, Statement) and each.since is not None for each in stated)
        return self._evaluate(tuple(stated), self._clock() if timed else 0.0)

    def _refuses_all(self, rules: PageRules) -> bool:
        """Whether no purpose of the crawl is left."""
        return bool(self._purposes) and not any(map(rules.allowed, self._purposes))

    def _check(self, request: Request, rules: PageRules) -> None:
        """Count *rules*; raise :exc:`~scrapy_rep.RobotsForbidden` if they refuse *request*."""
        count(self._crawler, "robotstxt/page_rules/page_count")
        for use in rules.refused:
            count(self._crawler, f"robotstxt/page_rules/refused/{use}")
        if self._refuses_all(rules):
            origin = origin_or_verdict(request.url)
            verdict = Verdict(
                False,
                Reason.RESERVED,
                origin=origin if isinstance(origin, Origin) else None,
                detail="; ".join(str(rules.verdict(purpose)) for purpose in self._purposes),
            )
            raise self._refused(self._policy_of(request), request, verdict)


def _preferences(
    about: tuple[str, ...], robots: RobotsTxt, agents: tuple[str, ...]
) -> purposes.Preferences | None:
    """The preferences of *robots* for *agents*, *about* purposes; ``None`` for most files."""
    fields = purposes.PREFERENCE_FIELDS
    if not may_have(robots.body, robots.dialect, fields):
        return None
    return purposes.Preferences(robots.records_for(agents, fields), about)
