"""Every setting of this package: name, default, check.

The only place that reads ``crawler.settings``. A value that makes no sense
raises :exc:`~scrapy_rep.exceptions.ConfigurationError` when the crawl starts.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from scrapy.robotstxt import RobotParser
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
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

#: Name and default of every setting whose name starts with ``REP_``.
DEFAULTS: dict[str, Any] = {
    "REP_AGENT_TOKENS": [],
    "REP_COMPARE_FEED": None,
    "REP_COMPARE_SAMPLE": 1.0,
    "REP_COMPARE_WITH": [],
    "REP_CONTENT_USE": None,
    "REP_CRAWL_DELAY": True,
    "REP_CRAWL_DELAY_MAX": 60.0,
    "REP_DIALECT": "rfc9309",
    "REP_FALLBACK_PARSER": "scrapy.robotstxt.ProtegoRobotParser",
    "REP_FETCH_META_KEYS": [
        "proxy",
        "bindaddress",
        "http_user",
        "http_pass",
        "http_auth_domain",
        "ftp_user",
        "ftp_password",
        "ftp_passive",
    ],
    "REP_FETCH_TIMEOUT": 15.0,
    "REP_MAX_AGE": None,
    "REP_MAX_FETCHES": 200,
    "REP_MAX_ORIGINS": 10_000,
    "REP_MAX_REDIRECTS": None,
    "REP_MAX_SIZE": MIN_PARSED_SIZE,
    "REP_MAX_WAIT": 3600.0,
    "REP_MAX_WAITING": 5000,
    "REP_MIN_AGE": 300.0,
    "REP_PACING": None,
    "REP_PURPOSES": [],
    "REP_REQUEST_RATE": True,
    "REP_REPORT": None,
    "REP_RETRY_DELAY": 60.0,
    "REP_RETRY_MAX_DELAY": 3600.0,
    "REP_STATUS_OVERRIDES": {},
    "REP_STORE": "sqlite",
    "REP_UNREACHABLE": None,
    "REP_UNREACHABLE_GRACE": None,
    "REP_VISIT_TIME": "off",
}

# What REP_STATUS_OVERRIDES takes for a status.
_OVERRIDES = {
    "allow": Access.UNAVAILABLE,
    "unavailable": Access.UNAVAILABLE,
    "unreachable": Access.UNREACHABLE,
    "disallow": Access.DISALLOWED,
}


class PacedBy(Enum):
    """Which crawls leave the delay of a site together."""

    #: Each crawl by itself.
    LOCAL = "local"
    #: All crawls that share the store.
    FLEET = "fleet"


class VisitTime(Enum):
    """What becomes of requests at a time at which a site asks for no visits."""

    OFF = "off"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """Where a feed goes: a *uri* as in Scrapy's FEEDS, and the *storage* for its scheme."""

    uri: str
    storage: type[FeedStorageProtocol]


