"""A Scrapy plugin that makes a crawl obey robots.txt the way RFC 9309 says."""

from importlib.metadata import version

from scrapy_rep.addon import Addon
from scrapy_rep.exceptions import ConfigurationError, CrawlStopping, RobotsForbidden
from scrapy_rep.links import RobotsLinkFilter
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.rep.dialects import (
    DIALECTS,
    GOOGLE,
    KOSTER1994,
    KOSTER1996,
    RFC9309,
    Access,
    Dialect,
)
from scrapy_rep.rep.findings import Finding, FindingKind, Severity
from scrapy_rep.rep.lines import Field
from scrapy_rep.rep.pace import Pace
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.records import (
    CleanParam,
    OtherRecord,
    RequestRate,
    TimeWindow,
    UsagePreferences,
)
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.urls import Origin
from scrapy_rep.rep.verdict import Reason, Verdict
from scrapy_rep.sitemaps import RepSitemapSpider

__all__ = [
    "DIALECTS",
    "GOOGLE",
    "KOSTER1994",
    "KOSTER1996",
    "RFC9309",
    "Access",
    "Addon",
    "CleanParam",
    "ConfigurationError",
    "CrawlStopping",
    "Dialect",
    "Field",
    "Finding",
    "FindingKind",
    "Origin",
    "OtherRecord",
    "Pace",
    "Policy",
    "Reason",
    "RepMiddleware",
    "RepRobotParser",
    "RepSitemapSpider",
    "RequestRate",
    "RobotsForbidden",
    "RobotsLinkFilter",
    "RobotsTxt",
    "Severity",
    "TimeWindow",
    "UsagePreferences",
    "Verdict",
]

__version__ = version("scrapy-rep")
