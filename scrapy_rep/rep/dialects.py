"""The specifications as data: one value for each point on which they differ."""

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

    SUCCESSFUL = "successful"  #: §2.3.1.1 Successful: follow the rules that can be parsed.
    UNAVAILABLE = "unavailable"  #: §2.3.1.3 Unavailable: the crawler may access anything.
    #: §2.3.1.4 Unreachable: complete disallow, until it can be reached.
    UNREACHABLE = "unreachable"
    #: The status itself forbids access. This result is not in RFC 9309, but in other dialects and
    #: in ``REP_STATUS_OVERRIDES``.
    DISALLOWED = "disallowed"


class WhenUnreachable(Enum):
    """What to do with requests if the robots.txt is unreachable and not cached."""

    DISALLOW = "disallow"  #: It is refused (RFC 9309 §2.3.1.4: "MUST assume complete disallow").
    DEFER = "defer"  #: It is held until the next attempt to fetch the robots.txt.
    ALLOW = "allow"  #: It is admitted.


class Naming(Enum):
    """How the value of a user-agent line names a crawler."""

    TOKEN = "token"  #: It starts with the product token, which is compared as a whole.
    WHOLE = "whole"  #: It is the name.
    SUBSTRING = "substring"  #: It contains the name.


class Precedence(Enum):
    """Which rule decides if several match."""

    LONGEST = "longest"  #: The one with the longest pattern; of equals, the one that allows.
    FIRST = "first"  #: The first one in the file.


class PathForm(Enum):
    """How URLs and patterns are normalised before they are compared."""

    CANONICAL = "canonical"  #: RFC 9309 §2.2.2: the same percent-encoding on both sides.
    DECODED = "decoded"  #: The draft of 1996, §3.2.2: everything is decoded except ``%2F``.
    #: The reference library: URLs are not changed, patterns are partly escaped.
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
    utf16: bool = True  #: Decode a file that starts with a UTF-16 byte order mark.
    max_line: int | None = None  #: How many bytes of a line are read, ``None`` for all.
    nul_ends_line: bool = False  #: The first NUL ends its line, as in C.
    #: Accept the typos and the missing colon that the reference library accepts.
    lenient_keys: bool = True
    keys_by_prefix: bool = False  #: ``Disallowed:`` counts as ``Disallow:``, and so on.

    # agents.py
    naming: Naming = Naming.TOKEN
    digits_in_tokens: bool = True  #: Product tokens may contain digits.
    #: A user-agent line without a name applies to the agent without a name, not to no agent.
    empty_names: bool = False

    # groups.py
    #: A blank line ends a group; a line that has only a comment is not blank. §2.2.4: what is
    #: not a rule "MUST NOT interfere" with groups.
    blank_ends_group: bool = False
    allow_lines: bool = True  #: There are Allow lines.

    # urls.py, matching.py
    path_form: PathForm = PathForm.CANONICAL
    wildcards: bool = True  #: ``*`` and ``$`` in patterns have a meaning.
    precedence: Precedence = Precedence.LONGEST
    index_pages: bool = True  #: ``Allow: /a/index.html`` also allows ``/a/``.
    robots_txt_allowed: bool = True  #: ``/robots.txt`` itself is always allowed (§2.2.2).
    #: A rule without a value matches every path with a length of 0, and never refuses it.
    empty_rules_match: bool = False

    # access.py
    #: Statuses and their access result; the first that match count.
    statuses: tuple[tuple[Collection[int], Access], ...] = (_SUCCESSFUL, _CLIENT_ERRORS)
    #: The result for all other statuses and for no response. §2.3.1.4: 500 to 599. Cases that the
    #: standard leaves open (304 without a condition, a redirect without Location) allow nothing.
    otherwise: Access = Access.UNREACHABLE
    #: How many redirects in a row are followed. §2.3.1.2: "at least five consecutive redirects",
    max_redirects: int = 5
    #: and then "crawlers MAY assume that the robots.txt is unavailable".
    too_many_redirects: Access = Access.UNAVAILABLE
    when_unreachable: WhenUnreachable = WhenUnreachable.DISALLOW

    # freshness.py
    #: The lifetime of a stored response if HTTP headers do not set one. §2.4: "SHOULD NOT use the
    #: cached version for more than 24 hours".
    lifetime: float = _DAY
    max_lifetime: float | None = _DAY  #: The longest lifetime by headers, ``None`` for any.
    cache_headers: bool = True  #: HTTP cache headers count.
    #: A file outlives its lifetime while the robots.txt is unreachable, as §2.4 permits.
    stale_in_outage: bool = True
    #: How long an origin is unreachable, without a stored response, before it counts as an origin
    #: without a robots.txt. §2.3.1.4: "a reasonably long period of time (for example, 30 days)".
    grace: float = 30 * _DAY


