"""``scrapy robots page``: for what a page may be used, and by which statement."""

from __future__ import annotations

from typing import Any, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler

from ..exceptions import RobotsForbidden
from ..pages.statements import PAGE_RULES, PageRules
from ..policies.errors import describe
from ..rep.directives.purposes import canonical_purpose
from ..rep.rules.verdict import Verdict
from ..rep.text import printable
from ..tokens import AGENT_TOKENS
from .crawling import with_crawler
from .errors import FAILED, FINE, WRONG, CommandError
from .options import AGENT, DIALECT, Options, Settings, argument, format_of, subcommand
from .output import Column, Cut, Printer, Style, Table, answer, write_json
from .sources import Session, absolute

_ARGUMENTS = (argument("url", metavar="URL", help="the page"), AGENT, DIALECT, format_of())


@subcommand("URL [options]", "show what a page may be used for", *_ARGUMENTS)
def page(options: Options, settings: Settings) -> int:
    """Fetches a page as a crawl does, and shows what it may be used for: one line for
    each use, with the statement that decides. If robots.txt refuses the page, it is
    not fetched.

    Exit codes: 0 all purposes allowed (REP_PURPOSES; if empty, all uses), 1 some
    refused, or refused by robots.txt, 2 error or the page cannot be fetched

    Examples:
      scrapy robots page https://example.com/article
      scrapy robots page --agent ExampleBot example.com
      scrapy robots page --json -s REP_PURPOSES=ai-train example.com
    """
    session = Session(options, settings)
    meta = {AGENT_TOKENS: session.agents} if options.agent else {}
    changes = {
        "ADDONS": session.scrapy_settings.getdict("ADDONS") | {"scrapy_rep.Addon": 500},
        "ROBOTSTXT_OBEY": True,
        "REP_PAGE_RULES": "annotate",
        "REP_TDM_FILE": True,
        # What robots.txt states about purposes is shown, and refuses nothing.
        "REP_PURPOSES": [],
        "REP_CONTENT_USE": None,
    }
    request = Request(absolute(options.url), meta=meta)
    found = with_crawler(session.scrapy_settings, lambda crawler: _fetch(crawler, request), changes)
    if options.format == "json":
        write_json(_as_json(found))
    else:
        _show(found, Printer())
    if found.refusal is not None:
        return WRONG
    if found.rules is None:
        return FAILED
    purposes = tuple(map(canonical_purpose, session.settings.honoured.purposes))
    return FINE if all(map(found.rules.allowed, purposes or found.rules.verdicts)) else WRONG


class _Page(NamedTuple):
    """The page that was fetched; *rules* is ``None`` unless the answer is successful.

    *refusal* is the verdict of robots.txt, if that refuses the page; then nothing was fetched.
    """

    url: str
    status: int | None = None
    rules: PageRules | None = None
    refusal: Verdict | None = None


async def _fetch(crawler: Crawler, request: Request) -> _Page:
    assert crawler.engine is not None
    try:
        response = await crawler.engine.download_async(request)
    except RobotsForbidden as forbidden:
        return _Page(request.url, refusal=forbidden.verdict)
    except Exception as error:
        raise CommandError(f"{printable(request.url)}: {describe(error)}") from None
    rules = response.meta.get(PAGE_RULES)
    if rules is None and 200 <= response.status < 300:
        raise CommandError("the project has another middleware in the place of RepMiddleware")
    return _Page(response.url, response.status, rules)


def _as_json(page: _Page) -> dict[str, Any]:
    rules = page.rules
    verdicts = rules.verdicts.items() if rules else ()
    return {
        "url": page.url,
        "status": page.status,
        "robots_txt": "allowed" if page.refusal is None else str(page.refusal),
        "uses": {
            use: {"allowed": each.allowed, "by": each.by and str(each.by)} for use, each in verdicts
        },
        "statements": [str(each) for each in rules.statements] if rules else [],
        "tdm_policy": rules.tdm_policy if rules else None,
    }


def _show(page: _Page, printer: Printer) -> None:
    printer.line(printer.styled(printable(page.url, most=None), Style.BOLD))
    if page.refusal is not None:
        printer.line(f"  not fetched: {page.refusal}")
        return
    printer.line(f"  status {page.status}")
    if page.rules is None:
        printer.line("  the answer is not a page, so it has no page rules")
        return
    printer.line()
    verdicts = page.rules.verdicts.values()
    columns = [Column("use"), Column("answer", width=7, styled=True), Column("by", cut=Cut.END)]
    Table(printer, columns).write(
        [[each.use, answer(each.allowed), str(each.by or "-")] for each in verdicts],
        [Style.GOOD if each.allowed else Style.BAD for each in verdicts],
    )
    if page.rules.tdm_policy is not None:
        printer.line(f"\nTDM policy: {printable(page.rules.tdm_policy, most=None)}")
