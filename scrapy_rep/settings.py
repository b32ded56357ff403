"""The settings of this package: :class:`RepSettings` has the name, default and check of each.

An invalid value raises :exc:`~scrapy_rep.exceptions.ConfigurationError` when the crawl starts.
"""

# ruff: noqa: RUF009 -- _setting() returns a field of the dataclass.

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial
from importlib.util import find_spec
from math import inf
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.report.path import ReportPath, parse_path
from scrapy_rep.rep.caching.freshness import Bounds
from scrapy_rep.rep.decision import CrawlTerms
from scrapy_rep.rep.dialects import (
    DIALECTS,
    MIN_PARSED_SIZE,
    RFC9309,
    Access,
    Dialect,
    WhenUnreachable,
)
from scrapy_rep.rep.directives.directives import HonouredDirectives
from scrapy_rep.rep.directives.purposes import KNOWN_PURPOSES
from scrapy_rep.rep.parsing.agents import check_token
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import ContentUse
from scrapy_rep.stores.open import StoreSpec, parse_spec

if TYPE_CHECKING:
    from scrapy.extensions.feedexport import FeedStorageProtocol

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Enum)
_N = TypeVar("_N", int, float)


class PacedBy(Enum):
    """Whether delays are enforced per crawl or by all crawls that share the store."""

    LOCAL = "local"
    FLEET = "fleet"


class PageRuleMode(Enum):
    """What is done with the rules of pages: headers, meta tags, links and TDM reservations."""

    OFF = "off"
    #: Responses have their rules in their meta.
    ANNOTATE = "annotate"
    #: And reserved responses are refused, and links that are not to be followed are dropped.
    OBEY = "obey"


class VisitTime(Enum):
    """What to do with requests outside the Visit-time of a site."""

    OFF = "off"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """The target of a feed: a *uri* as in Scrapy's FEEDS, and the *storage* for its scheme."""

    uri: str
    storage: type[FeedStorageProtocol]


# -- checks: return the value, or raise a ValueError that says what is accepted ----


def _one_of(accepted: Mapping[str, _T], value: object, none: str = "") -> _T:
    """For a key of *accepted*. *none* describes None, if that is accepted too."""
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"accepted: {', '.join(accepted)}{none}")
    return accepted[value]


def _member_of(members: type[_E], none: str = "") -> Callable[[object], _E]:
    return partial(_one_of, {member.value: member for member in members}, none=none)


def _optional(check: Callable[[Any], _T]) -> Callable[[Any], _T | None]:
    # A string, if it is from the command line.
    return lambda value: None if value in (None, "", "None") else check(value)


def _boolean(value: object) -> bool:
    # As Scrapy reads them, from the command line too.
    yes, no = (True, "1", "true", "on"), (False, "0", "false", "off")
    key = value.lower() if isinstance(value, str) else value
    if key not in yes + no:
        raise ValueError("accepted: True or False")
    return key in yes


def _number(
    convert: Callable[[Any], _N], is_accepted: Callable[[_N], bool], accepted: str, value: object
) -> _N:
    try:
        number = convert(value)
        if is_accepted(number):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"accepted: {accepted}")


_seconds = partial(_number, float, lambda number: 0 < number < inf, "a number of seconds above 0")
_share = partial(_number, float, lambda number: 0 <= number <= 1, "a number from 0 to 1")


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError
    return number


def _integer(*, at_least: int, because: str = "") -> Callable[[object], int]:
    accepted = f"an integer, at least {at_least}" + (f" ({because})" if because else "")
    return partial(_number, _whole, lambda number: number >= at_least, accepted)


_max_redirects: Callable[[object], Any] = _optional(
    _integer(at_least=RFC9309.max_redirects, because="RFC 9309 §2.3.1.2")
)


