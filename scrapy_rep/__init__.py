"""A Scrapy plugin that makes a crawl obey robots.txt as RFC 9309 requires.

Every command of Scrapy imports this package, usually without using it. So each public name is
imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # For type checkers and editors, which do not run what is below. "as" makes a name public.
    from scrapy_rep.addon import Addon as Addon
    from scrapy_rep.exceptions import ConfigurationError as ConfigurationError
    from scrapy_rep.exceptions import CrawlStopping as CrawlStopping
    from scrapy_rep.exceptions import RobotsForbidden as RobotsForbidden
    from scrapy_rep.middleware import RepMiddleware as RepMiddleware
    from scrapy_rep.pages.statements import PageRules as PageRules
    from scrapy_rep.pages.statements import Statement as Statement
    from scrapy_rep.pages.statements import UseVerdict as UseVerdict
    from scrapy_rep.parser import RepRobotParser as RepRobotParser
    from scrapy_rep.rep.dialects import DIALECTS as DIALECTS
    from scrapy_rep.rep.dialects import GOOGLE as GOOGLE
    from scrapy_rep.rep.dialects import KOSTER1994 as KOSTER1994
    from scrapy_rep.rep.dialects import KOSTER1996 as KOSTER1996
    from scrapy_rep.rep.dialects import RFC9309 as RFC9309
    from scrapy_rep.rep.dialects import Access as Access
    from scrapy_rep.rep.dialects import Dialect as Dialect
    from scrapy_rep.rep.directives.pace import Pace as Pace
    from scrapy_rep.rep.lint.findings import Finding as Finding
    from scrapy_rep.rep.lint.findings import FindingKind as FindingKind
    from scrapy_rep.rep.lint.findings import Severity as Severity
    from scrapy_rep.rep.parsing.lines import Field as Field
    from scrapy_rep.rep.parsing.records import CleanParam as CleanParam
    from scrapy_rep.rep.parsing.records import ContentUse as ContentUse
    from scrapy_rep.rep.parsing.records import OtherRecord as OtherRecord
    from scrapy_rep.rep.parsing.records import RequestRate as RequestRate
    from scrapy_rep.rep.parsing.records import TimeWindow as TimeWindow
    from scrapy_rep.rep.parsing.records import UsagePreferences as UsagePreferences
    from scrapy_rep.rep.parsing.urls import Origin as Origin
    from scrapy_rep.rep.policy import Policy as Policy
    from scrapy_rep.rep.rules.robotstxt import RobotsTxt as RobotsTxt
    from scrapy_rep.rep.rules.verdict import Reason as Reason
    from scrapy_rep.rep.rules.verdict import Verdict as Verdict
    from scrapy_rep.spiders import RepSitemapSpider as RepSitemapSpider
    from scrapy_rep.spiders import RobotsLinkFilter as RobotsLinkFilter

    __version__: str

#: The public names, by the module that defines them: the imports above, for Python.
_NAMES = {
    "addon": "Addon",
    "exceptions": "ConfigurationError CrawlStopping RobotsForbidden",
    "middleware": "RepMiddleware",
    "pages.statements": "PageRules Statement UseVerdict",
    "parser": "RepRobotParser",
    "rep.dialects": "DIALECTS GOOGLE KOSTER1994 KOSTER1996 RFC9309 Access Dialect",
    "rep.directives.pace": "Pace",
    "rep.lint.findings": "Finding FindingKind Severity",
    "rep.parsing.lines": "Field",
    "rep.parsing.records": "CleanParam ContentUse OtherRecord RequestRate TimeWindow "
    "UsagePreferences",
    "rep.parsing.urls": "Origin",
    "rep.policy": "Policy",
    "rep.rules.robotstxt": "RobotsTxt",
    "rep.rules.verdict": "Reason Verdict",
    "spiders": "RepSitemapSpider RobotsLinkFilter",
}
_MODULES = {
    name: f"scrapy_rep.{module}" for module, names in _NAMES.items() for name in names.split()
}
__all__ = list(_MODULES)

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