@dataclass(frozen=True, slots=True)
class RepSettings:
    """The settings of one crawl, checked. Times are seconds, sizes bytes."""

    agent_tokens: tuple[str, ...]
    #: CONCURRENT_REQUESTS, without a limit as many as there may be fetches.
    concurrent_requests: int
    compare_feed: FeedSpec | None
    #: The share of requests that are compared, from 0 to 1.
    compare_sample: float
    compare_with: tuple[type[RobotParser], ...]
    crawl_delay_max: float
    dialect: Dialect
    #: The parser that was chosen, ``None`` for the default: ours.
    parser: type[RobotParser] | None
    fallback_parser: type[RobotParser] | None
    fetch_meta_keys: tuple[str, ...]
    fetch_timeout: float
    #: Which records are acted on that are no rules.
    honoured: HonouredDirectives
    max_age: float | None
    max_fetches: int
    max_origins: int
    max_redirects: int
    max_size: int
    max_wait: float
    max_waiting: int
    min_age: float
    report: ReportPath | None
    pacing: PacedBy
    retry_delay: float
    retry_max_delay: float
    status_overrides: Mapping[int, Access]
    store: StoreSpec
    when_unreachable: WhenUnreachable
    #: ``None`` for what the dialect says.
    unreachable_grace: float | None
    visit_time: VisitTime
    robotstxt_user_agent: str | None
    default_user_agent: str | None
    user_agent: str | None

    @classmethod
    def read(cls, settings: BaseSettings) -> RepSettings:
        """Read and check *settings*.

        Raises :exc:`~scrapy_rep.exceptions.ConfigurationError` that names the
        setting, the value and what is accepted.
        """
        _warn_about_unknown(settings)
        dialect = read_dialect(settings)
        max_redirects = _read(
            settings,
            "REP_MAX_REDIRECTS",
            _optional(_integer(at_least=RFC9309.max_redirects, because="RFC 9309 §2.3.1.2")),
        )
        when_unreachable = _read(settings, "REP_UNREACHABLE", _optional(_when_unreachable))
        max_fetches = _read(settings, "REP_MAX_FETCHES", _integer(at_least=1))
        visit_time = _read(settings, "REP_VISIT_TIME", _visit_time)
        store = _read(settings, "REP_STORE", parse_spec)
        purposes = _read(settings, "REP_PURPOSES", _purposes)
        content_use = _read(settings, "REP_CONTENT_USE", _optional(_content_use))
        return cls(
            agent_tokens=_read(settings, "REP_AGENT_TOKENS", tokens),
            concurrent_requests=settings.getint("CONCURRENT_REQUESTS") or max_fetches,
            compare_feed=_read(settings, "REP_COMPARE_FEED", _optional(_feed(settings))),
            compare_sample=_read(settings, "REP_COMPARE_SAMPLE", _share),
            compare_with=_read(settings, "REP_COMPARE_WITH", _robot_parsers),
            crawl_delay_max=_read(settings, "REP_CRAWL_DELAY_MAX", _positive_number),
            dialect=dialect,
            parser=_parser(settings),
            fallback_parser=_read(settings, "REP_FALLBACK_PARSER", _optional(_robot_parser)),
            fetch_meta_keys=_read(settings, "REP_FETCH_META_KEYS", _strings),
            fetch_timeout=_read(settings, "REP_FETCH_TIMEOUT", _positive_number),
            honoured=HonouredDirectives(_pacing(settings, visit_time), purposes, content_use),
            max_age=_read(settings, "REP_MAX_AGE", _optional(_positive_number)),
            max_fetches=max_fetches,
            max_origins=_read(settings, "REP_MAX_ORIGINS", _integer(at_least=1)),
            max_redirects=dialect.max_redirects if max_redirects is None else max_redirects,
            max_size=_read(
                settings,
                "REP_MAX_SIZE",
                _integer(at_least=MIN_PARSED_SIZE, because="500 KiB, RFC 9309 §2.5"),
            ),
            max_wait=_read(settings, "REP_MAX_WAIT", _positive_number),
            max_waiting=_read(settings, "REP_MAX_WAITING", _integer(at_least=1)),
            min_age=_read(settings, "REP_MIN_AGE", _positive_number),
            report=_read(settings, "REP_REPORT", _optional(parse_path)),
            pacing=_read(settings, "REP_PACING", _paced_by(store)),
            retry_delay=_read(settings, "REP_RETRY_DELAY", _positive_number),
            retry_max_delay=_read(settings, "REP_RETRY_MAX_DELAY", _positive_number),
            status_overrides=_read(settings, "REP_STATUS_OVERRIDES", _status_overrides),
            store=store,
            when_unreachable=when_unreachable or dialect.when_unreachable,
            unreachable_grace=_read(settings, "REP_UNREACHABLE_GRACE", _optional(_positive_number)),
            visit_time=visit_time,
            robotstxt_user_agent=settings.get("ROBOTSTXT_USER_AGENT"),
            default_user_agent=_user_agent_header(settings),
            user_agent=settings.get("USER_AGENT"),
        )

    @property
    def terms(self) -> CrawlTerms:
        """What decides about requests."""
        return CrawlTerms(self.dialect, self.max_wait, self.visit_time is VisitTime.WAIT)

    def bounds(self, started: float) -> Bounds:
        """What holds for times in a crawl that *started* then."""
        return Bounds(
            min_age=self.min_age,
            max_age=self.max_age,
            retry_delay=self.retry_delay,
            retry_max_delay=self.retry_max_delay,
            grace=self.unreachable_grace,
            started=started,
        )


def tokens(value: object) -> tuple[str, ...]:
    """*value*, one product token or a list of them, as a tuple.

    Raises :exc:`ValueError` for a token that can match no group.
    """
    listed = _listed(value)
    if not isinstance(listed, Sequence):
        raise ValueError("accepted: one product token or a list of them")
    return tuple(check_token(token) for token in listed)


def obeys_robotstxt(settings: BaseSettings) -> bool:
    """Whether the crawl is to obey robots.txt at all."""
    return settings.getbool("ROBOTSTXT_OBEY")


def downloader_middlewares(settings: BaseSettings) -> list[Any]:
    """What is enabled as a downloader middleware, as objects."""
    # Scrapy 2.16 gave getwithbase() a longer name.
    with_base = getattr(settings, "get_component_priority_dict_with_base", None)
    components = (with_base or settings.getwithbase)("DOWNLOADER_MIDDLEWARES")
    return [load_object(component) for component in build_component_list(components)]


