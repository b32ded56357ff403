"""The rules of a crawl's pages: responses are annotated with them, or refused by them.

Here may live: which responses have page rules, and what is done with them. Here may not live:
how rules are read, and how tdmrep.json is fetched (:mod:`.tdm_files`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, HtmlResponse, Response

from scrapy_rep.observers.stats import count
from scrapy_rep.pages.evaluate import evaluate
from scrapy_rep.pages.headers import STATING_HEADERS, header_statements, header_tdm_policy
from scrapy_rep.pages.html import meta_statements, meta_tags, meta_tdm_policy
from scrapy_rep.pages.robots_txt import RobotsTxtStatements
from scrapy_rep.pages.statements import PAGE_RULES, USES, PageRules
from scrapy_rep.rep.directives.purposes import PURPOSES, canonical_purpose
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.settings import PageRuleMode

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.exceptions import RobotsForbidden
    from scrapy_rep.pages.tdm_files import TdmFiles
    from scrapy_rep.settings import RepSettings
    from scrapy_rep.tokens import AgentTokens

logger = logging.getLogger(__name__)

_HEADERS = frozenset(map(Headers().normkey, STATING_HEADERS))
_HTML = (b"text/html", b"application/xhtml+xml")


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
        self._purposes: tuple[str, ...] = ()
        declared = tuple(dict.fromkeys(map(canonical_purpose, settings.honoured.purposes)))
        if settings.page_rules is PageRuleMode.OBEY:
            self._purposes = declared
            if not declared:
                crawler.signals.connect(self._warn, signals.spider_opened)
            else:
                crawler.signals.connect(self._headers_received, signals.headers_received)
        others = tuple(purpose for purpose in declared if purpose not in USES)
        self._uses = USES + others
        self._robots_txt = RobotsTxtStatements(PURPOSES + others)
        self._nothing = evaluate((), 0.0, uses=self._uses)
        # The pages of a site have the same statements.
        self._evaluate = lru_cache(maxsize=256)(evaluate)

    def _warn(self) -> None:
        logger.warning(
            "REP_PAGE_RULES is obey, and REP_PURPOSES is empty. No response is refused by its "
            "headers or meta tags. Say what the crawl is for: REP_PURPOSES = ['search']",
            extra={"spider": self._crawler.spider},
        )

    # -- for the middleware -----------------------------------------------------------

    def process_response(self, request: Request, response: Response) -> Response:
        """Annotate *response*; raise :exc:`~scrapy_rep.RobotsForbidden` if it is reserved.

        Only a successful response is a page: the rules of others are about an error message.
        """
        if not _is_page(request) or not 200 <= response.status < 300:
            return response
        agents = self._tokens.of(request)
        is_html = isinstance(response, HtmlResponse)
        tags = meta_tags(response.body, _lower(agents)) if is_html else []
        policy = self._policy_of(request)
        rules = self._rules(policy, request, agents, response.headers, tags)
        request.meta[PAGE_RULES] = rules
        if rules.statements:
            self._count(rules)
            self._check(policy, request, rules)
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
            self._count(refusing)
            self._check(self._policy_of(request), request, refusing)
        # An error, for which the other middlewares may try again. There is no body to decode.
        response.headers.pop("Content-Encoding", None)
        return response

    def _headers_received(self, headers: Headers, request: Request) -> None:
        """Stop the download of a body that its headers reserve, whatever may be in it."""
        # A redirect is not a page; the status is not known here.
        if not _is_page(request) or b"Location" in headers:
            return
        rules = self._rules(
            self._policy_of(request),
            request,
            self._tokens.of(request),
            headers,
            # A tag may lift a TDM reservation, and nothing else.
            may_be_lifted=(headers.get("Content-Type") or _HTML[0]).lower().startswith(_HTML),
        )
        if self._refuses_all(rules):
            request.meta[_STOPPED] = rules
            raise StopDownload(fail=True)

    # -- what is decided --------------------------------------------------------------

    def _rules(
        self,
        policy: Policy | None,
        request: Request,
        agents: tuple[str, ...],
        headers: Headers,
        tags: Sequence[tuple[str, str]] = (),
        *,
        may_be_lifted: bool = False,
    ) -> PageRules:
        url = request.url
        file = self._tdm_files.file(policy, request) if self._tdm_files is not None else None
        by_file = file.statement(url) if file is not None else None
        statements = [*self._robots_txt.of(policy, url, agents)]
        if by_file is not None:
            statements.append(by_file)
        # Quicker than to ask for each.
        if not _HEADERS.isdisjoint(headers):
            statements += header_statements(headers.getlist, _lower(agents))
        if tags:
            statements += meta_statements(tags, _lower(agents))
        if may_be_lifted:
            statements = [each for each in statements if not each.is_tdm]
        if not statements:
            return self._nothing
        now = self._clock() if any(each.since is not None for each in statements) else 0.0
        policies = (
            file.policy(url) if file is not None else None,
            header_tdm_policy(headers.getlist),
            meta_tdm_policy(tags),
        )
        return self._evaluate(tuple(statements), now, policies, self._uses)

    def _refuses_all(self, rules: PageRules) -> bool:
        """Whether no purpose of the crawl is left."""
        return bool(self._purposes) and not any(map(rules.allowed, self._purposes))

    def _check(self, policy: Policy | None, request: Request, rules: PageRules) -> None:
        if not self._refuses_all(rules):
            return
        origin = origin_or_verdict(request.url)
        verdict = Verdict(
            False,
            Reason.RESERVED,
            origin=None if isinstance(origin, Verdict) else origin,
            detail="; ".join(str(rules.verdict(purpose)) for purpose in self._purposes),
        )
        raise self._refused(policy, request, verdict)

    def _count(self, rules: PageRules) -> None:
        count(self._crawler, "robotstxt/page_rules/page_count")
        for use in rules.refused:
            count(self._crawler, f"robotstxt/page_rules/refused/{use}")


# Request meta key: the rules by which a download was stopped.
_STOPPED = "rep_page_rules_stopped"


def _is_page(request: Request) -> bool:
    return not request.meta.get("dont_obey_robotstxt")


@lru_cache(maxsize=64)
def _lower(agents: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(agent.lower() for agent in agents)
