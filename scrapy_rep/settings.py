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
_K = TypeVar("_K")


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


def _accepting(accepted: str, convert: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """The check for all that *convert* does not fail for."""

    def check(value: Any) -> _T:
        try:
            return convert(value)
        except (TypeError, ValueError, LookupError, OverflowError):
            raise ValueError(f"accepted: {accepted}") from None

    return check


def _if(is_accepted: object, value: _T) -> _T:
    if not is_accepted:
        raise ValueError
    return value


def _one_of(accepted: Mapping[str, _T], none: str = "") -> Callable[[Any], _T]:
    """The check for a key of *accepted*. *none* describes None, if that is accepted too."""
    return _accepting(", ".join(accepted) + none, accepted.__getitem__)


def _member_of(members: type[_E], none: str = "") -> Callable[[Any], _E]:
    return _one_of({member.value: member for member in members}, none)


def _optional(check: Callable[[Any], _T]) -> Callable[[Any], _T | None]:
    # A string, if it is from the command line.
    return lambda value: None if value in (None, "", "None") else check(value)


# As Scrapy reads them, from the command line too.
_BOOLEANS: dict[object, bool] = dict.fromkeys([True, "1", "true", "on"], True)
_BOOLEANS |= dict.fromkeys([False, "0", "false", "off"], False)
_boolean = _accepting(
    "True or False", lambda value: _BOOLEANS[value.lower() if isinstance(value, str) else value]
)
_seconds = _accepting(
    "a number of seconds above 0", lambda value: _if(0 < float(value) < inf, float(value))
)
_share = _accepting("a number from 0 to 1", lambda value: _if(0 <= float(value) <= 1, float(value)))


def _integer(*, at_least: int, because: str = "") -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = int(value)
        return _if(number >= at_least and (isinstance(value, str) or number == value), number)

    return _accepting(f"an integer, at least {at_least}{because}", convert)


_max_redirects = _optional(_integer(at_least=RFC9309.max_redirects, because=" (RFC 9309 §2.3.1.2)"))


def _list_of(
    accepted: str, is_item: Callable[[Any], object] = lambda item: True
) -> Callable[[Any], tuple[Any, ...]]:
    """The check for a list; a string is split as in Scrapy (``-s REP_AGENT_TOKENS=a,b``)."""

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if value else []
        return _if(isinstance(value, Sequence) and all(map(is_item, value)), tuple(value))

    return _accepting(accepted, convert)


def _dict_of(
    accepted: str, example: str, convert: Callable[[Any, Any], tuple[_K, _T]]
) -> Callable[[Any], dict[_K, _T]]:
    """The check for a dict of items that *convert* does not fail for; in a string, it is JSON."""

    def check(value: Any) -> dict[_K, _T]:
        if isinstance(value, str):
            value = _accepting(f"{accepted}; in a string, as JSON: {example}", json.loads)(value)
        if not isinstance(value, Mapping):
            raise ValueError(f"accepted: {accepted}")
        return dict(
            _accepting(f"{accepted}; not {key!r}: {each!r}", partial(convert, key))(each)
            for key, each in value.items()
        )

    return check


_token_list = _list_of("one product token or a list of them")


def tokens(value: object) -> tuple[str, ...]:
    """*value*, one product token or a list of them, as a tuple.

    Raises :exc:`ValueError` for an invalid token.
    """
    return tuple(map(check_token, _token_list(value)))


_FETCH_META_KEYS = ["proxy", "bindaddress", "http_user", "http_pass", "http_auth_domain"]
_FETCH_META_KEYS += ["ftp_user", "ftp_password", "ftp_passive"]
_RELS = ("nofollow", "ugc", "sponsored")
_rels = _list_of(f"a list of {', '.join(_RELS)}; an empty one to follow all links", _RELS.count)

# RFC 9651 §3.1.2, the key of a dictionary.
_LABEL = re.compile(r"[a-z*][a-z0-9_\-.*]*")
_KNOWN = ", ".join(sorted(KNOWN_PURPOSES))
_labels = _list_of(f"a list of purposes, such as {_KNOWN}; in lower case", _LABEL.fullmatch)


def _purposes(value: object) -> tuple[str, ...]:
    purposes = _labels(value)
    for purpose in purposes:
        if purpose not in KNOWN_PURPOSES:
            says = "REP_PURPOSES contains the unknown purpose %r. Known purposes: %s."
            logger.warning(says, purpose, _KNOWN)
    return purposes


def _page_rules(value: object) -> PageRuleMode:
    mode = _member_of(PageRuleMode)(value)
    if mode is not PageRuleMode.OFF and find_spec("http_sf") is None:
        raise ValueError("the package http-sf is missing: pip install http-sf")
    return mode


# RFC 9110 §5.6.2: a token; §5.5: the characters of a value.
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_headers = _dict_of(
    "a dict of header names to a text, or None to leave the header out",
    '{"X-Region": "eu"}',
    lambda name, text: _if(
        _HEADER_NAME.fullmatch(name) and (text is None or _HEADER_VALUE.fullmatch(text)),
        (name, text),
    ),
)

_OVERRIDES = {
    "allow": Access.UNAVAILABLE,
    "unavailable": Access.UNAVAILABLE,
    "unreachable": Access.UNREACHABLE,
    "disallow": Access.DISALLOWED,
}
# RFC 9110 §15: three digits. Some servers invent one above 599.
_STATUS = re.compile("[1-9][0-9]{2}")
_status_overrides = _dict_of(
    f"a dict of HTTP status to one of {', '.join(_OVERRIDES)}",
    '{"429": "unreachable"}',
    lambda status, access: _if(_STATUS.fullmatch(str(status)), (int(status), _OVERRIDES[access])),
)


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


_paths = _list_of("a list of import paths of subclasses of scrapy.robotstxt.RobotParser")


def _robot_parsers(value: object) -> tuple[type[RobotParser], ...]:
    return tuple(dict.fromkeys(map(_robot_parser, _paths(value))))


_directory = _accepting(
    "the path of a directory on this machine, not a URL, or None for no archive",
    lambda value: _if(
        isinstance(value, (str, Path)) and not re.search("://|\0", str(value)), str(value)
    ),
)


def _feed(settings: BaseSettings, value: object) -> FeedSpec:
    in_settings = settings.getwithbase("FEED_STORAGES").items()
    storages = {scheme: storage for scheme, storage in in_settings if storage is not None}
    # As in Scrapy, the drive of a Windows path is not a scheme.
    uri = str(value)
    scheme = "file" if PureWindowsPath(uri).drive else urlsplit(uri).scheme
    if not isinstance(value, (str, Path)) or scheme not in storages:
        schemes = ", ".join(sorted(filter(None, storages)))
        raise ValueError(f"accepted: a path, or a URI with a scheme of FEED_STORAGES: {schemes}")
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
    dialect: Dialect = _setting("rfc9309", _one_of(DIALECTS))
    fallback_parser: type[RobotParser] | None = _setting(
        "scrapy.robotstxt.ProtegoRobotParser", _optional(_robot_parser)
    )
    fetch_headers: Mapping[str, str | None] = _setting({}, _headers)
    fetch_meta_keys: tuple[str, ...] = _setting(
        _FETCH_META_KEYS,
        _list_of("a list of names of request meta keys", lambda key: isinstance(key, str)),
    )
    fetch_timeout: float = _setting(15.0, _seconds)
    #: As many workers as Redis knows, at least this.
    fleet_size: int | None = _setting(None, _optional(_integer(at_least=1)))
    #: How many earlier versions of each robots.txt the store keeps.
    history: int = _setting(5, _integer(at_least=0))
    max_age: float | None = _setting(None, _optional(_seconds))
    max_fetches: int = _setting(200, _integer(at_least=1))
    max_origins: int = _setting(10_000, _integer(at_least=1))
    #: The default is the dialect's.
    max_redirects: int = _setting(None)
    max_size: int = _setting(
        MIN_PARSED_SIZE, _integer(at_least=MIN_PARSED_SIZE, because=" (500 KiB, RFC 9309 §2.5)")
    )
    max_wait: float = _setting(3600.0, _seconds)
    max_waiting: int = _setting(5000, _integer(at_least=1))
    min_age: float = _setting(300.0, _seconds)
    #: The values of ``rel`` for which a link is not followed.
    nofollow: frozenset[str] = _setting(["nofollow"], lambda value: frozenset(_rels(value)))
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
                hint = f" Did you mean {close[0]}?" if close else ""
                logger.warning("Unknown setting %s is ignored.%s", name, hint)
        read = partial(_read, settings)
        checks = {name: it["check"] for name, it in _SETTINGS.items() if it["check"] is not None}
        values = {name: read(f"REP_{name.upper()}", check) for name, check in checks.items()}
        feed = _optional(partial(_feed, settings))
        values["audit"] = read("REP_AUDIT", feed)
        values["compare_feed"] = read("REP_COMPARE_FEED", feed)
        paced_by = _optional(partial(_paced_by, values["store"]))
        values["pacing"] = read("REP_PACING", paced_by) or PacedBy.FLEET
        hops = read("REP_MAX_REDIRECTS", _max_redirects)
        values["max_redirects"] = hops or values["dialect"].max_redirects
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
        retries = (self.retry_delay, self.retry_max_delay)
        return Bounds(self.min_age, self.max_age, *retries, self.unreachable_grace, started)


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
    return _read(settings, "REP_DIALECT", _one_of(DIALECTS))


def rels_not_followed(settings: BaseSettings) -> frozenset[str]:
    """The values of ``rel`` for which no link is followed; none if page rules are not obeyed."""
    mode = _read(settings, "REP_PAGE_RULES", _page_rules)
    rels = frozenset(_read(settings, "REP_NOFOLLOW", _rels))
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
