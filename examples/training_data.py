"""Collects text to train a model on, from sites that allow it.

    scrapy runspider examples/training_data.py -a urls=https://books.example/ -O texts.jsonl

A page is left out if its site's robots.txt refuses the crawler, or refuses training in
``Content-Signal`` or ``Content-Usage``. The items say of each page that was left out, why.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from twisted.python.failure import Failure

from scrapy_rep import RobotsForbidden


class TrainingDataSpider(Spider):
    """Follows links within the sites that it starts from."""

    name = "training_data"
    custom_settings = {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "USER_AGENT": "ExampleAI/1.0 (+https://www.example.com/ai.html)",
        # What the pages are for. Sites that refuse this purpose are not fetched.
        "REP_PURPOSES": ["ai-train"],
        # A page of what was refused, and why.
        "REP_REPORT": "training_data.html",
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, urls: str = "", **kwargs: Any) -> None:
        """*urls* has commas between them."""
        super().__init__(**kwargs)
        self._urls = urls.split(",")

    async def start(self) -> AsyncIterator[Request]:
        """One request for each URL."""
        for url in self._urls:
            yield Request(url, errback=self.left_out)

    def parse(self, response: Response) -> Iterator[dict[str, Any] | Request]:
        """One item for each page, and requests for its links."""
        if not isinstance(response, HtmlResponse):
            return
        text = " ".join(response.css("body *::text").getall())
        yield {"url": response.url, "text": text.strip()}
        yield from response.follow_all(css="a", errback=self.left_out)

    def left_out(self, failure: Failure) -> Iterator[dict[str, Any]]:
        """One item for each request that was refused."""
        if not isinstance(failure.value, RobotsForbidden):
            self.logger.error("%s", failure.value)
            return
        verdict = failure.value.verdict
        url = failure.request.url  # type: ignore[attr-defined]
        yield {"url": url, "reason": verdict.reason.value, "because": str(verdict)}
