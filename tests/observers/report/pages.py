"""Pages read as a browser reads them, and reports to make pages of."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from scrapy_rep.observers.report.file import read_file
from scrapy_rep.observers.report.model import (
    CrawlReport,
    Decisions,
    Disagreement,
    Event,
    OriginReport,
    RefusedURL,
)
from scrapy_rep.observers.report.page import render
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.settings import RepSettings

NOON = 1_800_000_000.0
SETTINGS = RepSettings.read(Settings())
RULES = b"User-agent: *\nDisallow: /private/\nAllow: /private/open\n\nDisalow: /typo\n"
#: What files, URLs and names could do, if they could.
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!-- <script>",
    "]]> --> </style> </table> {{ 7 * 7 }} {% raw %}",
    "\" ' ` & &lt; \\u003c \\",
    "\u2028 \u2029 \u202e \u2066 \x00 \x1b[2J \r \x7f",
]


class Page(HTMLParser):
    """What is in a page: its start tags, its text, and its data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._json: dict[str, list[Any]] = {}
        self._kind: str | None = None
        self._name = ""
        self.feed(html)
        self.close()
        (rows,) = self._json["rows"]
        self.details = self._json.get("details", [])
        (self.snapshot,) = self._json["snapshot"]
        head = html.partition('<table id="origins">')[2].partition("</thead>")[0]
        self.columns = re.findall('<button type="button">(.*?)</button>', head)
        #: By origin, the values of its columns by name.
        self.rows = {values[0]: dict(zip(self.columns, values, strict=True)) for values in rows}

    def of(self, origin: str) -> dict[str, Any]:
        """What is shown when *origin* is opened."""
        details: dict[str, Any] = self.details[list(self.rows).index(origin)]
        return details

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._kind = tag
        if tag == "script":
            self._kind = dict(attrs).get("type") or "script"
            self._name = dict(attrs).get("id") or dict(attrs).get("class") or ""

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")
        self._kind = None

    def handle_data(self, data: str) -> None:
        if self._kind == "application/json":
            self._json.setdefault(self._name, []).append(json.loads(data))
        elif self._kind not in ("script", "style"):
            self.text += data


def page_of(report: CrawlReport) -> Page:
    return Page("".join(render(report)))


def read(path: Path) -> Page:
    return Page(path.read_text("utf-8"))


def origin_report(name: str, body: bytes = RULES, **changes: Any) -> OriginReport:
    """An origin with all that an origin can have."""
    values: dict[str, Any] = {
        "origin": name,
        "access": "successful",
        "status": 200,
        "details": (("URL", f"{name}/robots.txt"), ("last answer", "status 200")),
        "file": read_file(
            FetchResult(name, 200, body), SETTINGS, {(2, False): 7, (3, True): 1_200}
        ),
        "decisions": Decisions(1_300, 7),
        "refused_urls": (RefusedURL(f"{name}/private/1", 2, "Disallow: /private/"),),
        "refused_url_count": 7,
        "fetch_count": 2,
        "events": (Event(NOON, "status 200", 0.25), Event(NOON + 60, "status 304", 0.01)),
        "event_count": 2,
        "disagreements": (Disagreement(f"{name}/typo", "protego", False, True, 5, "typo"),),
        "disagreement_count": 1,
        **changes,
    }
    return OriginReport(**values)


def crawl_report(*origins: OriginReport, **changes: Any) -> CrawlReport:
    values: dict[str, Any] = {
        "subject": "Crawl of the spider books",
        "began_at": NOON,
        "made_at": NOON + 3600,
        "origins": origins,
        "decisions": Decisions(1_300, 7),
        "refusals": (("rule", 7),),
        **changes,
    }
    return CrawlReport(**values)
