"""The package's parser behind Scrapy's own interface, for ``ROBOTSTXT_PARSER``."""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.python import to_unicode

from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.agents import Agents, token_of_user_agent
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.settings import read_dialect


class RepRobotParser(RobotParser):
    """:class:`~scrapy_rep.RobotsTxt` as a :class:`scrapy.robotstxt.RobotParser`.

    It works with Scrapy's own middleware too. A user agent may be a product token or a whole
    User-Agent header. For one without a crawler's name, such as a browser's, only the ``*`` group
    applies.
    """

    def __init__(self, robots: RobotsTxt) -> None:
        #: The parsed file.
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> RepRobotParser:
        """Parse *robotstxt_body* in the dialect of *crawler*'s settings."""
        dialect = RFC9309 if crawler is None else read_dialect(crawler.settings)
        return cls(RobotsTxt.parse(robotstxt_body, dialect))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether *user_agent* may access *url*."""
        return self.robots.allowed(url, _agents(user_agent))

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """The Crawl-delay for *user_agent* in seconds, ``None`` where there is none."""
        return self.robots.crawl_delay(_agents(user_agent))


def _agents(user_agent: str | bytes) -> Agents:
    return token_of_user_agent(to_unicode(user_agent, "latin-1")) or ()
