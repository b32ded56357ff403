"""A Scrapy plugin that makes a crawl obey robots.txt as RFC 9309 requires.

Every command of Scrapy imports this package, usually without using it. So each public name is
imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # For type checkers and editors, which do not run what is below.
    from scrapy_rep.addon import Addon
    from scrapy_rep.exceptions import ConfigurationError, CrawlStopping, RobotsForbidden
    from scrapy_rep.middleware import RepMiddleware
    from scrapy_rep.pages.statements import PageRules, Statement, UseVerdict
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
    from scrapy_rep.rep.directives.pace import Pace
    from scrapy_rep.rep.lint.findings import Finding, FindingKind, Severity
    from scrapy_rep.rep.parsing.lines import Field
    from scrapy_rep.rep.parsing.records import (
        CleanParam,
        ContentUse,
        OtherRecord,
        RequestRate,
        TimeWindow,
        UsagePreferences,
    )
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.rep.rules.robotstxt import RobotsTxt
    from scrapy_rep.rep.rules.verdict import Reason, Verdict
    from scrapy_rep.spiders import RepSitemapSpider, RobotsLinkFilter

    __version__: str

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
    "ContentUse",
    "CrawlStopping",
    "Dialect",
    "Field",
    "Finding",
    "FindingKind",
    "Origin",
    "OtherRecord",
    "Pace",
    "PageRules",
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
    "Statement",
    "TimeWindow",
    "UsagePreferences",
    "UseVerdict",
    "Verdict",
]

#: Where each of them is defined: the imports above, for Python.
_MODULES = {
    "Access": "scrapy_rep.rep.dialects",
    "Addon": "scrapy_rep.addon",
    "CleanParam": "scrapy_rep.rep.parsing.records",
    "ConfigurationError": "scrapy_rep.exceptions",
    "ContentUse": "scrapy_rep.rep.parsing.records",
    "CrawlStopping": "scrapy_rep.exceptions",
    "DIALECTS": "scrapy_rep.rep.dialects",
    "Dialect": "scrapy_rep.rep.dialects",
    "Field": "scrapy_rep.rep.parsing.lines",
    "Finding": "scrapy_rep.rep.lint.findings",
    "FindingKind": "scrapy_rep.rep.lint.findings",
    "GOOGLE": "scrapy_rep.rep.dialects",
    "KOSTER1994": "scrapy_rep.rep.dialects",
    "KOSTER1996": "scrapy_rep.rep.dialects",
    "Origin": "scrapy_rep.rep.parsing.urls",
    "OtherRecord": "scrapy_rep.rep.parsing.records",
    "Pace": "scrapy_rep.rep.directives.pace",
    "PageRules": "scrapy_rep.pages.statements",
    "Policy": "scrapy_rep.rep.policy",
    "RFC9309": "scrapy_rep.rep.dialects",
    "Reason": "scrapy_rep.rep.rules.verdict",
    "RepMiddleware": "scrapy_rep.middleware",
    "RepRobotParser": "scrapy_rep.parser",
    "RepSitemapSpider": "scrapy_rep.spiders",
    "RequestRate": "scrapy_rep.rep.parsing.records",
    "RobotsForbidden": "scrapy_rep.exceptions",
    "RobotsLinkFilter": "scrapy_rep.spiders",
    "RobotsTxt": "scrapy_rep.rep.rules.robotstxt",
    "Severity": "scrapy_rep.rep.lint.findings",
    "Statement": "scrapy_rep.pages.statements",
    "TimeWindow": "scrapy_rep.rep.parsing.records",
    "UsagePreferences": "scrapy_rep.rep.parsing.records",
    "UseVerdict": "scrapy_rep.pages.statements",
    "Verdict": "scrapy_rep.rep.rules.verdict",
}

if not TYPE_CHECKING:
    # Hidden from type checkers, or to them no name would be misspelt.
    def __getattr__(name: str) -> Any:
        """Called for what is not in this module, or not yet (PEP 562)."""
        if name == "__version__":
            from importlib.metadata import version

            value = version("scrapy-rep")
        elif name in _MODULES:
            value = getattr(import_module(_MODULES[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