def read_dialect(settings: BaseSettings) -> Dialect:
    """The dialect that ``REP_DIALECT`` names."""
    return _read(settings, "REP_DIALECT", _dialect)


def _read(settings: BaseSettings, name: str, check: Callable[[Any], _T]) -> _T:
    # Not settings.get(): to that, None is as good as nothing, and the default.
    return _checked(name, settings[name] if name in settings else DEFAULTS[name], check)


def _checked(name: str, value: Any, check: Callable[[Any], _T]) -> _T:
    try:
        return check(value)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{name} = {_shown(value)}: {error}") from None


# What may be a URL, perhaps with mistakes in it, unless it is plain that it has no password.
_MAY_HAVE_PASSWORD = re.compile(
    r"(?!(?:[a-z0-9+]+://[a-z0-9.\-]*|sqlite:)(?:/[^@?:#]*)?\Z)\b(?P<scheme>[a-z][a-z0-9+.\-]+:).*"
    r"|\S*[@?].*",
    re.IGNORECASE | re.DOTALL,
)


def _shown(value: Any) -> str:
    """*value* as Python would write it, but without what may be a password."""
    text = value if isinstance(value, str) else repr(value)
    shown = _MAY_HAVE_PASSWORD.sub(lambda found: f"{found['scheme'] or ''}...", text)
    return repr(shown) if isinstance(value, str) else shown


def _pacing(settings: BaseSettings, visit_time: VisitTime) -> frozenset[Field]:
    """The records about how fast and when a site wants to be visited that are acted on."""
    honoured = {
        Field.CRAWL_DELAY: _read(settings, "REP_CRAWL_DELAY", _boolean),
        Field.REQUEST_RATE: _read(settings, "REP_REQUEST_RATE", _boolean),
        Field.VISIT_TIME: visit_time is not VisitTime.OFF,
    }
    return frozenset(field for field, is_honoured in honoured.items() if is_honoured)


def _parser(settings: BaseSettings) -> type[RobotParser] | None:
    """ROBOTSTXT_PARSER; Scrapy's default for it is nobody's choice, so means ours."""
    name = "ROBOTSTXT_PARSER"
    if (settings.getpriority(name) or 0) <= SETTINGS_PRIORITIES["default"]:
        return None
    return _checked(name, settings.get(name), _robot_parser)


def _user_agent_header(settings: BaseSettings) -> str | None:
    """The User-Agent of DEFAULT_REQUEST_HEADERS, which goes before all others."""
    for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items():
        if name.lower() == "user-agent" and value:
            return str(value)
    return None


def _warn_about_unknown(settings: BaseSettings) -> None:
    for name in settings:
        if isinstance(name, str) and name.startswith("REP_") and name not in DEFAULTS:
            close = difflib.get_close_matches(name, DEFAULTS, n=1)
            logger.warning(
                "Unknown setting %(name)s%(hint)s",
                {"name": name, "hint": f", did you mean {close[0]}?" if close else ""},
            )


# -- checks: the value, or a ValueError that says what is accepted -------------


def _dialect(value: object) -> Dialect:
    if not isinstance(value, str) or value not in DIALECTS:
        raise ValueError(f"accepted: {', '.join(DIALECTS)}")
    return DIALECTS[value]


def _when_unreachable(value: object) -> WhenUnreachable:
    accepted = [when.value for when in WhenUnreachable]
    if value not in accepted:
        raise ValueError(f"accepted: {', '.join(accepted)}, or None for what the dialect says")
    return WhenUnreachable(value)


def _visit_time(value: object) -> VisitTime:
    accepted = [when.value for when in VisitTime]
    if value not in accepted:
        raise ValueError(f"accepted: {', '.join(accepted)}")
    return VisitTime(value)


def _content_use(value: object) -> ContentUse:
    accepted = [use.value for use in ContentUse]
    if value not in accepted:
        raise ValueError(f"accepted: {', '.join(accepted)}, or None to declare nothing")
    return ContentUse(value)


def _paced_by(store: StoreSpec) -> Callable[[object], PacedBy]:
    def check(value: object) -> PacedBy:
        if _is_none(value):
            return PacedBy.FLEET
        accepted = [paced_by.value for paced_by in PacedBy]
        if value not in accepted:
            raise ValueError(
                f"accepted: {', '.join(accepted)}, or None for all crawls that share the store"
            )
        if value == PacedBy.FLEET.value and store.redis is None:
            raise ValueError(
                "workers take turns in Redis, and REP_STORE names none; "
                'set REP_STORE = "redis://host:port/db", or REP_PACING to local'
            )
        return PacedBy(value)

    return check


