"""Parsers that fail, for ROBOTSTXT_PARSER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class FailsWhenAsked(RobotParser):
    """Reads everything, answers nothing."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> FailsWhenAsked:
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise RuntimeError("this parser fails when asked")


class FailsToParse(FailsWhenAsked):
    """Reads nothing but what is empty."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> FailsToParse:
        if robotstxt_body:
            raise RuntimeError("this parser fails to parse")
        return cls()


class QuotesTheFile(FailsWhenAsked):
    """Raises what it cannot read."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> QuotesTheFile:
        if robotstxt_body:
            raise ValueError(robotstxt_body.decode())
        return cls()
