"""Product tokens: in user-agent lines, in User-Agent headers, and in settings.

RFC 9309 §2.2.1::

    product-token = identifier / "*"
    identifier    = 1*(%x2D / %x41-5A / %x5F / %x61-7A)

Here tokens may also contain digits: ``MJ12bot`` is the third most frequent agent in real files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..dialects import Dialect, Naming

#: The name of the group for all crawlers without their own group.
EVERYONE = "*"
#: One product token, or several in order of preference.
Agents = str | Sequence[str]

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN_WITHOUT_DIGITS = re.compile(r"[A-Za-z_-]+")
# A crawler that looks like a browser has its name in a comment, RFC 9309 §2.2.1:
#   User-Agent: Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)
_COMPATIBLE = re.compile(
    r"\(([^()]*;)?\s*compatible\s*;\s*([A-Za-z0-9_-]+)", re.ASCII | re.IGNORECASE
)


class AgentLine(NamedTuple):
    """A user-agent line: its product token, and its line from 1."""

    name: str
    line: int


def group_name(value: bytes, dialect: Dialect) -> str:
    """The name in the *value* of a user-agent line, as written; it can be ``*`` or empty.

    A product token ends before the first other byte: ``googlebot/1.2`` names ``googlebot``.
    """
    if dialect.naming is not Naming.TOKEN:
        # Not "backslashreplace", which adds letters.
        return value.decode("utf-8", "replace")
    # Leniency of the reference library: "* something" means "*".
    if value[:2].rstrip() == b"*":
        return EVERYONE
    token = _TOKEN if dialect.digits_in_tokens else _TOKEN_WITHOUT_DIGITS
    match = token.match(value.decode("latin-1"))
    return match.group() if match else ""


def names_among(name: str, agents: Collection[str], dialect: Dialect) -> list[str]:
    """Those of *agents*, which are in lower case, that *name* of a user-agent line names."""
    if not name:
        return [""] if dialect.empty_names and "" in agents else []
    name = lowered(name)
    if dialect.naming is not Naming.SUBSTRING or name == EVERYONE:
        return [name] if name in agents else []
    return [agent for agent in agents if agent in name and agent not in ("", EVERYONE)]


def lowered(name: str) -> str:
    """*name* with ASCII letters in lower case, because tokens are ASCII (RFC 9309 §2.2.1)."""
    if name.isascii():
        return name.lower()
    # In Unicode, "k" is also the lower case of the Kelvin sign.
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), name)


def preferences(agents: Agents) -> tuple[str, ...]:
    """*agents* in lower case (RFC 9309 §2.2.1: matching is case-insensitive), without "*"."""
    listed = (agents,) if isinstance(agents, str) else agents
    return tuple(lowered(agent) for agent in listed if agent != EVERYONE)


def as_key(agents: Agents) -> Agents:
    """*agents* as a key of a dictionary."""
    return agents if isinstance(agents, str) else tuple(agents)


def check_token(token: object) -> str:
    """Return *token*, or raise a :exc:`ValueError` with the problem if it is invalid."""
    if not isinstance(token, str):
        raise ValueError(f"{token!r} is not a valid product token: it is not a string")
    if not _TOKEN.fullmatch(token):
        raise ValueError(
            f"{token!r} is not a valid product token, so no group can match it. A token consists "
            f"of the characters a-z, A-Z, 0-9, '_' and '-', such as 'ExampleBot'"
        )
    return token


@lru_cache(maxsize=256)
def token_of_user_agent(header: str) -> str | None:
    """The product token in a User-Agent header, ``None`` if it does not name a crawler.

    It is the first product, or if that is ``Mozilla``, the word after ``compatible;``.

    >>> token_of_user_agent("ExampleBot/0.1 (+https://www.example.com/bot.html)")
    'ExampleBot'
    >>> token_of_user_agent("Mozilla/5.0 (compatible; ExampleBot/0.1; +https://example.com)")
    'ExampleBot'
    >>> token_of_user_agent("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101")
    """
    product, compatible = _TOKEN.match(header.strip()), _COMPATIBLE.search(header)
    tokens = (product and product.group(), compatible and compatible.group(2))
    return next((token for token in tokens if token and token.lower() != "mozilla"), None)
