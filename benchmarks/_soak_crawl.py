"""The crawl of soak.py: a job as JSON on stdin, what came of it as JSON on stdout."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from random import Random

import scrapy

from benchmarks._pages_crawl import JobSpider, run_job


class SoakSpider(JobSpider):
    """Asks for pages of the *places* of its job at random, for so many *seconds*.

    It keeps counts, and what is under way: a list of what came would grow as
    something does that is to be found.
    """

    name = "soak"
    once = False

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Requests, until the time is over."""
        self.came |= {"asked": 0, "twice": 0, "longest": 0.0}
        #: By number, the place of a request and when it was made.
        self.under_way: dict[int, tuple[str, float]] = {}
        self.came["outcomes"] = self.outcomes = {place: {} for place in self.job["places"]}
        async for request in super().start():
            yield request

    outcomes: dict[str, dict[str, int]]

    def urls(self) -> Iterator[str]:
        """Another page of any place."""
        random, places = Random(self.job["seed"]), self.job["places"]
        while time.monotonic() - self.started < self.job["seconds"]:
            place, number = random.choice(places), self.came["asked"]
            self.came["asked"] += 1
            self.under_way[number] = place, time.monotonic()
            yield f"{place}/{number}"

    def note(self, number: int, outcome: str) -> None:
        """Count it."""
        if number not in self.under_way:
            self.came["twice"] += 1
            return
        place, asked_at = self.under_way.pop(number)
        counts = self.outcomes[place]
        counts[outcome] = counts.get(outcome, 0) + 1
        self.came["longest"] = max(self.came["longest"], time.monotonic() - asked_at)


if __name__ == "__main__":
    run_job(SoakSpider)
