"""What is written to an audit log, without a crawl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.utils.test import get_crawler

from scrapy_rep.evidence import recorder
from scrapy_rep.evidence.recorder import EvidenceRecorder
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from tests.policy_examples import NOON, with_rules

BODY = b"User-agent: a\nDisallow: /\n\nUser-agent: *\nDisallow: /no\n"


class Crawl:
    """A crawl of which there is only the audit log in *directory*."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "audit.jsonl"
        self.crawler = get_crawler(Spider, {"REP_AUDIT": str(self._path)})
        settings = RepSettings.read(self.crawler.settings)
        self.recorder = EvidenceRecorder(self.crawler, settings, lambda: NOON + 9)
        spider = Spider("example")
        self.crawler.signals.send_catch_log(signals.spider_opened, spider=spider)

    def decide(self, policy: Policy, path: str = "/no", agent: str = "x", after: float = 5) -> None:
        request = Request(f"{policy.origin}{path}")
        verdict = policy.verdict(request.url, agent, NOON + after)
        self.recorder.on_decision(request, policy, (agent,), verdict)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All lines but the first."""
        return [json.loads(line) for line in self._path.read_bytes().splitlines()][1:]

    @property
    def types(self) -> list[str]:
        return [line["type"] for line in self.lines]


def test_decisions_rest_on_one_line_about_equal_entries(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    for policy in (with_rules(BODY), with_rules(BODY), with_rules(BODY + b"#")):
        crawl.decide(policy)
    assert crawl.types == ["stored", "decision", "decision", "stored", "decision"]
    stored, first, second, other, third = crawl.lines
    assert first["rests_on"] == second["rests_on"] == stored["digest"]
    assert third["rests_on"] == other["digest"]


def test_a_decision_has_the_time_of_its_verdict(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.decide(with_rules(BODY), after=5)
    [_, line] = crawl.lines
    assert (line["time"], line["age"]) == (NOON + 5, 5)


def test_verdicts_that_are_alike_are_told_apart(tmp_path: Path) -> None:
    crawl, policy = Crawl(tmp_path), with_rules(BODY)
    asked = [("/", "a"), ("/no", "a"), ("/no", "x"), ("/no", "y"), ("/yes", "x"), ("/", "a")]
    for path, agent in asked:
        crawl.decide(policy, path, agent)
    found = [(line["agents"], line["reason"], line.get("line")) for line in crawl.lines[1:]]
    assert found == [
        (["a"], "rule", 2),
        (["a"], "rule", 2),
        (["x"], "rule", 5),
        (["y"], "rule", 5),
        (["x"], "no-rule", None),
        (["a"], "rule", 2),
    ]


def test_what_is_known_of_origins_is_bounded_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_MAX_BYTES", 2 * len(BODY))
    crawl = Crawl(tmp_path)
    one, two, three = (with_rules(BODY, f"https://{name}") for name in ("one", "two", "three"))
    for policy in (one, two, one, three, two, one):
        crawl.decide(policy)
    origins = [line["origin"] for line in crawl.lines if line["type"] == "stored"]
    assert origins == ["https://one", "https://two", "https://three", "https://one"]