RFC9309 = Dialect("rfc9309")

#: Google's open-source library, with exactly the same results.
GOOGLE = Dialect(
    "google",
    max_size=None,
    utf16=False,
    max_line=2083 * 8 - 1,  # robots.cc: a buffer of 2083 * 8 bytes, the last one for the final NUL.
    nul_ends_line=True,
    keys_by_prefix=True,
    digits_in_tokens=False,
    empty_names=True,
    path_form=PathForm.VERBATIM,
    robots_txt_allowed=False,
    empty_rules_match=True,
    # As Google documents its crawlers; the library does not fetch. "After 30 days", Google uses
    # "the last cached copy", and without one it "assumes that there are no crawl restrictions";
    # here the stored response is used before that, too.
    statuses=(_SUCCESSFUL, _TOO_MANY_REQUESTS, _CLIENT_ERRORS),
    max_lifetime=None,
)

#: The Internet-Draft of November 1996, "A Method for Robots Exclusion".
KOSTER1996 = Dialect(
    "koster1996",
    lenient_keys=False,
    naming=Naming.WHOLE,  # §3.2.1: "a simple name"; §3.3: agent = token.
    blank_ends_group=True,  # §3.2: records are "separated by blank lines".
    path_form=PathForm.DECODED,
    wildcards=False,
    # §3.2.2: "in the order they occur in the record. The first match found is used."
    precedence=Precedence.FIRST,
    index_pages=False,
    # §3.1; "temporary failure" is any other that is not the client's. /robots.txt is allowed,
    # §3: robots "must retrieve these instructions before visiting other URLs".
    statuses=(_SUCCESSFUL, _FORBIDDEN, _TOO_MANY_REQUESTS, _CLIENT_ERRORS),
    max_redirects=20,  # §3.1: "should follow the redirects until a resource can be found".
    too_many_redirects=Access.UNREACHABLE,
    when_unreachable=WhenUnreachable.DEFER,  # §3.1: "should defer visits to the site".
    lifetime=7 * _DAY,  # §3.4: "robots should default to an expiry of 7 days".
    max_lifetime=None,
    # §3.4: "must periodically verify the cached copy is fresh before using its contents".
    stale_in_outage=False,
    grace=math.inf,  # §3.1: "until such time as the resource can be retrieved".
)

#: The consensus of June 1994, "A Standard for Robot Exclusion". It does not mention encodings.
KOSTER1994 = Dialect(
    "koster1994",
    lenient_keys=False,
    # "A case insensitive substring match of the name without version information is recommended."
    naming=Naming.SUBSTRING,
    blank_ends_group=True,
    allow_lines=False,  # "Unrecognised headers are ignored": Allow is not defined there.
    wildcards=False,  # "any URL that starts with this value".
    precedence=Precedence.FIRST,
    index_pages=False,
    # There is either a file or none: "all robots will consider themselves welcome".
    statuses=(_SUCCESSFUL,),
    otherwise=Access.UNAVAILABLE,
    when_unreachable=WhenUnreachable.ALLOW,
    lifetime=math.inf,  # A stored response is used for the whole crawl.
    max_lifetime=None,
    cache_headers=False,
)

#: By the name that ``REP_DIALECT`` takes.
DIALECTS = {dialect.name: dialect for dialect in (RFC9309, GOOGLE, KOSTER1996, KOSTER1994)}
