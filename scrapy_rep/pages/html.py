"""Meta tags of an HTML page, and links that are not to be followed.

Most pages have no such tag, so bytes are looked at first, and only tags that matter are given
to the parser. draft-illyes-repext: "implementors should consider only the meta elements
specified in the head element". Many heads end early for a parser, by an image in a
``<noscript>`` for example, so all that stands before ``<body>`` counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from parsel import Selector

from scrapy_rep.pages.headers import tdm_reservation
from scrapy_rep.pages.robots_tag import MAX_HEADER, complete_members, read_rules
from scrapy_rep.pages.statements import Source, Stated, TdmPolicy
from scrapy_rep.rep.parsing.lines import UTF16_MARKS

MAX_HEAD = 64 * 1024  #: The bytes of a page in which meta tags are looked for.
_TDM_RESERVATION, _TDM_POLICY = "tdm-reservation", "tdm-policy"

_AFTER_NAME = (b">", b" ", b"\n", b"\r", b"\t", b"/")
# So many tags are looked up one by one.
_FEW = 8
# How text begins in which "<body" is not a tag, and ends.
_TEXT = (
    (b"<", b">"),
    (b"<!--", b"-->"),
    *((b"<" + name, b"</" + name) for name in (b"script", b"style", b"title", b"textarea")),
)

# What has to be told apart before <body>. Nothing in it can fail after it has begun, so no
# character is read twice. What is in a comment, a script or a title is text.
_META_TAG = rb"""<meta[\s/](?:[^>"']+|"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))*"""
_META = re.compile(_META_TAG, re.IGNORECASE)
_TOKEN = re.compile(
    rb"""
      <!--(?:-?>|.*?(?:--!?>|\Z))
    | <(script|style|title|textarea)\b(?:[^>]*/>|.*?(?:</\1|\Z))
    | (?P<body><body[\s/>])
    | (?P<meta>%s)
    """
    % _META_TAG,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def meta_tags(body: bytes, tokens: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names, in lower case, and values of the meta tags in *body* that are for us.

    *body* is that of an HTML page, in any encoding. *tokens* are product tokens in lower case.
    """
    needles = (b"robots", b"tdm-", *[token.encode() for token in tokens])
    head = _as_ascii(body[:MAX_HEAD])
    found = _plain_tags(head, needles)
    if found is None:
        found = _all_tags(head, needles)
    if not found:
        return []
    names = {"robots", _TDM_RESERVATION, _TDM_POLICY, *tokens}
    return [tag for tag in _parsed(b">".join([*found, b""])) if tag[0] in names]


def _all_tags(head: bytes, needles: Iterable[bytes]) -> list[bytes]:
    """The meta tags in *head*, without their ends, that have one of *needles*."""
    found: list[bytes] = []
    for token in _TOKEN.finditer(head):
        if token["body"]:
            break
        if tag := token["meta"]:
            lower = tag.lower()
            if any(needle in lower for needle in needles):
                found.append(tag)
    return found


def _plain_tags(head: bytes, needles: Iterable[bytes]) -> list[bytes] | None:
    """The same in a tenth of the time, where it is plain to see; ``None`` where it is not."""
    end = head.find(b"<body")
    if end < 0 or head[end + 5 : end + 6] not in _AFTER_NAME:
        return None
    lower = head[:end].lower()
    starts: set[int] = set()
    for needle in needles:
        place = lower.find(needle)
        while place >= 0:
            start = lower.rfind(b"<", 0, place)
            after = lower[start + 5 : start + 6]
            if lower[start : start + 5] != b"<meta" or after not in _AFTER_NAME:
                return None
            starts.add(start)
            if len(starts) > _FEW:
                return None
            place = lower.find(needle, place + 1)
    # Or the tag, or <body>, is text in one of these.
    for place in (end, *starts):
        for start_of, end_of in _TEXT:
            if lower.rfind(start_of, 0, place) > lower.rfind(end_of, 0, place):
                return None
    return [_META.match(head, start)[0] for start in sorted(starts)]  # type: ignore[index]


# The pages of a site have the same tags.
@lru_cache(maxsize=256)
def _parsed(tags: bytes) -> tuple[tuple[str, str], ...]:
    """The names, in lower case, and values of the meta elements in *tags*."""
    metas = Selector(text=tags.decode("utf-8", "replace"), type="html").xpath("//meta[@name]")
    # Selector.attrib raises if another attribute has a name that XML does not allow.
    return tuple(
        (_attribute(meta, "name").strip().lower(), _attribute(meta, "content")) for meta in metas
    )


def _attribute(element: Selector, name: str) -> str:
    return element.xpath(f"@{name}").get("")


def meta_statements(tags: Iterable[tuple[str, str]], tokens: tuple[str, ...]) -> Iterator[Stated]:
    """The statements in *tags*, as :func:`meta_tags` returns them."""
    policies = []
    for name, content in tags:
        shown = f'<meta name="{name}">'
        value = complete_members(content, MAX_HEADER)
        if name == _TDM_POLICY:
            policies.append(content)
        elif name == _TDM_RESERVATION:
            yield from tdm_reservation(value, Source.META, shown)
        else:
            yield from read_rules(value, Source.META, shown, tokens)
    yield from TdmPolicy.read(next(iter(policies), None))


def _as_ascii(head: bytes) -> bytes:
    """*head* so that ASCII characters are one byte each: UTF-16 is not."""
    if head.startswith(UTF16_MARKS):
        encoding = "utf-16"
    elif b"\0" in head[:2]:
        encoding = "utf-16-be" if head[:1] == b"\0" else "utf-16-le"
    else:
        return head
    return head.decode(encoding, "replace").encode("utf-8", "replace")


def links_not_to_follow(
    document: Selector, rels: frozenset[str], absolute: Callable[[str], str]
) -> set[str]:
    """The URLs to which all links of *document* have one of *rels*.

    *absolute* resolves the URL of a link, and raises :exc:`ValueError` for what is not one.
    """
    refused: set[str] = set()
    followed: set[str] = set()
    for link in document.xpath("//a[@href]|//area[@href]"):
        try:
            url = absolute(_attribute(link, "href"))
        except ValueError:
            continue
        words = _attribute(link, "rel").lower().split()
        (followed if rels.isdisjoint(words) else refused).add(url)
    return refused - followed
