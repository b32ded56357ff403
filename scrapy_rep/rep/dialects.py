"""What each specification says, as data.

Here may live: one value per point on which specifications differ, and the
values themselves. Here may not live: code that acts on them; that stands in
the file that owns the point, and reads the value from the dialect it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

#: RFC 9309 §2.5: a parsing limit "MUST be at least 500 kibibytes".
MIN_PARSED_SIZE = 500 * 1024

_DAY = 24 * 3600.0


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


class WhenUnreachable(Enum):
    """What becomes of a request whose origin's robots.txt is unreachable."""

    #: Refused (RFC 9309 §2.3.1.4: "MUST assume complete disallow").
    DISALLOW = "disallow"
    #: Kept, and asked about again when the robots.txt has been.
    DEFER = "defer"
    #: Let through.
    ALLOW = "allow"


class Naming(Enum):
    """How the value of a user-agent line says whom it is about."""

    #: By a product token at its start, which is compared as a whole.
    TOKEN = "token"
    #: By a name that is all of the value.
    WHOLE = "whole"
    #: By any text that our name is part of.
    SUBSTRING = "substring"


class Precedence(Enum):
    """Which of several rules that match decides."""

    #: The one with the longest pattern; of equals, the one that allows.
    LONGEST = "longest"
    #: The first one in the file.
    FIRST = "first"


class PathForm(Enum):
    """How URLs and patterns are brought into the form that is compared."""

    #: RFC 9309 §2.2.2: percent-encoding made equal on both sides.
    CANONICAL = "canonical"
    #: The draft of 1996, §3.2.2: all is decoded but ``%2F``.
    DECODED = "decoded"
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
    """One way to read robots.txt. Times are seconds, sizes bytes."""

    name: str

    # lines.py
    #: Bytes of a file that are read where nobody says otherwise, ``None`` for all.
    max_size: int | None
    #: Decode a file that starts with a UTF-16 byte order mark.
    utf16: bool
    #: Bytes of a line that are read; what follows them is ignored.
    max_line: int | None
    #: The first NUL ends its line (C strings), instead of being a byte.
    nul_ends_line: bool
    #: The typos and the missing colon that the reference library accepts.
    lenient_keys: bool
    #: ``Disallowed:`` counts as ``Disallow:``, and so on.
    keys_by_prefix: bool

    # agents.py
    naming: Naming
    #: Product tokens may contain digits.
    digits_in_tokens: bool
    #: A user-agent line without a name names the agent without a name, instead of nobody.
    empty_names: bool

    # robotstxt.py
    #: A blank line ends a group; a line that holds only a comment is not blank.
    blank_ends_group: bool
    #: There are Allow lines.
    allow_lines: bool

    # urls.py, matching.py
    path_form: PathForm
    #: ``*`` and ``$`` in patterns have a meaning.
    wildcards: bool
    precedence: Precedence
    #: ``Allow: /a/index.html`` also allows ``/a/``.
    index_pages: bool
    #: ``/robots.txt`` itself is allowed whatever the rules say.
    robots_txt_allowed: bool
    #: A rule without a value matches everything with no byte, and so is the
    #: deciding line where nothing longer matches. It never refuses.
    empty_rules_match: bool

    # access.py
    #: The first that covers a status says what it means.
    statuses: tuple[StatusRule, ...]
    #: What a status that none covers means, and that there is no answer.
    otherwise: Access
    #: How many redirects in a row are followed, and what it means if more come.
    max_redirects: int
    too_many_redirects: Access
    when_unreachable: WhenUnreachable

    # freshness.py
    #: How long a copy may be used where HTTP headers say nothing.
    lifetime: float
    #: How long at most, whatever they say; ``None`` where they decide.
    max_lifetime: float | None
    #: Whether they are asked at all.
    cache_headers: bool
    #: Whether a file goes on being used beyond its lifetime while the robots.txt is unreachable.
    stale_in_outage: bool
    #: For how long an origin without a copy may be unreachable before it counts as one without
    #: a robots.txt; infinite for good.
    grace: float


#: RFC 9309 with the leniency that real files need.
RFC9309 = Dialect(
    name="rfc9309",
    max_size=MIN_PARSED_SIZE,
    utf16=True,
    max_line=None,
    nul_ends_line=False,
    lenient_keys=True,
    keys_by_prefix=False,
    naming=Naming.TOKEN,
    digits_in_tokens=True,
    empty_names=False,
    # §2.2.4: what is no rule "MUST NOT interfere" with groups.
    blank_ends_group=False,
    allow_lines=True,
    path_form=PathForm.CANONICAL,
    wildcards=True,
    precedence=Precedence.LONGEST,
    index_pages=True,
    robots_txt_allowed=True,
    empty_rules_match=False,
    statuses=(
        StatusRule(200, 299, Access.SUCCESSFUL),
        StatusRule(400, 499, Access.UNAVAILABLE),
    ),
    # §2.3.1.4, 500-599; and what the standard leaves undefined (304 unasked,
    # a redirect to nowhere): what cannot be understood cannot allow anything.
    otherwise=Access.UNREACHABLE,
    # §2.3.1.2: "at least five consecutive redirects", and then "crawlers MAY
    # assume that the robots.txt is unavailable".
    max_redirects=5,
    too_many_redirects=Access.UNAVAILABLE,
    when_unreachable=WhenUnreachable.DISALLOW,
    # §2.4: "SHOULD NOT use the cached version for more than 24 hours".
    lifetime=_DAY,
    max_lifetime=_DAY,
    cache_headers=True,
    # §2.4: "unless the robots.txt is unreachable".
    stale_in_outage=True,
    # §2.3.1.4: "a reasonably long period of time (for example, 30 days)".
    grace=30 * _DAY,
)