def _boolean(value: object) -> bool:
    # As Scrapy reads them, from the command line too.
    known = {True: True, False: False, "1": True, "0": False, "true": True, "false": False}
    key = value.lower() if isinstance(value, str) else value
    if not isinstance(key, Hashable) or key not in known:
        raise ValueError("accepted: True or False")
    return known[key]


def _purposes(value: object) -> tuple[str, ...]:
    listed = _listed(value)
    if not isinstance(listed, Sequence) or not all(map(_is_label, listed)):
        known = ", ".join(sorted(KNOWN_PURPOSES))
        raise ValueError(f"accepted: a list of purposes, such as {known}; in lower case")
    for purpose in listed:
        if purpose not in KNOWN_PURPOSES:
            logger.warning(
                "REP_PURPOSES has %(purpose)r, which nobody has defined; known are %(known)s",
                {"purpose": purpose, "known": ", ".join(sorted(KNOWN_PURPOSES))},
            )
    return tuple(listed)


# RFC 9651 §3.1.2, the key of a dictionary.
_LABEL = re.compile(r"[a-z*][a-z0-9_\-.*]*")


def _is_label(purpose: object) -> bool:
    return isinstance(purpose, str) and _LABEL.fullmatch(purpose) is not None


def _positive_number(value: object) -> float:
    try:
        number = float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError("accepted: a number of seconds above 0")
    return number


def _share(value: object) -> float:
    try:
        number = float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("accepted: a number from 0 to 1")
    return number


def _integer(*, at_least: int, because: str = "") -> Callable[[object], int]:
    def check(value: object) -> int:
        accepted = f"accepted: an integer, at least {at_least}"
        if because:
            accepted += f" ({because})"
        try:
            number = int(cast(Any, value))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(accepted) from None
        if number < at_least or (isinstance(value, float) and number != value):
            raise ValueError(accepted)
        return number

    return check


def _optional(check: Callable[[Any], _T]) -> Callable[[Any], _T | None]:
    return lambda value: None if _is_none(value) else check(value)


def _is_none(value: object) -> bool:
    """Whether *value* is none, or means that on the command line, where all are strings."""
    return value is None or value in ("", "None")


def _strings(value: object) -> tuple[str, ...]:
    listed = _listed(value)
    if not isinstance(listed, Sequence) or not all(isinstance(key, str) for key in listed):
        raise ValueError("accepted: a list of names of request meta keys")
    return tuple(listed)


def _listed(value: object) -> object:
    """Strings as Scrapy reads lists from the command line, ``-s REP_AGENT_TOKENS=a,b``."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",")] if value else []


# RFC 9110 §15: three digits. Some servers invent one above 599.
_STATUS = re.compile("[1-9][0-9]{2}")


def _status_overrides(value: object) -> dict[int, Access]:
    accepted = f"accepted: a dict of HTTP status to one of {', '.join(_OVERRIDES)}"
    if isinstance(value, str):
        # As Scrapy reads dicts from the command line: JSON, whose keys are strings.
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(
                f'{accepted}; in a string, as JSON: {{"429": "unreachable"}}'
            ) from None
    if not isinstance(value, Mapping):
        raise ValueError(accepted)
    overrides: dict[int, Access] = {}
    for status, access in value.items():
        known = isinstance(access, str) and access in _OVERRIDES
        if not _STATUS.fullmatch(str(status)) or not known:
            raise ValueError(f"{accepted}; not {status!r}: {access!r}")
        overrides[int(status)] = _OVERRIDES[access]
    return overrides


def _feed(settings: BaseSettings) -> Callable[[object], FeedSpec]:
    def check(value: object) -> FeedSpec:
        storages = {
            scheme: storage
            for scheme, storage in settings.getwithbase("FEED_STORAGES").items()
            if storage is not None
        }
        schemes = ", ".join(sorted(filter(None, storages)))
        accepted = f"accepted: a path, or a URI with a scheme of FEED_STORAGES: {schemes}"
        if not isinstance(value, (str, Path)):
            raise ValueError(accepted)
        uri = str(value)
        # As Scrapy does it: the drive of a Windows path is no scheme.
        scheme = "file" if PureWindowsPath(uri).drive else urlsplit(uri).scheme
        if scheme not in storages:
            raise ValueError(accepted)
        try:
            return FeedSpec(uri, load_object(storages[scheme]))
        except Exception as error:
            raise ValueError(f"FEED_STORAGES[{scheme!r}] cannot be loaded ({error})") from None

    return check


def _robot_parsers(value: object) -> tuple[type[RobotParser], ...]:
    listed = _listed(value)
    if not isinstance(listed, Sequence):
        raise ValueError(
            "accepted: a list of import paths of subclasses of scrapy.robotstxt.RobotParser"
        )
    # dict, as a set that keeps the order
    return tuple(dict.fromkeys(_robot_parser(parser) for parser in listed))


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
