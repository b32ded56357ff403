"""The headers of a response that say what its page may be used for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from scrapy_rep.pages.robots_tag import MAX_HEADER, complete_members, read_rules
from scrapy_rep.pages.statements import REFUSED_BY_TDM, Source, Stated, Statement, TdmPolicy
from scrapy_rep.rep.directives.purposes import purposes_of
from scrapy_rep.rep.parsing.records import read_usage
from scrapy_rep.rep.text import printable

Lines = Callable[[str], Iterable[bytes]]  #: The values of the header with a name, a line each.

#: The headers without which :func:`header_statements` finds nothing.
STATING_HEADERS = ("Robots-Tag", "X-Robots-Tag", "Content-Usage", "tdm-reservation", "tdm-policy")

_RESERVATIONS = {"0": True, "1": False}


def header_statements(lines: Lines, tokens: tuple[str, ...]) -> Iterator[Stated]:
    """The statements of a response's headers that are for everyone or for one of *tokens*.

    *tokens* are product tokens in lower case.
    """
    for name in ("Robots-Tag", "X-Robots-Tag"):
        for value in _read(lines(name)):
            yield from read_rules(value, Source.HEADER, name, tokens)
    yield from _content_usage(list(_read(lines("Content-Usage"))))
    for value in _read(lines("tdm-reservation")):
        yield from tdm_reservation(value, Source.HEADER, "tdm-reservation")
    yield from TdmPolicy.read(next(_read(lines("tdm-policy")), None))


def _read(values: Iterable[bytes]) -> Iterator[str]:
    """The *values* of one header, up to the limit for all of them together."""
    left = MAX_HEADER
    for value in values:
        yield complete_members(value.decode("latin-1"), left)
        left -= len(value)
        if left <= 0:
            break


def _content_usage(values: list[str]) -> Iterator[Statement]:
    """draft-ietf-aipref-vocab: "a Token with a value of y" or n; all else is unknown.

    Lines of one header are one dictionary, RFC 9651 §4.2: of equal keys the last one counts.
    But no line more may permit more, so what any of them refuses is refused.
    """
    yield from _preferences(", ".join(filter(None, values)))
    for value in values if len(values) > 1 else ():
        yield from (each for each in _preferences(value) if not each.allows)


def _preferences(value: str) -> Iterator[Statement]:
    for label, allows in (read_usage(value.encode("latin-1").strip(b" ")) or {}).items():
        if allows is not None:
            text = f"Content-Usage: {printable(label)}={'y' if allows else 'n'}"
            yield Statement(Source.HEADER, text, purposes_of(label), allows)


def tdm_reservation(value: str, source: Source, name: str) -> Iterator[Statement]:
    """The statement of a TDM reservation; *name* is that of the header or tag, for people.

    "Other values are considered protocol errors. In such a case the TDM Agents MUST consider
    that tdm-reservation is unset." A proxy may have joined two headers by a comma.
    """
    for part in value.split(","):
        allows = _RESERVATIONS.get(part.strip())
        if allows is not None:
            text = f"{name}: {part.strip()}"
            yield Statement(source, text, REFUSED_BY_TDM, allows, is_tdm=True)