#: Google's open-source library, to the bit.
GOOGLE = Dialect(
    name="google",
    max_size=None,
    utf16=False,
    # robots.cc: a buffer of 2083 * 8 bytes, the last one for the final NUL.
    max_line=2083 * 8 - 1,
    nul_ends_line=True,
    lenient_keys=True,
    keys_by_prefix=True,
    naming=Naming.TOKEN,
    digits_in_tokens=False,
    empty_names=True,
    blank_ends_group=False,
    allow_lines=True,
    path_form=PathForm.VERBATIM,
    wildcards=True,
    precedence=Precedence.LONGEST,
    index_pages=True,
    robots_txt_allowed=False,
    empty_rules_match=True,
    # As Google documents its crawlers; the library does not fetch.
    statuses=(
        StatusRule(200, 299, Access.SUCCESSFUL),
        StatusRule(429, 429, Access.UNREACHABLE),
        StatusRule(400, 499, Access.UNAVAILABLE),
    ),
    otherwise=Access.UNREACHABLE,
    max_redirects=5,
    too_many_redirects=Access.UNAVAILABLE,
    when_unreachable=WhenUnreachable.DISALLOW,
    lifetime=_DAY,
    max_lifetime=None,
    cache_headers=True,
    # "After 30 days", Google uses "the last cached copy", and without one it "assumes that
    # there are no crawl restrictions"; here the copy is used before that, too.
    stale_in_outage=True,
    grace=30 * _DAY,
)

#: The Internet-Draft of November 1996, "A Method for Robots Exclusion".
KOSTER1996 = Dialect(
    name="koster1996",
    max_size=MIN_PARSED_SIZE,
    utf16=True,
    max_line=None,
    nul_ends_line=False,
    lenient_keys=False,
    keys_by_prefix=False,
    # §3.2.1: "a simple name"; §3.3: agent = token.
    naming=Naming.WHOLE,
    digits_in_tokens=True,
    empty_names=False,
    # §3.2: records are "separated by blank lines".
    blank_ends_group=True,
    allow_lines=True,
    path_form=PathForm.DECODED,
    wildcards=False,
    # §3.2.2: "in the order they occur in the record. The first match found is used."
    precedence=Precedence.FIRST,
    index_pages=False,
    # §3: robots "must retrieve these instructions before visiting other URLs".
    robots_txt_allowed=True,
    empty_rules_match=False,
    # §3.1; "temporary failure" is any other that is not the client's.
    statuses=(
        StatusRule(200, 299, Access.SUCCESSFUL),
        StatusRule(401, 401, Access.DISALLOWED),
        StatusRule(403, 403, Access.DISALLOWED),
        StatusRule(429, 429, Access.UNREACHABLE),
        StatusRule(400, 499, Access.UNAVAILABLE),
    ),
    otherwise=Access.UNREACHABLE,
    # §3.1: "should follow the redirects until a resource can be found".
    max_redirects=20,
    too_many_redirects=Access.UNREACHABLE,
    # §3.1: "should defer visits to the site".
    when_unreachable=WhenUnreachable.DEFER,
    # §3.4: "robots should default to an expiry of 7 days".
    lifetime=7 * _DAY,
    max_lifetime=None,
    cache_headers=True,
    # §3.4: "must periodically verify the cached copy is fresh before using its contents".
    stale_in_outage=False,
    # §3.1: "until such time as the resource can be retrieved".
    grace=math.inf,
)

#: The consensus of June 1994, "A Standard for Robot Exclusion".
KOSTER1994 = Dialect(
    name="koster1994",
    max_size=MIN_PARSED_SIZE,
    utf16=True,
    max_line=None,
    nul_ends_line=False,
    lenient_keys=False,
    keys_by_prefix=False,
    # "A case insensitive substring match of the name without version
    # information is recommended."
    naming=Naming.SUBSTRING,
    digits_in_tokens=True,
    empty_names=False,
    blank_ends_group=True,
    # "Unrecognised headers are ignored", and this is one.
    allow_lines=False,
    # "any URL that starts with this value": it says nothing of encodings.
    path_form=PathForm.CANONICAL,
    wildcards=False,
    precedence=Precedence.FIRST,
    index_pages=False,
    robots_txt_allowed=True,
    empty_rules_match=False,
    # It knows a file or none: "all robots will consider themselves welcome".
    statuses=(StatusRule(200, 299, Access.SUCCESSFUL),),
    otherwise=Access.UNAVAILABLE,
    max_redirects=5,
    too_many_redirects=Access.UNAVAILABLE,
    when_unreachable=WhenUnreachable.ALLOW,
    lifetime=math.inf,
    max_lifetime=None,
    cache_headers=False,
    # It says nothing of either; a copy is used for the crawl.
    stale_in_outage=True,
    grace=30 * _DAY,
)

#: By the name that ``REP_DIALECT`` takes.
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (RFC9309, GOOGLE, KOSTER1996, KOSTER1994)
}
