"""Every setting of this package: name, default, check."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

import pytest
from scrapy.extensions.feedexport import FileFeedStorage, S3FeedStorage
from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser
from scrapy.settings import Settings

from scrapy_rep.cli.store import store_place
from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.report.path import ReportPath
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.rep.caching.freshness import Bounds
from scrapy_rep.rep.decision import CrawlTerms
from scrapy_rep.rep.dialects import GOOGLE, RFC9309, Access, WhenUnreachable
from scrapy_rep.rep.directives.directives import HonouredDirectives
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import ContentUse
from scrapy_rep.settings import (
    DEFAULTS,
    FeedSpec,
    PacedBy,
    PageRuleMode,
    RepSettings,
    VisitTime,
    changed,
    tokens,
)
from scrapy_rep.stores.open import StoreSpec


def read(**values: Any) -> RepSettings:
    return RepSettings.read(Settings(values, priority="project"))


def test_the_defaults() -> None:
    settings = read()
    assert settings.agent_tokens == ()
    assert settings.dialect is RFC9309
    assert settings.parser is None
    assert settings.fallback_parser is ProtegoRobotParser
    assert {"proxy", "bindaddress", "http_user", "http_pass", "http_auth_domain"} <= set(
        settings.fetch_meta_keys
    )
    assert settings.fetch_timeout == 15.0
    assert settings.max_age is None
    assert settings.min_age == 300
    assert settings.max_redirects == 5
    assert settings.max_size == 512_000
    assert settings.report is None
    assert settings.retry_delay == 60
    assert settings.retry_max_delay == 3600
    assert settings.status_overrides == {}
    assert settings.store == StoreSpec(in_memory=False)
    assert settings.when_unreachable is WhenUnreachable.DISALLOW
    assert settings.unreachable_grace is None
    assert settings.honoured == HonouredDirectives(
        frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE})
    )
    assert settings.crawl_delay_max == 60
    assert settings.visit_time is VisitTime.OFF


PACING = frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE, Field.VISIT_TIME})


def honoured(*purposes: str, shown: ContentUse | None = None) -> HonouredDirectives:
    return HonouredDirectives(PACING - {Field.VISIT_TIME}, purposes, shown)


ACCEPTED: list[tuple[str, Any, str, Any]] = [
    ("REP_AGENT_TOKENS", "ExampleBot", "agent_tokens", ("ExampleBot",)),
    ("REP_AGENT_TOKENS", "A, B", "agent_tokens", ("A", "B")),
    ("REP_AGENT_TOKENS", ["A", "B"], "agent_tokens", ("A", "B")),
    ("REP_AGENT_TOKENS", (), "agent_tokens", ()),
    ("REP_AGENT_TOKENS", "", "agent_tokens", ()),
    ("REP_ARCHIVE", "archive/", "archive", "archive/"),
    ("REP_ARCHIVE", Path("a"), "archive", "a"),
    ("REP_ARCHIVE", "None", "archive", None),
    ("REP_AUDIT", "a.jsonl", "audit", FeedSpec("a.jsonl", FileFeedStorage)),
    ("REP_AUDIT", None, "audit", None),
    ("REP_COMPARE_FEED", "a.jsonl", "compare_feed", FeedSpec("a.jsonl", FileFeedStorage)),
    ("REP_COMPARE_FEED", Path("a"), "compare_feed", FeedSpec("a", FileFeedStorage)),
    ("REP_COMPARE_FEED", "file:///a", "compare_feed", FeedSpec("file:///a", FileFeedStorage)),
    ("REP_COMPARE_FEED", "S3://a/b", "compare_feed", FeedSpec("S3://a/b", S3FeedStorage)),
    ("REP_COMPARE_FEED", "C:\\a", "compare_feed", FeedSpec("C:\\a", FileFeedStorage)),
    ("REP_COMPARE_FEED", "", "compare_feed", None),
    ("REP_COMPARE_SAMPLE", "0.25", "compare_sample", 0.25),
    ("REP_COMPARE_SAMPLE", 0, "compare_sample", 0.0),
    ("REP_COMPARE_WITH", [], "compare_with", ()),
    (
        "REP_COMPARE_WITH",
        "scrapy.robotstxt.ProtegoRobotParser,scrapy.robotstxt.PythonRobotParser",
        "compare_with",
        (ProtegoRobotParser, PythonRobotParser),
    ),
    (
        "REP_COMPARE_WITH",
        [RepRobotParser, "scrapy_rep.RepRobotParser"],
        "compare_with",
        (RepRobotParser,),
    ),
    ("REP_CRAWL_DELAY", False, "honoured", HonouredDirectives(frozenset({Field.REQUEST_RATE}))),
    ("REP_CRAWL_DELAY", "0", "honoured", HonouredDirectives(frozenset({Field.REQUEST_RATE}))),
    (
        "REP_CRAWL_DELAY",
        "True",
        "honoured",
        HonouredDirectives(frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE})),
    ),
    ("REP_CRAWL_DELAY_MAX", "2.5", "crawl_delay_max", 2.5),
    ("REP_DIALECT", "google", "dialect", GOOGLE),
    ("REP_FALLBACK_PARSER", None, "fallback_parser", None),
    ("REP_FALLBACK_PARSER", "", "fallback_parser", None),
    ("REP_FALLBACK_PARSER", PythonRobotParser, "fallback_parser", PythonRobotParser),
    (
        "REP_FETCH_HEADERS",
        {"X-A": "1", "Accept": None},
        "fetch_headers",
        {"X-A": "1", "Accept": None},
    ),
    ("REP_FETCH_HEADERS", '{"X-A": null}', "fetch_headers", {"X-A": None}),
    ("REP_FETCH_META_KEYS", "proxy,bindaddress", "fetch_meta_keys", ("proxy", "bindaddress")),
    ("REP_FETCH_META_KEYS", [], "fetch_meta_keys", ()),
    ("REP_FETCH_TIMEOUT", "2.5", "fetch_timeout", 2.5),
    ("REP_FLEET_SIZE", None, "fleet_size", None),
    ("REP_FLEET_SIZE", "", "fleet_size", None),
    ("REP_FLEET_SIZE", "4", "fleet_size", 4),
    ("REP_HISTORY", "0", "history", 0),
    ("REP_MAX_AGE", 60, "max_age", 60.0),
    ("REP_MAX_AGE", "", "max_age", None),
    ("REP_MAX_AGE", "None", "max_age", None),
    ("REP_MAX_ORIGINS", "1", "max_origins", 1),
    ("REP_MAX_REDIRECTS", 20, "max_redirects", 20),
    ("REP_MAX_SIZE", 1_000_000, "max_size", 1_000_000),
    ("REP_MAX_WAIT", 60, "max_wait", 60.0),
    ("REP_MAX_FETCHES", "8", "max_fetches", 8),
    ("REP_HISTORY", 0, "history", 0),
    ("REP_MAX_WAITING", 1, "max_waiting", 1),
    ("REP_MAX_WAITING", 1.0, "max_waiting", 1),
    ("REP_MIN_AGE", "1", "min_age", 1.0),
    ("REP_BACKOFF", False, "backoff", False),
    ("REP_BACKOFF", "on", "backoff", True),
    ("REP_BACKOFF", "off", "backoff", False),
    ("REP_BACKOFF_MAX", "0.5", "backoff_max", 0.5),
    ("REP_PACING", None, "pacing", PacedBy.FLEET),
    ("REP_PACING", "None", "pacing", PacedBy.FLEET),
    ("REP_NOFOLLOW", "ugc,nofollow", "nofollow", frozenset({"ugc", "nofollow"})),
    ("REP_NOFOLLOW", [], "nofollow", frozenset()),
    ("REP_PAGE_RULES", "off", "page_rules", PageRuleMode.OFF),
    ("REP_PAGE_RULES", "annotate", "page_rules", PageRuleMode.ANNOTATE),
    ("REP_PAGE_RULES", "obey", "page_rules", PageRuleMode.OBEY),
    ("REP_TDM_FILE", "1", "tdm_file", True),
    ("REP_TDM_FILE", False, "tdm_file", False),
    ("REP_PACING", "local", "pacing", PacedBy.LOCAL),
    ("REP_CONTENT_USE", "None", "honoured", honoured()),
    ("REP_CONTENT_USE", "reference", "honoured", honoured(shown=ContentUse.REFERENCE)),
    ("REP_PURPOSES", "search", "honoured", honoured("search")),
    ("REP_PURPOSES", "search, ai-train", "honoured", honoured("search", "ai-train")),
    ("REP_PURPOSES", ["train-ai"], "honoured", honoured("train-ai")),
    ("REP_REQUEST_RATE", 0, "honoured", HonouredDirectives(frozenset({Field.CRAWL_DELAY}))),
    ("REP_REPORT", "", "report", None),
    ("REP_REPORT", "None", "report", None),
    ("REP_REPORT", "robots.html", "report", ReportPath("robots.html")),
    ("REP_REPORT", Path("a", "robots.html"), "report", ReportPath("a/robots.html")),
    ("REP_RETRY_DELAY", 0.5, "retry_delay", 0.5),
    ("REP_RETRY_MAX_DELAY", 5, "retry_max_delay", 5.0),
    ("REP_STORE", "memory", "store", StoreSpec(in_memory=True)),
    ("REP_STORE", "sqlite:///a.sqlite", "store", StoreSpec(False, Path("a.sqlite"))),
    ("REP_UNREACHABLE", "defer", "when_unreachable", WhenUnreachable.DEFER),
    ("REP_UNREACHABLE", "", "when_unreachable", WhenUnreachable.DISALLOW),
    ("REP_UNREACHABLE_GRACE", 86_400, "unreachable_grace", 86_400.0),
    ("REP_VISIT_TIME", "wait", "visit_time", VisitTime.WAIT),
    ("REP_VISIT_TIME", "refuse", "honoured", HonouredDirectives(PACING)),
    (
        "REP_STATUS_OVERRIDES",
        {429: "unreachable", "403": "disallow", 500: "allow", 401: "unavailable"},
        "status_overrides",
        {
            429: Access.UNREACHABLE,
            403: Access.DISALLOWED,
            500: Access.UNAVAILABLE,
            401: Access.UNAVAILABLE,
        },
    ),
    # As from the command line.
    (
        "REP_STATUS_OVERRIDES",
        '{"429": "unreachable"}',
        "status_overrides",
        {429: Access.UNREACHABLE},
    ),
    (
        "ROBOTSTXT_PARSER",
        "scrapy.robotstxt.PythonRobotParser",
        "parser",
        PythonRobotParser,
    ),
    ("ROBOTSTXT_PARSER", "scrapy.robotstxt.ProtegoRobotParser", "parser", ProtegoRobotParser),
    ("ROBOTSTXT_PARSER", "scrapy_rep.RepRobotParser", "parser", RepRobotParser),
    ("ROBOTSTXT_USER_AGENT", "ExampleBot", "robotstxt_user_agent", "ExampleBot"),
    ("USER_AGENT", "ExampleBot/1", "user_agent", "ExampleBot/1"),
    ("DEFAULT_REQUEST_HEADERS", {"user-agent": "A/1"}, "default_user_agent", "A/1"),
    ("DEFAULT_REQUEST_HEADERS", {"User-Agent": None}, "default_user_agent", None),
]


@pytest.mark.parametrize(("name", "value", "field", "expected"), ACCEPTED)
def test_a_value_that_makes_sense(name: str, value: Any, field: str, expected: Any) -> None:
    assert getattr(read(**{name: value}), field) == expected


SECONDS = "accepted: a number of seconds above 0"
REFUSED: list[tuple[str, Any, str]] = [
    ("REP_AGENT_TOKENS", "Example Bot", "is not a valid product token"),
    ("REP_AGENT_TOKENS", ["ExampleBot/1.0"], "is not a valid product token"),
    ("REP_AGENT_TOKENS", ["*"], "is not a valid product token"),
    ("REP_AGENT_TOKENS", "a,", "is not a valid product token"),
    ("REP_AGENT_TOKENS", [1], "is not a valid product token"),
    ("REP_AGENT_TOKENS", 1, "accepted: one product token or a list of them"),
    (
        "REP_COMPARE_FEED",
        "gopher://a",
        "accepted: a path, or a URI with a scheme of FEED_STORAGES: ",
    ),
    ("REP_ARCHIVE", 1, "accepted: the path of a directory"),
    ("REP_ARCHIVE", "s3://bucket/a", "not a URL"),
    ("REP_ARCHIVE", "a\0b", "accepted: the path of a directory"),
    ("REP_AUDIT", "gopher://a", " gs, s3, stdout"),
    ("REP_COMPARE_FEED", "gopher://a", " gs, s3, stdout"),
    ("REP_COMPARE_FEED", 1, "accepted: a path"),
    ("REP_COMPARE_SAMPLE", 1.01, "accepted: a number from 0 to 1"),
    ("REP_COMPARE_SAMPLE", -0.01, "accepted: a number from 0 to 1"),
    ("REP_COMPARE_SAMPLE", "nan", "accepted: a number from 0 to 1"),
    ("REP_COMPARE_SAMPLE", None, "accepted: a number from 0 to 1"),
    ("REP_COMPARE_WITH", None, "accepted: a list of import paths"),
    ("REP_COMPARE_WITH", ["protego.Protego"], "accepted: the import path of a subclass"),
    ("REP_COMPARE_WITH", "no.such.Parser", "accepted: the import path of a subclass"),
    ("REP_BACKOFF", "yes", "accepted: True or False"),
    ("REP_BACKOFF_MAX", 0, "accepted: a number of seconds above 0"),
    ("REP_CRAWL_DELAY", "yes", "accepted: True or False"),
    ("REP_CRAWL_DELAY", 3.0, "accepted: True or False"),
    ("REP_CRAWL_DELAY", None, "accepted: True or False"),
    ("REP_REQUEST_RATE", [], "accepted: True or False"),
    ("REP_VISIT_TIME", True, "accepted: off, wait, refuse"),
    ("REP_VISIT_TIME", None, "accepted: off, wait, refuse"),
    ("REP_NOFOLLOW", ["noopener"], "accepted: a list of nofollow, ugc, sponsored"),
    ("REP_NOFOLLOW", 1, "accepted: a list of nofollow, ugc, sponsored"),
    ("REP_PAGE_RULES", "on", "accepted: off, annotate, obey"),
    ("REP_PAGE_RULES", True, "accepted: off, annotate, obey"),
    ("REP_TDM_FILE", "maybe", "accepted: True or False"),
    ("REP_PACING", "shared", "accepted: local, fleet, or None"),
    ("REP_PACING", "fleet", 'Set REP_STORE = "redis://host:port/db" or REP_PACING'),
    ("REP_PURPOSES", 1, "accepted: a list of purposes, such as ai-input, ai-train, "),
    ("REP_CONTENT_USE", "all", "accepted: immediate, reference, full, or None"),
    ("REP_CONTENT_USE", True, "accepted: immediate, reference, full, or None"),
    ("REP_PURPOSES", ["Search"], "accepted: a list of purposes"),
    ("REP_PURPOSES", ["search=no"], "accepted: a list of purposes"),
    ("REP_PURPOSES", [None], "accepted: a list of purposes"),
    ("REP_DIALECT", "RFC9309", "accepted: rfc9309, google"),
    ("REP_DIALECT", None, "accepted: rfc9309, google"),
    ("REP_DIALECT", ["google"], "accepted: rfc9309, google"),
    ("REP_FALLBACK_PARSER", "no.such.Parser", "accepted: the import path of a subclass"),
    ("REP_FALLBACK_PARSER", "scrapy.Spider", "accepted: the import path of a subclass"),
    ("REP_FALLBACK_PARSER", 1, "accepted: the import path of a subclass"),
    ("ROBOTSTXT_PARSER", "protego.Protego", "accepted: the import path of a subclass"),
    ("REP_FLEET_SIZE", 0, "accepted: an integer, at least 1"),
    ("REP_FLEET_SIZE", "many", "accepted: an integer, at least 1"),
    ("REP_FETCH_HEADERS", ["X-A"], "accepted: a dict of header names to a text, or None"),
    ("REP_FETCH_HEADERS", "X-A=1", 'in a string, as JSON: {"X-Region": "eu"}'),
    ("REP_FETCH_HEADERS", {"X A": "1"}, "not 'X A'"),
    ("REP_FETCH_HEADERS", {"X-A": 1}, "not 'X-A': 1"),
    ("REP_FETCH_HEADERS", {"X-A": "1\r\n2"}, "not 'X-A': '1\\r\\n2'"),
    ("REP_FETCH_META_KEYS", 1, "accepted: a list of names of request meta keys"),
    ("REP_FETCH_META_KEYS", [1], "accepted: a list of names of request meta keys"),
    *(
        (name, value, SECONDS)
        for name in (
            "REP_CRAWL_DELAY_MAX",
            "REP_FETCH_TIMEOUT",
            "REP_MAX_AGE",
            "REP_MAX_WAIT",
            "REP_MIN_AGE",
            "REP_RETRY_DELAY",
            "REP_RETRY_MAX_DELAY",
            "REP_UNREACHABLE_GRACE",
        )
        for value in (0, -1, "soon", "nan", float("inf"), 10**400, [1])
    ),
    ("REP_FETCH_TIMEOUT", None, SECONDS),
    ("REP_HISTORY", -1, "accepted: an integer, at least 0"),
    ("REP_MAX_ORIGINS", 0, "accepted: an integer, at least 1"),
    ("REP_MAX_ORIGINS", "many", "accepted: an integer, at least 1"),
    ("REP_MAX_ORIGINS", float("inf"), "accepted: an integer, at least 1"),
    ("REP_MAX_ORIGINS", None, "accepted: an integer, at least 1"),
    ("REP_MAX_REDIRECTS", 4, "accepted: an integer, at least 5 (RFC 9309 §2.3.1.2)"),
    ("REP_MAX_SIZE", 511_999, "accepted: an integer, at least 512000 (500 KiB, RFC 9309 §2.5)"),
    ("REP_MAX_FETCHES", 0, "accepted: an integer, at least 1"),
    ("REP_HISTORY", -1, "accepted: an integer, at least 0"),
    ("REP_MAX_WAITING", 0, "accepted: an integer, at least 1"),
    ("REP_MAX_WAITING", 1.5, "accepted: an integer, at least 1"),
    ("REP_REPORT", 1, "accepted: the path of a file"),
    ("REP_REPORT", "s3://bucket/robots.html", "no URL"),
    ("REP_STORE", "postgres://a", "accepted: memory; sqlite"),
    ("REP_STORE", None, "accepted: memory; sqlite"),
    ("REP_STORE", "sqlite:///", "is not the path of a file; accepted: memory; sqlite"),
    ("REP_UNREACHABLE", "retry", "accepted: disallow, defer, allow, or None"),
    ("REP_STATUS_OVERRIDES", {429: "retry"}, "accepted: a dict of HTTP status to one of"),
    ("REP_STATUS_OVERRIDES", {429: ["allow"]}, "accepted: a dict of HTTP status to one of"),
    ("REP_STATUS_OVERRIDES", {"5xx": "allow"}, "accepted: a dict of HTTP status to one of"),
    ("REP_STATUS_OVERRIDES", {-1: "allow"}, "accepted: a dict of HTTP status to one of"),
    ("REP_STATUS_OVERRIDES", {"99": "allow"}, "not '99': 'allow'"),
    ("REP_STATUS_OVERRIDES", {4290: "allow"}, "not 4290: 'allow'"),
    ("REP_STATUS_OVERRIDES", '{429: "allow"}', 'as JSON: {"429": "unreachable"}'),
    ("REP_STATUS_OVERRIDES", [429], "accepted: a dict of HTTP status to one of"),
    ("REP_STATUS_OVERRIDES", "429=allow", "accepted: a dict of HTTP status to one of"),
]


@pytest.mark.parametrize(
    ("name", "value", "accepted"), REFUSED, ids=lambda value: ascii(value)[:30]
)
def test_a_value_that_makes_none_is_refused_with_name_value_and_what_is_accepted(
    name: str, value: Any, accepted: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"{name} = {value!r}: ")) as raised:
        read(**{name: value})
    assert accepted in str(raised.value)


def test_no_traceback_hides_the_message() -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(REP_MAX_WAIT="soon")
    # As asyncio hands it to the logger, which writes what a crawl did not start for.
    error = raised.value
    shown = traceback.format_exception(type(error), error, error.__traceback__)
    assert shown == [
        f"scrapy_rep.exceptions.ConfigurationError: REP_MAX_WAIT = 'soon': {SECONDS}\n"
    ]


def test_every_setting_has_a_case_above() -> None:
    assert set(DEFAULTS) <= {name for name, *_ in ACCEPTED}
    assert set(DEFAULTS) <= {name for name, *_ in REFUSED}


def test_the_dialect_says_what_no_setting_says() -> None:
    settings = read(REP_DIALECT="koster1996")
    assert settings.when_unreachable is WhenUnreachable.DEFER
    assert settings.max_redirects == 20
    assert read(REP_DIALECT="koster1994").when_unreachable is WhenUnreachable.ALLOW


@pytest.mark.parametrize(
    ("value", "pacing"),
    [(None, PacedBy.FLEET), ("fleet", PacedBy.FLEET), ("local", PacedBy.LOCAL)],
)
def test_who_paces_with_a_store_in_redis(value: str | None, pacing: PacedBy) -> None:
    assert read(REP_STORE="redis://localhost", REP_PACING=value).pacing is pacing


def test_what_settings_say_goes_before_the_dialect() -> None:
    settings = read(REP_DIALECT="koster1996", REP_UNREACHABLE="disallow", REP_MAX_REDIRECTS=6)
    assert settings.when_unreachable is WhenUnreachable.DISALLOW
    assert settings.max_redirects == 6


def test_bounds_are_those_of_the_settings() -> None:
    bounds = read(REP_MIN_AGE=1, REP_MAX_AGE=2, REP_RETRY_DELAY=3, REP_RETRY_MAX_DELAY=4)
    assert bounds.bounds(started=5.0) == Bounds(1, 2, 3, 4, None, 5)
    assert read(REP_UNREACHABLE_GRACE=6).bounds(started=5.0).grace == 6


@pytest.mark.parametrize(("visit_time", "until_open"), [("wait", True), ("refuse", False)])
def test_what_decisions_depend_on(visit_time: str, until_open: bool) -> None:
    settings = read(REP_DIALECT="google", REP_MAX_WAIT=7, REP_VISIT_TIME=visit_time)
    assert settings.terms == CrawlTerms(GOOGLE, 7.0, until_open)


def test_without_a_limit_of_requests_that_of_fetches_holds() -> None:
    assert read(CONCURRENT_REQUESTS=3, REP_MAX_FETCHES=7).concurrent_requests == 3
    assert read(CONCURRENT_REQUESTS=0, REP_MAX_FETCHES=7).concurrent_requests == 7


def test_what_is_changed_is_shown_without_secrets() -> None:
    values = {"REP_FETCH_HEADERS": {"X-Key": "secret"}, "REP_MAX_AGE": 5, "REP_HISTORY": 5}
    shown = changed(Settings(values, priority="project"))
    assert shown == {"REP_FETCH_HEADERS": "not shown, may be secret", "REP_MAX_AGE": "5"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("REP_MAX_SISE", " Did you mean REP_MAX_SIZE?"), ("REP_" + "X" * 20, "")],
)
def test_an_unknown_setting_is_warned_about(
    name: str, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    read(**{name: 1})
    (record,) = caplog.records
    assert record.getMessage() == f"Unknown setting {name} is ignored.{hint}"


def test_known_settings_are_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    read(**DEFAULTS, REPORT=1)
    assert caplog.records == []


def test_a_feed_may_have_a_storage_of_the_project() -> None:
    settings = read(REP_COMPARE_FEED="mine:a", FEED_STORAGES={"mine": FileFeedStorage, "s3": None})
    assert settings.compare_feed == FeedSpec("mine:a", FileFeedStorage)


@pytest.mark.parametrize(
    ("storages", "says"),
    [({"s3": None}, "accepted: a path"), ({"s3": "no.such.Storage"}, "FEED_STORAGES['s3'] cannot")],
)
def test_a_feed_needs_a_storage(storages: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        read(REP_COMPARE_FEED="s3://a/b", FEED_STORAGES=storages)


def test_tokens_are_refused_on_their_own_too() -> None:
    with pytest.raises(ValueError, match="'a b' is not a valid product token"):
        tokens(["a b"])


def test_a_purpose_that_nobody_has_defined_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert read(REP_PURPOSES=["search", "ai_train"]).honoured.purposes == ("search", "ai_train")
    (warning,) = caplog.messages
    assert "'ai_train'" in warning
    assert "ai-train" in warning


@pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+sentinel", "unix", "http", "redis:x"])
@pytest.mark.parametrize(
    "rest",
    [
        "//me:secret@host?no=option",
        "//:secret@/1",
        "//me:secret@host/x",
        "//me:secret/secret@host",
        "//me/secret@host/x",
        "//me:secret?secret@host",
        "//me:1?secret@host",
        "//me:1#secret@host/x",
        "//me:[secret@host",
        "//host:secret/1",
        "//host?password=secret&no=option",
        "//host/x?password=secret",
        "//host?sentinel_password=secret&no=option",
        "//host/x/y?sentinel_password=secret",
        "//host/1?secret=1",
        "//host/1?port=secret",
        "//host/1?db=secret",
        "//host/1?socket_timeout=secret",
        "//host/1?ssl_cert_reqs=secret",
        "//host/1?prefix=\N{SNOWMAN}&password=secret",
        "/:secret@host",
        "/?password=secret",
        ":secret",
    ],
)
def test_no_password_in_errors(scheme: str, rest: str) -> None:
    url = f"{scheme}:{rest}"
    for value in (url, [url], url.encode()):
        try:
            shown = store_place(read(REP_STORE=value))
        except ConfigurationError as error:
            # What is behind an error is in its traceback.
            shown = "".join(traceback.format_exception(error, limit=0))
        assert "secret" not in shown


def test_an_unknown_way_to_check_certificates_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigurationError, match=r"REP_STORE = 'rediss:\.\.\.': redis-py does not"):
        read(REP_STORE="rediss://host?ssl_cert_reqs=nonsense")


def test_values_without_passwords_are_shown_whole() -> None:
    with pytest.raises(ConfigurationError, match="REP_STORE = 'sqlite:///some/folder/': is not"):
        read(REP_STORE="sqlite:///some/folder/")


def test_page_rules_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.settings.find_spec", lambda name: None)
    assert read().page_rules is PageRuleMode.OFF
    with pytest.raises(ConfigurationError, match=r"pip install http-sf"):
        read(REP_PAGE_RULES="annotate")
