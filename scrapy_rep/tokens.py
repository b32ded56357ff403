"""The product tokens of a request, which choose the group that applies to it."""

from __future__ import annotations

import logging

from scrapy import Request, Spider
from scrapy.utils.python import to_unicode

from scrapy_rep.engine import has_no_headers
from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.rep.parsing.agents import token_of_user_agent
from scrapy_rep.settings import RepSettings, tokens

logger = logging.getLogger(__name__)

#: Request meta key and spider attribute.
AGENT_TOKENS = "robots_agent_tokens"


class AgentTokens:
    """The product tokens of one spider's requests, in order of preference.

    The first of these that is set counts: request meta ``robots_agent_tokens``, spider attribute
    ``robots_agent_tokens``, ``REP_AGENT_TOKENS``, ``ROBOTSTXT_USER_AGENT``, and the User-Agent
    that is sent (header of the request, DEFAULT_REQUEST_HEADERS, ``user_agent`` of the spider,
    ``USER_AGENT``). Without any, only the ``*`` group applies.
    """

    def __init__(self, settings: RepSettings, spider: Spider | None) -> None:
        # The configured tokens; None if the User-Agent header determines them.
        self._declared: tuple[str, ...] | None = settings.agent_tokens or None
        of_spider = getattr(spider, AGENT_TOKENS, None)
        if of_spider is not None:
            name = f"spider.{AGENT_TOKENS}"
            self._declared = _checked(of_spider, name, ConfigurationError) or self._declared
        if self._declared is None and settings.robotstxt_user_agent:
            self._declared = _of_user_agent(settings.robotstxt_user_agent)
        self._header = header_sent_by_default(settings, spider)
        self._sent_by_default = _of_user_agent(self._header)
        # It has precedence over the header, but is not sent.
        self._named = settings.robotstxt_user_agent
        self._spider = spider

    def warn(self) -> None:
        """Log a warning if the User-Agent does not contain our product token."""
        header = self._header
        mine = self._sent_by_default if self._declared is None else self._declared
        if not mine:
            logger.warning(
                "The User-Agent %r does not name a crawler, so only the * group of a robots.txt "
                'applies. Set a name, for example USER_AGENT = "ExampleBot/1.0 '
                '(+https://www.example.com/bot.html)" or REP_AGENT_TOKENS = ["ExampleBot"].',
                self._named or header,
                extra={"spider": self._spider},
            )
        elif not any(token.lower() in header.lower() for token in mine):
            logger.warning(
                "The User-Agent %(header)r contains no configured product token (%(tokens)s). "
                "Site owners write rules for the names they see in their logs (RFC 9309 §2.2.1). "
                'Add the token to USER_AGENT: "%(token)s/1.0 (+https://www.example.com/bot.html)".',
                {"header": header, "tokens": ", ".join(mine), "token": mine[0]},
                extra={"spider": self._spider},
            )

    def of(self, request: Request) -> tuple[str, ...]:
        """The tokens for *request*.

        Raises :exc:`ValueError` for an invalid token in its meta.
        """
        if AGENT_TOKENS in request.meta:
            return _checked(request.meta[AGENT_TOKENS], f"request.meta[{AGENT_TOKENS!r}]")
        if self._declared is not None:
            return self._declared
        if has_no_headers(request) or not request.headers or "User-Agent" not in request.headers:
            return self._sent_by_default
        return _of_user_agent(to_unicode(request.headers["User-Agent"] or b"", "latin-1"))


def header_sent_by_default(settings: RepSettings, spider: Spider | None) -> str:
    """The User-Agent of requests without this header; empty if none is sent."""
    header = (
        settings.default_user_agent or getattr(spider, "user_agent", None) or settings.user_agent
    )
    return str(header or "")


def _checked(value: object, name: str, error: type[ValueError] = ValueError) -> tuple[str, ...]:
    try:
        return tokens(value)
    except ValueError as invalid:
        raise error(f"{name} = {value!r}: {invalid}") from None


def _of_user_agent(header: str | None) -> tuple[str, ...]:
    token = token_of_user_agent(header) if header else None
    return (token,) if token else ()
