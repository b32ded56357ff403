"""``scrapy robots sitemaps``: the sitemaps that a robots.txt names."""

from __future__ import annotations

from ..rep.text import printable
from .errors import FINE, CommandError
from .options import FRESH, SOURCE, Options, Settings, format_of, subcommand
from .output import Printer, Records, write_json
from .sources import Session

_SUMMARY = "list the sitemaps that a robots.txt names"


@subcommand("SOURCE [options]", _SUMMARY, SOURCE, FRESH, format_of("csv"))
def sitemaps(options: Options, settings: Settings) -> int:
    """Prints the sitemaps that a robots.txt names, one per line, each once. It does
    not fetch them. SOURCE is a URL of the site, a file, or - for standard input.

    Exit codes: 0 done, 2 robots.txt could not be fetched or read

    Examples:
      scrapy robots sitemaps https://example.com
      scrapy robots sitemaps robots.txt
      scrapy robots sitemaps https://example.com | xargs -n 1 curl -sO
    """
    robots = Session(options, settings).load(options.source)
    if robots.unreachable:
        raise CommandError(f"{robots.name} could not be fetched: {robots.result.detail}")
    found = robots.file.sitemaps if robots.file else ()
    if options.format == "json":
        write_json({"sitemaps": list(found)} | robots.as_json())
    elif options.format == "csv":
        Records("csv", ["sitemap"]).write(*({"sitemap": sitemap} for sitemap in found))
    else:
        for sitemap in found:
            Printer().line(printable(sitemap, most=None))
    return FINE