def _listed(
    value: object, accepted: str, is_item: Callable[[Any], object] = lambda item: True
) -> tuple[Any, ...]:
    """*value* as a tuple; a string is split as in Scrapy (``-s REP_AGENT_TOKENS=a,b``)."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")] if value else []
    if not isinstance(value, Sequence) or not all(map(is_item, value)):
        raise ValueError(f"accepted: {accepted}")
    return tuple(value)


def tokens(value: object) -> tuple[str, ...]:
    """*value*, one product token or a list of them, as a tuple.

    Raises :exc:`ValueError` for an invalid token.
    """
    return tuple(map(check_token, _listed(value, "one product token or a list of them")))


_FETCH_META_KEYS = ["proxy", "bindaddress", "http_user", "http_pass", "http_auth_domain"]
_FETCH_META_KEYS += ["ftp_user", "ftp_password", "ftp_passive"]


def _meta_keys(value: object) -> tuple[str, ...]:
    accepted = "a list of names of request meta keys"
    return _listed(value, accepted, lambda key: isinstance(key, str))


# RFC 9110 §5.6.2: a token; §5.5: the characters of a value.
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def _headers(value: object) -> dict[str, str | None]:
    accepted = "accepted: a dict of header names to a text, or None to leave the header out"
    headers = _dict(value, accepted, '{"X-Region": "eu"}')
    for name, text in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{accepted}; not {name!r}")
        if text is not None and not (isinstance(text, str) and _HEADER_VALUE.fullmatch(text)):
            raise ValueError(f"{accepted}; not {name!r}: {text!r}")
    return dict(headers)


# RFC 9651 §3.1.2, the key of a dictionary.
_LABEL = re.compile(r"[a-z*][a-z0-9_\-.*]*")


def _purposes(value: object) -> tuple[str, ...]:
    known = ", ".join(sorted(KNOWN_PURPOSES))
    accepted = f"a list of purposes, such as {known}; in lower case"
    purposes = _listed(value, accepted, lambda it: isinstance(it, str) and _LABEL.fullmatch(it))
    for purpose in purposes:
        if purpose not in KNOWN_PURPOSES:
            logger.warning(
                "REP_PURPOSES contains the unknown purpose %(purpose)r. Known purposes: %(known)s.",
                {"purpose": purpose, "known": known},
            )
    return purposes


def _page_rules(value: object) -> PageRuleMode:
    mode = _member_of(PageRuleMode)(value)
    if mode is not PageRuleMode.OFF and find_spec("http_sf") is None:
        raise ValueError("the package http-sf is missing: pip install http-sf")
    return mode


_RELS = ("nofollow", "ugc", "sponsored")


def _nofollow(value: object) -> frozenset[str]:
    accepted = f"a list of {', '.join(_RELS)}; an empty one to follow all links"
    return frozenset(_listed(value, accepted, _RELS.__contains__))


def _dict(value: object, accepted: str, example: str) -> Mapping[Any, Any]:
    """*value* as a dict; as in Scrapy, a string from the command line is JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(f"{accepted}; in a string, as JSON: {example}") from None
    if not isinstance(value, Mapping):
        raise ValueError(accepted)
    return value


# The values of REP_STATUS_OVERRIDES.
_OVERRIDES = {
    "allow": Access.UNAVAILABLE,
    "unavailable": Access.UNAVAILABLE,
    "unreachable": Access.UNREACHABLE,
    "disallow": Access.DISALLOWED,
}
# RFC 9110 §15: three digits. Some servers invent one above 599.
_STATUS = re.compile("[1-9][0-9]{2}")


def _status_overrides(value: object) -> dict[int, Access]:
    accepted = f"accepted: a dict of HTTP status to one of {', '.join(_OVERRIDES)}"
    overrides: dict[int, Access] = {}
    for status, access in _dict(value, accepted, '{"429": "unreachable"}').items():
        known = isinstance(access, str) and access in _OVERRIDES
        if not _STATUS.fullmatch(str(status)) or not known:
            raise ValueError(f"{accepted}; not {status!r}: {access!r}")
        overrides[int(status)] = _OVERRIDES[access]
    return overrides


def _robot_parser(value: Any) -> type[RobotParser]:
    accepted = (
        "accepted: the import path of a subclass of scrapy.robotstxt.RobotParser, "
        "such as scrapy.robotstxt.ProtegoRobotParser"
    )
    try:
        parser = load_object(value)
    except Exception as error:
        raise ValueError(f"cannot be loaded ({error}); {accepted}") from None
    if not isinstance(parser, type) or not issubclass(parser, RobotParser):
        raise ValueError(accepted)
    return parser


