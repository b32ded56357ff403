"""What each specification says, as data.

Here may live: one value per point on which specifications differ. Here may not live: code
that acts on the values; the file that owns a point reads its value from the given dialect.
"""

from __future__ import annotations

import math
from collections.abc import Collection
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
    """What happens to a request if the robots.txt of its origin is unreachable."""

    #: It is refused (RFC 9309 §2.3.1.4: "MUST assume complete disallow").
    DISALLOW = "disallow"
    #: It is held until the next attempt to fetch the robots.txt.
    DEFER = "defer"
    #: It is admitted.
    ALLOW = "allow"


class Naming(Enum):
    """How the value of a user-agent line names a crawler."""

    #: It starts with the product token, which is compared as a whole.
    TOKEN = "token"
    #: It is the name.
    WHOLE = "whole"
    #: It contains the name.
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


_SUCCESSFUL = range(200, 300), Access.SUCCESSFUL
_FORBIDDEN = (401, 403), Access.DISALLOWED
_TOO_MANY_REQUESTS = (429,), Access.UNREACHABLE
_CLIENT_ERRORS = range(400, 500), Access.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to read robots.txt. Times are in seconds, sizes in bytes.

    The defaults are RFC 9309, which the section numbers refer to, with the leniency that real
    files need.
    """

    name: str

    # lines.py
    #: How many bytes of a file are read by default, ``None`` for all.
    max_size: int | None = MIN_PARSED_SIZE
    #: Decode a file that starts with a UTF-16 byte order mark.
    utf16: bool = True
    #: How many bytes of a line are read, ``None`` for all.
    max_line: int | None = None
    #: The first NUL ends its line, as in C.
    nul_ends_line: bool = False
    #: Accept the typos and the missing colon that the reference library accepts.
    lenient_keys: bool = True
    #: ``Disallowed:`` counts as ``Disallow:``, and so on.
    keys_by_prefix: bool = False

    # agents.py
    naming: Naming = Naming.TOKEN
    #: Product tokens may contain digits.
    digits_in_tokens: bool = True
    #: A user-agent line without a name names the agent without a name, instead of nobody.
    empty_names: bool = False

    # groups.py
    #: A blank line ends a group; a line that has only a comment is not blank. §2.2.4: what is
    #: not a rule "MUST NOT interfere" with groups.
    blank_ends_group: bool = False
    #: There are Allow lines.
    allow_lines: bool = True

    # urls.py, matching.py
    path_form: PathForm = PathForm.CANONICAL
    #: ``*`` and ``$`` in patterns have a meaning.
    wildcards: bool = True
    precedence: Precedence = Precedence.LONGEST
    #: ``Allow: /a/index.html`` also allows ``/a/``.
    index_pages: bool = True
    #: ``/robots.txt`` itself is always allowed (§2.2.2).
    robots_txt_allowed: bool = True
    #: A rule without a value matches every path with a length of 0, and never refuses it.
    empty_rules_match: bool = False

    # access.py
    #: Statuses and their access result; the first that match count.
    statuses: tuple[tuple[Collection[int], Access], ...] = (_SUCCESSFUL, _CLIENT_ERRORS)
    #: What all other statuses and a missing answer mean. §2.3.1.4: 500 to 599; and what the
    #: standard leaves undefined (304 unasked, a redirect without Location) cannot allow anything.
    otherwise: Access = Access.UNREACHABLE
    #: How many redirects in a row are followed. §2.3.1.2: "at least five consecutive redirects",
    max_redirects: int = 5
    #: and then "crawlers MAY assume that the robots.txt is unavailable".
    too_many_redirects: Access = Access.UNAVAILABLE
    when_unreachable: WhenUnreachable = WhenUnreachable.DISALLOW

    # freshness.py
    #: The lifetime of a copy where HTTP headers do not give one. §2.4: "SHOULD NOT use the
    #: cached version for more than 24 hours".
    lifetime: float = _DAY
    #: The longest lifetime that headers can give, ``None`` for any.
    max_lifetime: float | None = _DAY
    #: HTTP cache headers count.
    cache_headers: bool = True
    #: A file outlives its lifetime while the robots.txt is unreachable, as §2.4 permits.
    stale_in_outage: bool = True
    #: How long an origin without a copy stays unreachable before it counts as one without a
    #: robots.txt. §2.3.1.4: "a reasonably long period of time (for example, 30 days)".
    grace: float = 30 * _DAY


RFC9309 = Dialect("rfc9309")

#: Google's open-source library, to the bit.
GOOGLE = Dialect(
    "google",
    max_size=None,
    utf16=False,
    # robots.cc: a buffer of 2083 * 8 bytes, the last one for the final NUL.
    max_line=2083 * 8 - 1,
    nul_ends_line=True,
    keys_by_prefix=True,
    digits_in_tokens=False,
    empty_names=True,
    path_form=PathForm.VERBATIM,
    robots_txt_allowed=False,
    empty_rules_match=True,
    # As Google documents its crawlers; the library does not fetch. "After 30 days", Google uses
    # "the last cached copy", and without one it "assumes that there are no crawl restrictions";
    # here the copy is used before that, too.
    statuses=(_SUCCESSFUL, _TOO_MANY_REQUESTS, _CLIENT_ERRORS),
    max_lifetime=None,
)

#: The Internet-Draft of November 1996, "A Method for Robots Exclusion".
KOSTER1996 = Dialect(
    "koster1996",
    lenient_keys=False,
    # §3.2.1: "a simple name"; §3.3: agent = token.
    naming=Naming.WHOLE,
    # §3.2: records are "separated by blank lines".
    blank_ends_group=True,
    path_form=PathForm.DECODED,
    wildcards=False,
    # §3.2.2: "in the order they occur in the record. The first match found is used."
    precedence=Precedence.FIRST,
    index_pages=False,
    # §3.1; "temporary failure" is any other that is not the client's. /robots.txt is allowed,
    # §3: robots "must retrieve these instructions before visiting other URLs".
    statuses=(_SUCCESSFUL, _FORBIDDEN, _TOO_MANY_REQUESTS, _CLIENT_ERRORS),
    # §3.1: "should follow the redirects until a resource can be found".
    max_redirects=20,
    too_many_redirects=Access.UNREACHABLE,
    # §3.1: "should defer visits to the site".
    when_unreachable=WhenUnreachable.DEFER,
    # §3.4: "robots should default to an expiry of 7 days".
    lifetime=7 * _DAY,
    max_lifetime=None,
    # §3.4: "must periodically verify the cached copy is fresh before using its contents".
    stale_in_outage=False,
    # §3.1: "until such time as the resource can be retrieved".
    grace=math.inf,
)

#: The consensus of June 1994, "A Standard for Robot Exclusion". It does not mention encodings.
KOSTER1994 = Dialect(
    "koster1994",
    lenient_keys=False,
    # "A case insensitive substring match of the name without version information is recommended."
    naming=Naming.SUBSTRING,
    blank_ends_group=True,
    # "Unrecognised headers are ignored", and this is one.
    allow_lines=False,
    # "any URL that starts with this value".
    wildcards=False,
    precedence=Precedence.FIRST,
    index_pages=False,
    # It knows a file or none: "all robots will consider themselves welcome".
    statuses=(_SUCCESSFUL,),
    otherwise=Access.UNAVAILABLE,
    when_unreachable=WhenUnreachable.ALLOW,
    # A copy is used for the crawl.
    lifetime=math.inf,
    max_lifetime=None,
    cache_headers=False,
)

#: By the name that ``REP_DIALECT`` takes.
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (RFC9309, GOOGLE, KOSTER1996, KOSTER1994)
}
