"""What each specification says, as data.

Here may live: one value per point on which specifications differ, and the
values themselves. Here may not live: code that acts on them; that stands in
the file that owns the point, and reads the value from the dialect it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

#: RFC 9309 §2.5: a parsing limit "MUST be at least 500 kibibytes".
MIN_PARSED_SIZE = 500 * 1024


class Access(Enum):
    """What the result of a fetch lets a crawler do (RFC 9309 §2.3.1)."""

    #: §2.3.1.1 Successful: follow the rules that can be parsed.
    SUCCESSFUL = "successful"
    #: §2.3.1.3 Unavailable: the crawler may access anything.
    UNAVAILABLE = "unavailable"
    #: §2.3.1.4 Unreachable: complete disallow, until it can be reached.
    UNREACHABLE = "unreachable"
    #: The server's answer itself keeps crawlers out; not a result of RFC 9309,
    #: but of other dialects and of ``REP_STATUS_OVERRIDES``.
    DISALLOWED = "disallowed"


class PathForm(Enum):
    """How URLs and patterns are brought into the form that is compared."""

    #: RFC 9309 §2.2.2: percent-encoding made equal on both sides.
    CANONICAL = "canonical"
    #: The reference library: URLs as they come, patterns escaped one way.
    VERBATIM = "verbatim"


@dataclass(frozen=True, slots=True)
class StatusRule:
    """HTTP statuses *first* to *last*, both included, mean *access*."""

    first: int
    last: int
    access: Access


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to read robots.txt.

    A status that no entry of :attr:`statuses` covers, and any failure to get
    an answer, is :attr:`Access.UNREACHABLE` (RFC 9309 §2.3.1.4).
    """

    name: str

    # lines.py
    #: Octets of a file that are read where nobody says otherwise, ``None`` for all.
    max_size: int | None
    #: Decode a file that starts with a UTF-16 byte order mark.
    utf16: bool
    #: Octets of a line that are read; what follows them is ignored.
    max_line: int | None
    #: The first NUL ends its line (C strings), instead of being an octet.
    nul_ends_line: bool
    #: ``Disallowed:`` counts as ``Disallow:``, and so on.
    keys_by_prefix: bool

    # agents.py
    #: Product tokens may contain digits.
    digits_in_tokens: bool

    # urls.py, matching.py
    path_form: PathForm
    #: ``/robots.txt`` itself is allowed whatever the rules say.
    robots_txt_allowed: bool
    #: A rule without a value matches everything with no octet, and so is the
    #: deciding line where nothing longer matches. It never refuses.
    empty_rules_match: bool

    # access.py
    statuses: tuple[StatusRule, ...]

    # freshness
    #: Seconds that a copy may be used.
    lifetime: float


#: RFC 9309 with the leniency that real files need.
RFC9309 = Dialect(
    name="rfc9309",
    max_size=MIN_PARSED_SIZE,
    utf16=True,
    max_line=None,
    nul_ends_line=False,
    keys_by_prefix=False,
    digits_in_tokens=True,
    path_form=PathForm.CANONICAL,
    robots_txt_allowed=True,
    empty_rules_match=False,
    statuses=(
        StatusRule(200, 299, Access.SUCCESSFUL),
        StatusRule(400, 499, Access.UNAVAILABLE),
    ),
    lifetime=24 * 3600,
)

#: Google's open-source library, to the bit.
GOOGLE = Dialect(
    name="google",
    max_size=None,
    utf16=False,
    # robots.cc: a buffer of 2083 * 8 octets, the last one for the final NUL.
    max_line=2083 * 8 - 1,
    nul_ends_line=True,
    keys_by_prefix=True,
    digits_in_tokens=False,
    path_form=PathForm.VERBATIM,
    robots_txt_allowed=False,
    empty_rules_match=True,
    statuses=(
        StatusRule(200, 299, Access.SUCCESSFUL),
        StatusRule(429, 429, Access.UNREACHABLE),
        StatusRule(400, 499, Access.UNAVAILABLE),
    ),
    lifetime=24 * 3600,
)

#: By the name that ``REP_DIALECT`` takes.
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (RFC9309, GOOGLE)}
