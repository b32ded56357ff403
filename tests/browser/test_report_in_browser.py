"""The page of a report in a browser: what a person sees of it, and can do with it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from scrapy_rep.observers.report.file import read_file
from scrapy_rep.observers.report.model import CrawlReport, Decisions, RefusedURL
from scrapy_rep.observers.report.page import write_page
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import Outage
from scrapy_rep.rep.text import printable
from tests.browser.conftest import Open
from tests.observers.report.pages import HOSTILE, NOON, SETTINGS, crawl_report, origin_report

SMALL = crawl_report(
    origin_report("http://zebra.example", decisions=Decisions(5, 0)),
    origin_report("https://apple.example", decisions=Decisions(40, 3)),
    origin_report(
        "https://mango.example", access="unreachable", status=503, file=None, refused_urls=()
    ),
)


def large(count: int) -> CrawlReport:
    return crawl_report(
        *(
            origin_report(f"https://host{n:04}.example", decisions=Decisions(n, n % 7))
            for n in range(count)
        )
    )


def names(page: Page) -> list[str]:
    """The origins that are listed, in order."""
    return page.locator("#origins > tbody > tr:not(.details) > th").all_inner_texts()


def head(page: Page, name: str) -> Locator:
    return page.get_by_role("columnheader").get_by_role("button", name=name, exact=True)


def opener(page: Page, origin: str) -> Locator:
    return page.get_by_role("button", name=origin)


BAD_FILE = read_file(FetchResult("", 200, b"Disallow: /\n"), SETTINGS)
APPLE, MANGO, ZEBRA = "https://apple.example", "https://mango.example", "http://zebra.example"


# -- sorting and filtering ----------------------------------------------------------


def test_sorting(open_page: Open) -> None:
    page = open_page(SMALL)
    # Those that refused most first.
    assert names(page) == [MANGO, APPLE, ZEBRA]
    sorted_by = page.locator("th[aria-sort]")
    expect(sorted_by).to_have_text("refused")
    expect(sorted_by).to_have_attribute("aria-sort", "descending")
    # Without their schemes.
    head(page, "origin").click()
    assert names(page) == [APPLE, MANGO, ZEBRA]
    expect(sorted_by).to_have_text("origin")
    expect(sorted_by).to_have_attribute("aria-sort", "ascending")
    head(page, "origin").click()
    assert names(page) == [ZEBRA, MANGO, APPLE]
    expect(sorted_by).to_have_attribute("aria-sort", "descending")
    # Numbers, not digits; the most of them first.
    head(page, "allowed").click()
    assert names(page) == [MANGO, APPLE, ZEBRA]
    expect(sorted_by).to_have_text("allowed")
    head(page, "allowed").click()
    assert names(page) == [ZEBRA, APPLE, MANGO]
    # What is not known comes last among the most.
    head(page, "lines").click()
    assert names(page)[2] == MANGO


def test_addresses_are_sorted_as_numbers(open_page: Open) -> None:
    addresses = [f"http://127.0.0.{n}:{port}" for n in (2, 10) for port in (900, 8000)]
    page = open_page(crawl_report(*(origin_report(each) for each in reversed(addresses))))
    head(page, "origin").click()
    assert names(page) == addresses


def test_filtering(open_page: Open) -> None:
    page = open_page(SMALL)
    shown = page.get_by_role("status")
    expect(shown).to_have_text("3 of 3")
    page.get_by_role("searchbox", name="Origin").fill(" ZEB")
    assert names(page) == [ZEBRA]
    expect(shown).to_have_text("1 of 3")
    page.get_by_role("searchbox", name="Origin").fill("")
    page.get_by_role("combobox", name="Access").select_option("unreachable")
    assert names(page) == [MANGO]
    page.get_by_role("combobox", name="Access").select_option("any")
    page.get_by_role("combobox", name="With").select_option("refused")
    assert names(page) == [MANGO, APPLE]
    page.get_by_role("searchbox", name="Origin").fill("zebra")
    assert names(page) == []
    expect(shown).to_have_text("0 of 3")
    page.get_by_role("searchbox", name="Origin").press("Enter")
    expect(shown).to_have_text("0 of 3")
    nothing = page.get_by_text("No origin matches these filters.")
    expect(nothing).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    expect(shown).to_have_text("3 of 3")
    expect(nothing).to_be_hidden()


def test_of_many_origins_some_are_shown_at_first(open_page: Open) -> None:
    page = open_page(large(250))
    head(page, "origin").click()
    assert len(names(page)) == 100
    more = page.get_by_role("button", name="Show 100 more of 250")
    more.focus()
    page.keyboard.press("Enter")
    assert len(names(page)) == 200
    expect(opener(page, "https://host0100.example")).to_be_focused()
    page.get_by_role("button", name="Show 50 more of 250").click()
    assert names(page) == [f"https://host{n:04}.example" for n in range(250)]
    expect(page.locator("#more")).to_be_hidden()
    # All are sorted and filtered, not those that are shown.
    page.get_by_role("searchbox", name="Origin").fill("host024")
    assert len(names(page)) == 10
    page.get_by_role("searchbox", name="Origin").fill("")
    head(page, "allowed").click()
    assert names(page)[0] == "https://host0249.example"


# -- the details ----------------------------------------------------------------------


def test_expanding(open_page: Open) -> None:
    page = open_page(SMALL)
    button = opener(page, APPLE)
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    details = page.locator(f"#{button.get_attribute('aria-controls')}")
    lines = details.get_by_role("list", name="Lines of the robots.txt").get_by_role("listitem")
    assert [" ".join(text.split()) for text in lines.all_inner_texts()] == [
        "1 User-agent: *",
        "2 Disallow: /private/ refused 7",
        "3 Allow: /private/open allowed 1,200",
        "4",
        '5 Disalow: /typo warning: The misspelling "Disalow" is read as Disallow. Other crawlers '
        "may ignore the line.",
    ]
    for text in (
        "last answer",
        f"{APPLE}/private/1 Disallow: /private/ line 2",
        "6 more, not shown",
        "refused (line 5)",
        "allowed by protego",
        "status 304",
        "0.25 s",
    ):
        expect(details).to_contain_text(text)
    button.click()
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(details).to_be_hidden()


def test_what_is_open_stays_open(open_page: Open) -> None:
    page = open_page(SMALL)
    opener(page, APPLE).click()
    head(page, "origin").click()
    head(page, "origin").click()
    rows = page.locator("#origins > tbody > tr")
    expect(rows.nth(2)).to_contain_text(APPLE)
    expect(rows.nth(3).get_by_role("heading", name="robots.txt")).to_be_visible()
    page.get_by_role("searchbox", name="Origin").fill("mango")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox", name="Origin").fill("")
    expect(rows).to_have_count(4)


def test_from_a_refused_url_to_its_line(open_page: Open) -> None:
    page = open_page(SMALL)
    opener(page, APPLE).click()
    page.get_by_role("button", name="line 2").click()
    expect(page.locator("li:focus")).to_contain_text("Disallow: /private/")


def attention(page: Page) -> Locator:
    return page.get_by_role("region", name="Needs attention")


def test_from_what_needs_attention_to_its_row(open_page: Open) -> None:
    last = origin_report("https://last.example", decisions=Decisions(9, 0), file=BAD_FILE)
    page = open_page(crawl_report(*large(250).origins, last))
    page.get_by_role("searchbox", name="Origin").fill("host")
    link = attention(page).get_by_role("link", name="https://last.example")
    link.click()
    expect(opener(page, "https://last.example")).to_be_focused()
    expect(opener(page, "https://last.example")).to_be_in_viewport()
    expect(opener(page, "https://last.example")).to_have_attribute("aria-expanded", "true")
    # Again, though the address is the same.
    page.get_by_role("searchbox", name="Origin").fill("host")
    link.click()
    expect(opener(page, "https://last.example")).to_be_focused()


def test_all_that_need_attention_are_in_the_table(open_page: Open) -> None:
    page = open_page(large(250))
    attention(page).get_by_role("link", name="see the table").click()
    expect(page.get_by_role("combobox", name="With")).to_have_value("disagreements")
    expect(page.get_by_role("status")).to_have_text("250 of 250")


def test_an_origin_that_is_unreachable_is_one_sentence(open_page: Open) -> None:
    down = origin_report(
        MANGO,
        access="unreachable",
        file=None,
        refused_urls=(),
        refused_url_count=0,
        reasons=("12 requests refused: robots.txt cannot be fetched (status 503)",),
        outage=Outage(FetchResult(MANGO, detail="status 503"), NOON, NOON, 3),
    )
    page = open_page(crawl_report(down))
    expect(attention(page)).to_contain_text("status 503; since 2027-01-15 08:00:00 UTC, 3 attempts")
    opener(page, MANGO).click()
    expect(page.locator("#origins .notice")).to_have_text(
        "12 requests refused: robots.txt cannot be fetched (status 503)"
    )
    expect(page.get_by_role("heading", name="Refused URLs")).to_have_count(0)


def test_an_origin_without_a_file(open_page: Open) -> None:
    page = open_page(SMALL)
    opener(page, MANGO).click()
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.locator(".file")).to_have_count(0)


def test_by_keyboard_alone(open_page: Open) -> None:
    page = open_page(SMALL)

    def tab_to(locator: Locator) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if locator.evaluate("element => element === document.activeElement"):
                outline = locator.evaluate("element => getComputedStyle(element).outlineStyle")
                assert outline == "solid"
                return
        raise AssertionError(f"{locator} is not reached")

    tab_to(page.locator("summary").first)
    page.keyboard.press("Enter")
    expect(page.get_by_role("rowheader", name="successful").first).to_be_visible()
    tab_to(page.get_by_role("searchbox", name="Origin"))
    page.keyboard.type("example")
    tab_to(head(page, "refused"))
    page.keyboard.press("Enter")
    assert names(page) == [ZEBRA, APPLE, MANGO]
    tab_to(opener(page, APPLE))
    page.keyboard.press("Space")
    tab_to(page.get_by_role("button", name="line 2"))
    tab_to(page.locator(".file"))


# -- what it must not do ------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_shown(open_page: Open, text: str) -> None:
    shown = printable(text)
    body = f"User-agent: *\nDisallow: /{text}\n".encode()
    report = crawl_report(
        origin_report(
            shown,
            body,
            details=((shown, shown),),
            refused_urls=(RefusedURL(shown, 2, shown),),
            notes=(shown,),
        ),
        subject=shown,
        notes=(shown,),
    )
    page = open_page(report)
    before = page.locator("script, img, style, link").count()
    page.locator(".open").click()
    assert page.locator("script, img, style, link").count() == before
    lines = page.locator(".file code").all_text_contents()
    assert (
        "".join(lines[1:])
        .replace(" ", "")
        .startswith(printable(f"Disallow: /{text}".splitlines()[0].encode()).replace(" ", "")[:20])
    )
    expect(page.locator(".open bdi")).to_have_text(shown)


def test_its_policy_would_stop_what_gets_in(browser: Browser, tmp_path: Path) -> None:
    write_page(tmp_path / "robots.html", SMALL)
    page = browser.new_page()
    page.goto((tmp_path / "robots.html").as_uri())
    stopped = page.evaluate(
        """() => new Promise((resolve) => {
            const stopped = [];
            addEventListener("securitypolicyviolation", (event) => {
                stopped.push(event.effectiveDirective);
                if (stopped.length === 3) resolve(stopped.sort());
            });
            const script = document.createElement("script");
            script.textContent = "document.title = 'bad'";
            const image = document.createElement("img");
            image.src = "https://example.com/a.png";
            const style = document.createElement("style");
            style.textContent = "body { display: none }";
            document.body.append(script, image, style);
        })"""
    )
    assert stopped == ["img-src", "script-src-elem", "style-src-elem"]
    assert page.title().startswith("robots.txt")


# -- how it looks -----------------------------------------------------------------------


def _is_dark(page: Page, selector: str, name: str) -> bool:
    colour = page.locator(selector).first.evaluate(
        "(element, name) => getComputedStyle(element)[name]", name
    )
    parts: Iterable[str] = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return sum(map(float, parts)) < 3 * 128


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(open_page: Open, scheme: str) -> None:
    page = open_page(SMALL, color_scheme=scheme)
    opener(page, APPLE).click()
    for selector in ("body", ".file", "select", "#origins > thead th"):
        assert _is_dark(page, selector, "backgroundColor") == (scheme == "dark")
        assert _is_dark(page, selector, "color") == (scheme == "light")


WIDE = crawl_report(
    origin_report(
        f"https://{'a' * 63}.{'b' * 63}.example:12345",
        b"User-agent: *\nDisallow: /" + b"c" * 300 + b"\n" + "\u05d0".encode() * 150,
        decisions=Decisions(123_456_789, 98_765_432),
        refused_urls=(RefusedURL("https://" + "d" * 190, 2, "Disallow: /" + "c" * 180),),
        fetch_count=123_456,
    ),
    subject="Crawl of the spider " + "e" * 100,
)


@pytest.mark.parametrize("width", [360, 700, 1248, 1249, 1400])
def test_it_is_as_wide_as_the_screen(open_page: Open, width: int) -> None:
    page = open_page(WIDE, width=width)
    page.locator(".open").click()
    page.locator("summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("#controls").scroll_into_view_if_needed()
    expect(page.get_by_role("searchbox", name="Origin")).to_be_in_viewport()
    file = page.locator(".file")
    assert file.evaluate("element => element.scrollWidth <= element.clientWidth")
    head(page, "refused").click()
    expect(page.locator("th[aria-sort]")).to_have_text("refused")


def test_on_paper(open_page: Open) -> None:
    page = open_page(SMALL)
    opener(page, APPLE).click()
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.locator("#controls")).to_be_hidden()
    page.pdf()
    # As tables, where bars are too pale.
    expect(page.locator(".chart details[open]")).to_have_count(2)


def test_without_javascript(open_page: Open) -> None:
    page = open_page(SMALL, java_script_enabled=False)
    plain = page.locator("noscript")
    assert plain.is_visible()
    assert "Without JavaScript" in plain.inner_text()
    assert f"{ZEBRA}\tsuccessful\t200\t5\t0" in plain.inner_text()
    expect(page.locator("#origins")).to_be_hidden()
    expect(page.locator("#controls")).to_be_hidden()


def test_charts_have_their_names_and_figures(open_page: Open) -> None:
    page = open_page(SMALL)
    expect(page.get_by_role("img", name="Origins by access result")).to_be_visible()
    expect(page.get_by_role("img", name="Refused requests by reason")).to_be_visible()
    page.locator("summary").first.click()
    table = page.get_by_role("table").first
    expect(table.get_by_role("row", name="successful 2")).to_be_visible()


def test_of_a_store(open_page: Open) -> None:
    stored = origin_report(
        APPLE, decisions=None, freshness="stale", refused_urls=(), disagreement_count=0
    )
    page = open_page(CrawlReport("Store robots.sqlite", NOON, (stored,)))
    opener(page, APPLE).click()
    expect(page.get_by_role("heading", name="robots.txt").last).to_be_visible()
    columns = page.locator("#origins > thead").get_by_role("columnheader")
    expect(columns).to_have_text(
        ["origin", "access", "freshness", "status", "lines", "errors", "warnings"]
    )