def _robot_parsers(value: object) -> tuple[type[RobotParser], ...]:
    parsers = _listed(value, "a list of import paths of subclasses of scrapy.robotstxt.RobotParser")
    return tuple(dict.fromkeys(map(_robot_parser, parsers)))


def _directory(value: object) -> str:
    accepted = "accepted: the path of a directory on this machine, or None for no archive"
    if not isinstance(value, (str, Path)) or "\0" in str(value):
        raise ValueError(accepted)
    if "://" in str(value):
        raise ValueError(f"not a URL; {accepted}")
    return str(value)


def _feed(settings: BaseSettings, value: object) -> FeedSpec:
    in_settings = settings.getwithbase("FEED_STORAGES").items()
    storages = {scheme: storage for scheme, storage in in_settings if storage is not None}
    schemes = ", ".join(sorted(filter(None, storages)))
    accepted = f"accepted: a path, or a URI with a scheme of FEED_STORAGES: {schemes}"
    if not isinstance(value, (str, Path)):
        raise ValueError(accepted)
    uri = str(value)
    # As in Scrapy, the drive of a Windows path is not a scheme.
    scheme = "file" if PureWindowsPath(uri).drive else urlsplit(uri).scheme
    if scheme not in storages:
        raise ValueError(accepted)
    try:
        return FeedSpec(uri, load_object(storages[scheme]))
    except Exception as error:
        raise ValueError(f"FEED_STORAGES[{scheme!r}] cannot be loaded ({error})") from None


def _paced_by(store: StoreSpec, value: object) -> PacedBy:
    paced_by = _member_of(PacedBy, ", or None for all crawls that share the store")(value)
    if paced_by is PacedBy.FLEET and store.redis is None:
        raise ValueError(
            "delays across workers need Redis. "
            'Set REP_STORE = "redis://host:port/db" or REP_PACING = "local"'
        )
    return paced_by


# -- the settings ------------------------------------------------------------------


