"""Somebody else's parser, and parsers that fail."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.integration.crawling import Job, ok, pages, reset, site

PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"
PARSERS = "tests.integration.parsers"


def test_protego_judges_and_the_access_policy_stays_ours(
    servers: LoopbackServers, loop: str
) -> None:
    good = servers.serve(site(ok()))
    down = servers.serve(site(reset))
    urls = [f"{good.url}/yes", f"{good.url}/no", f"{good.url}/robots.txt", f"{down.url}/yes"]
    settings = {"ROBOTSTXT_PARSER": PROTEGO}
    result = Job(pages(*urls), loop, settings).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "refused", "fetched", "refused"]
    by_protego = result.outcomes[urls[1]]
    assert (by_protego["reason"], by_protego["line"]) == ("other-parser", 0)
    assert result.outcomes[urls[3]]["reason"] == "unreachable"


@pytest.mark.parametrize("parser", ["FailsToParse", "FailsWhenAsked"])
def test_a_parser_that_raises_hands_over_to_the_fallback(
    servers: LoopbackServers, loop: str, parser: str
) -> None:
    sites = [servers.serve(site(ok())) for _ in range(2)]
    urls = [site.url + path for site in sites for path in ("/yes", "/no", "/no/2")]
    settings = {"ROBOTSTXT_PARSER": f"{PARSERS}.{parser}"}
    result = Job(pages(*urls), loop, settings).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "refused", "refused"] * 2
    assert result.outcomes[urls[1]]["reason"] == "other-parser"
    assert result.stats[f"robotstxt/parser_error_count/{PARSERS}.{parser}"] == "2"
    # Once per origin, however often it is asked about.
    warnings = [line for line in result.our_log() if f"{PARSERS}.{parser} failed" in line]
    assert len(warnings) == 2


def test_protego_is_asked_when_our_own_parser_raises(servers: LoopbackServers, loop: str) -> None:
    good = servers.serve(site(ok()))
    result = Job(pages(f"{good.url}/yes", f"{good.url}/no"), loop, own_parser_fails=True).run()
    assert result.outcome(f"{good.url}/yes") == "fetched"
    assert result.outcome(f"{good.url}/no") == "refused"
    assert result.outcomes[f"{good.url}/no"]["reason"] == "other-parser"
    (warning,) = [line for line in result.our_log() if "failed" in line]
    assert "our own parser fails" in warning


def test_what_no_parser_can_read_is_refused(servers: LoopbackServers, loop: str) -> None:
    good = servers.serve(site(ok()))
    urls = [f"{good.url}/yes", f"{good.url}/robots.txt"]
    settings = {"REP_FALLBACK_PARSER": f"{PARSERS}.FailsWhenAsked"}
    result = Job(pages(*urls), loop, settings, own_parser_fails=True).run()
    assert [result.outcome(url) for url in urls] == ["refused", "fetched"]
    assert result.outcomes[urls[0]]["reason"] == "unreadable"


def test_scrapys_own_middleware_takes_our_parser(servers: LoopbackServers, loop: str) -> None:
    good = servers.serve(site(ok(b"User-agent: ExampleBot\nDisallow: /no\n")))
    settings = {
        "ADDONS": {},
        "ROBOTSTXT_OBEY": True,
        "ROBOTSTXT_PARSER": "scrapy_rep.RepRobotParser",
        "USER_AGENT": "Mozilla/5.0 (compatible; ExampleBot/1.0)",
    }
    result = Job(pages(f"{good.url}/yes", f"{good.url}/no"), loop, settings).run()
    assert result.outcome(f"{good.url}/yes") == "fetched"
    assert result.outcome(f"{good.url}/no") == "failed"
    assert "Forbidden by robots.txt" in result.outcomes[f"{good.url}/no"]["text"]


HOSTILE = (
    "User-agent: *\n"
    "Crawl-delay: \x1b]0;delay\x07\n"
    "Request-rate: \x1b[2J\u202erate\n"
    "Visit-time: \x9b2Jtime\n"
    "Disallow: /no\n"
)


@pytest.mark.parametrize(
    "settings",
    [
        {"ROBOTSTXT_PARSER": PROTEGO},
        {"REP_COMPARE_WITH": [PROTEGO]},
        {"ROBOTSTXT_PARSER": f"{PARSERS}.QuotesTheFile"},
        {"REP_COMPARE_WITH": [f"{PARSERS}.QuotesTheFile"]},
    ],
)
def test_no_log_line_has_power_over_a_terminal(
    servers: LoopbackServers, loop: str, settings: dict[str, Any]
) -> None:
    one = servers.serve(site(ok(HOSTILE.encode())))
    done = Job(pages(f"{one.url}/no"), loop, {"LOG_LEVEL": "DEBUG", **settings}).start()
    assert done.returncode == 0
    for value in ("\\x1b]0;delay\\x07", "\\x1b[2J\\u202erate", "\\x9b2Jtime"):
        assert value in done.stderr
    assert [line for line in done.stderr.split("\n") if not line.isprintable()] == []
