"""The tdmrep.json files of a crawl, kept as robots.txt files are.

Here may live: for which crawls and sites there is one. Here may not live: fetching, storing
and caching, which :class:`~scrapy_rep.policies.cache.PolicyCache` does for both files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scrapy import Request
from twisted.internet.defer import Deferred, succeed

from scrapy_rep.pages.statements import REFUSED_BY_TDM
from scrapy_rep.pages.tdmrep import TdmFile, TdmOrigin
from scrapy_rep.rep.directives.purposes import canonical_purpose
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import PageRuleMode

if TYPE_CHECKING:
    from scrapy_rep.settings import RepSettings
    from scrapy_rep.tokens import AgentTokens


def asks_for_tdm_file(settings: RepSettings) -> bool:
    """Whether the crawl fetches tdmrep.json files."""
    if settings.page_rules is PageRuleMode.OFF:
        return False
    if settings.tdm_file is not None:
        return settings.tdm_file
    return not REFUSED_BY_TDM.isdisjoint(map(canonical_purpose, settings.honoured.purposes))


class Files(Protocol):
    """Fetches and keeps files; see :class:`~scrapy_rep.policies.cache.PolicyCache`."""

    def usable(self, origin: Origin, asking: Request) -> Policy | None:
        """The policy of *origin* in memory, if it may be used."""

    def get(self, origin: Origin, asking: Request) -> Deferred[Policy]:
        """The policy of *origin*, fetched on behalf of *asking* if none can be used."""


class TdmFiles:
    """The tdmrep.json files of one crawl.

    A file that robots.txt refuses is not fetched. "Failure to provide access to such a
    representation implies that the origin server does not implement this protocol."
    """

    def __init__(self, files: Files, tokens: AgentTokens) -> None:
        self._files = files
        self._tokens = tokens

    def knows(self, policy: Policy, request: Request) -> bool:
        """Whether :meth:`file` need not be fetched first for *request*, by its *policy*."""
        origin = self._origin(policy, request)
        return origin is None or self._files.usable(origin, request) is not None

    def get(self, policy: Policy, request: Request) -> Deferred[Policy]:
        """Fires when the file of the site of *policy* is known, fetched for *request*.

        Fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        origin = self._origin(policy, request)
        return succeed(policy) if origin is None else self._files.get(origin, request)

    def file(self, policy: Policy | None, request: Request) -> TdmFile | None:
        """The file of the site of *policy*, if there is one."""
        origin = self._origin(policy, request) if policy is not None else None
        found = self._files.usable(origin, request) if origin is not None else None
        return found.rules if found is not None and isinstance(found.rules, TdmFile) else None

    def _origin(self, policy: Policy, request: Request) -> TdmOrigin | None:
        """``None`` where the file is not to be fetched."""
        origin = TdmOrigin.beside(policy.origin)
        allowed = policy.allowed(origin.robots_url, self._tokens.of(request))
        return origin if allowed else None