def _setting(default: object, check: Callable[[Any], _T] | None = None) -> _T:
    """A field; without *check*, that depends on other settings: see :meth:`RepSettings.read`."""
    return cast(_T, field(metadata={"default": default, "check": check}))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepSettings:
    """The settings of one crawl, checked. Times are seconds, sizes bytes.

    The field ``x`` is the setting ``REP_X``. The other fields are Scrapy's settings.
    """

    agent_tokens: tuple[str, ...] = _setting([], tokens)
    #: Whether answers 429 and 503 slow a site down.
    backoff: bool = _setting(False, _boolean)
    backoff_max: float = _setting(60.0, _seconds)
    #: The directory of the archive, with parameters in it.
    archive: str | None = _setting(None, _optional(_directory))
    audit: FeedSpec | None = _setting(None)
    compare_feed: FeedSpec | None = _setting(None)
    #: The fraction of requests that are compared, from 0 to 1.
    compare_sample: float = _setting(1.0, _share)
    compare_with: tuple[type[RobotParser], ...] = _setting([], _robot_parsers)
    content_use: ContentUse | None = _setting(
        None, _optional(_member_of(ContentUse, ", or None to declare nothing"))
    )
    crawl_delay: bool = _setting(True, _boolean)
    crawl_delay_max: float = _setting(60.0, _seconds)
    dialect: Dialect = _setting("rfc9309", partial(_one_of, DIALECTS))
    fallback_parser: type[RobotParser] | None = _setting(
        "scrapy.robotstxt.ProtegoRobotParser", _optional(_robot_parser)
    )
    fetch_headers: Mapping[str, str | None] = _setting({}, _headers)
    fetch_meta_keys: tuple[str, ...] = _setting(_FETCH_META_KEYS, _meta_keys)
    fetch_timeout: float = _setting(15.0, _seconds)
    #: As many workers as Redis knows, at least this.
    fleet_size: int | None = _setting(None, _optional(_integer(at_least=1)))
    #: How many earlier versions of each robots.txt the store keeps.
    history: int = _setting(5, _integer(at_least=0))
    max_age: float | None = _setting(None, _optional(_seconds))
    max_fetches: int = _setting(200, _integer(at_least=1))
    max_origins: int = _setting(10_000, _integer(at_least=1))
    #: The default is the dialect's.
    max_redirects: int = _setting(None, _max_redirects)
    max_size: int = _setting(
        MIN_PARSED_SIZE, _integer(at_least=MIN_PARSED_SIZE, because="500 KiB, RFC 9309 §2.5")
    )
    max_wait: float = _setting(3600.0, _seconds)
    max_waiting: int = _setting(5000, _integer(at_least=1))
    min_age: float = _setting(300.0, _seconds)
    #: The values of ``rel`` for which a link is not followed.
    nofollow: frozenset[str] = _setting(["nofollow"], _nofollow)
    pacing: PacedBy = _setting(None)
    page_rules: PageRuleMode = _setting("off", _page_rules)
    purposes: tuple[str, ...] = _setting([], _purposes)
    report: ReportPath | None = _setting(None, _optional(parse_path))
    request_rate: bool = _setting(True, _boolean)
    retry_delay: float = _setting(60.0, _seconds)
    retry_max_delay: float = _setting(3600.0, _seconds)
    status_overrides: Mapping[int, Access] = _setting({}, _status_overrides)
    store: StoreSpec = _setting("sqlite", parse_spec)
    #: Whether tdmrep.json is fetched; ``None``: if a purpose needs it.
    tdm_file: bool | None = _setting(None, _optional(_boolean))
    #: ``None`` for the dialect's; see :attr:`when_unreachable`.
    unreachable: WhenUnreachable | None = _setting(
        None, _optional(_member_of(WhenUnreachable, ", or None for what the dialect says"))
    )
    unreachable_grace: float | None = _setting(None, _optional(_seconds))
    visit_time: VisitTime = _setting("off", _member_of(VisitTime))

    #: CONCURRENT_REQUESTS; if that is unlimited, REP_MAX_FETCHES.
    concurrent_requests: int
    #: ROBOTSTXT_PARSER, ``None`` for our own parser.
    parser: type[RobotParser] | None
    robotstxt_user_agent: str | None
    default_user_agent: str | None
    user_agent: str | None

    @classmethod
    def read(cls, settings: BaseSettings) -> RepSettings:
        """Read and check *settings*.

        Raises :exc:`~scrapy_rep.exceptions.ConfigurationError` with the setting, its value and
        the accepted values.
        """
        for name in settings:
            if isinstance(name, str) and name.startswith("REP_") and name not in DEFAULTS:
                close = difflib.get_close_matches(name, DEFAULTS, n=1)
                logger.warning(
                    "Unknown setting %(name)s is ignored.%(hint)s",
                    {"name": name, "hint": f" Did you mean {close[0]}?" if close else ""},
                )
        read = partial(_read, settings)
        checks = {name: it["check"] for name, it in _SETTINGS.items() if it["check"] is not None}
        values = {name: read(f"REP_{name.upper()}", check) for name, check in checks.items()}
        feed = _optional(partial(_feed, settings))
        values["audit"] = read("REP_AUDIT", feed)
        values["compare_feed"] = read("REP_COMPARE_FEED", feed)
        paced_by = _optional(partial(_paced_by, values["store"]))
        values["pacing"] = read("REP_PACING", paced_by) or PacedBy.FLEET
        values["max_redirects"] = values["max_redirects"] or values["dialect"].max_redirects
        # Scrapy's default has the priority 0, and means ours.
        has_parser = bool(settings.getpriority("ROBOTSTXT_PARSER"))
        headers = settings.getdict("DEFAULT_REQUEST_HEADERS").items()
        user_agents = (value for name, value in headers if name.lower() == "user-agent")
        return cls(
            **values,
            concurrent_requests=settings.getint("CONCURRENT_REQUESTS") or values["max_fetches"],
            parser=read("ROBOTSTXT_PARSER", _robot_parser) if has_parser else None,
            robotstxt_user_agent=settings.get("ROBOTSTXT_USER_AGENT"),
            default_user_agent=next((str(each) for each in user_agents if each), None),
            user_agent=settings.get("USER_AGENT"),
        )

    @property
    def when_unreachable(self) -> WhenUnreachable:
        """What to do with requests if the robots.txt is unreachable and not cached."""
        return self.unreachable or self.dialect.when_unreachable

    @property
    def honoured(self) -> HonouredDirectives:
        """The directives that the crawl honours."""
        pacing = {
            Field.CRAWL_DELAY: self.crawl_delay,
            Field.REQUEST_RATE: self.request_rate,
            Field.VISIT_TIME: self.visit_time is not VisitTime.OFF,
        }
        fields = frozenset(field for field, is_honoured in pacing.items() if is_honoured)
        return HonouredDirectives(fields, self.purposes, self.content_use)

    @property
    def terms(self) -> CrawlTerms:
        """The settings that affect decisions about requests."""
        return CrawlTerms(self.dialect, self.max_wait, self.visit_time is VisitTime.WAIT)

    def bounds(self, started: float) -> Bounds:
        """The limits of lifetimes and retries in a crawl that *started* at a time."""
        return Bounds(
            min_age=self.min_age,
            max_age=self.max_age,
            retry_delay=self.retry_delay,
            retry_max_delay=self.retry_max_delay,
            grace=self.unreachable_grace,
            started=started,
        )


_SETTINGS = {each.name: each.metadata for each in fields(RepSettings) if each.metadata}
#: Name and default of every setting whose name starts with ``REP_``.
DEFAULTS = {f"REP_{name.upper()}": data["default"] for name, data in _SETTINGS.items()}


def changed(settings: BaseSettings) -> dict[str, str]:
    """The settings of this package that differ from their defaults, without passwords."""
    values = {name: settings[name] for name in DEFAULTS if name in settings}
    shown = {name: _shown(value) for name, value in values.items() if value != DEFAULTS[name]}
    if "REP_FETCH_HEADERS" in shown:
        shown["REP_FETCH_HEADERS"] = "not shown, may be secret"
    return shown


def downloader_middlewares(settings: BaseSettings) -> list[Any]:
    """The enabled downloader middlewares, as objects."""
    # Scrapy 2.16 gave getwithbase() a longer name.
    with_base = getattr(settings, "get_component_priority_dict_with_base", None)
    components = (with_base or settings.getwithbase)("DOWNLOADER_MIDDLEWARES")
    return [load_object(component) for component in build_component_list(components)]


def read_dialect(settings: BaseSettings) -> Dialect:
    """The dialect of ``REP_DIALECT``."""
    return _read(settings, "REP_DIALECT", partial(_one_of, DIALECTS))


def rels_not_followed(settings: BaseSettings) -> frozenset[str]:
    """The values of ``rel`` for which no link is followed; none if page rules are not obeyed."""
    mode = _read(settings, "REP_PAGE_RULES", _page_rules)
    rels = _read(settings, "REP_NOFOLLOW", _nofollow)
    obeys = mode is PageRuleMode.OBEY and settings.getbool("ROBOTSTXT_OBEY")
    return rels if obeys else frozenset()


def _read(settings: BaseSettings, name: str, check: Callable[[Any], _T]) -> _T:
    # Not settings.get(), which returns the default for None.
    value = settings[name] if name in settings else DEFAULTS[name]
    try:
        return check(value)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{name} = {_shown(value)}: {error}") from None


# Text that may be a URL, perhaps with mistakes, unless it certainly contains no password.
_MAY_HAVE_PASSWORD = re.compile(
    r"(?!(?:[a-z0-9+]+://[a-z0-9.\-]*|sqlite:)(?:/[^@?:#]*)?\Z)\b(?P<scheme>[a-z][a-z0-9+.\-]+:).*"
    r"|\S*[@?].*",
    re.IGNORECASE | re.DOTALL,
)


def _shown(value: Any) -> str:
    """The repr of *value* without anything that may be a password."""
    text = value if isinstance(value, str) else repr(value)
    shown = _MAY_HAVE_PASSWORD.sub(lambda found: f"{found['scheme'] or ''}...", text)
    return repr(shown) if isinstance(value, str) else shown
