"""The real files that are listed behind the document of 1994 (../shared/specs).

What is expected was derived from the specifications by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_rep.rep.dialects import DIALECTS
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

SPECIFICATION = (
    Path(__file__).parents[2].resolve().parent / "shared/specs/robots-1994-and-real-files.txt"
)

pytestmark = pytest.mark.skipif(
    not SPECIFICATION.is_file(), reason=f"the specification of 1994 is not in {SPECIFICATION}"
)

# A site's name, then its file with three spaces before each line.
_FILE = re.compile(r"^(\S.*)\n\n((?:   .*\n?)+)", re.MULTILINE)


def _files() -> dict[str, bytes]:
    if not SPECIFICATION.is_file():
        return {}
    text = SPECIFICATION.read_text(encoding="utf-8").partition("The Minimalistic Guys")[2]
    return {name: re.sub("(?m)^   ", "", file).encode() for name, file in _FILE.findall(text)}


FILES = _files()
# In the order of the answers below.
NAMES = ("rfc9309", "google", "koster1996", "koster1994")

# Site, agent, path, and the answers: "+" allowed, "-" refused. Why they differ:
# wildcards are characters in the two old dialects, Allow is unknown in the oldest,
# names are whole ("…*" is not "…") in that of 1996 and looked for in that of 1994,
# google decodes nothing, and takes robots.txt as any page.
QUESTIONS = [
    ("Problogger.net", "AnyBot", "/", "++++"),
    ("Problogger.net", "AnyBot", "/wp-admin/", "++++"),
    ("Problogger.net", "AnyBot", "/robots.txt", "++++"),
    ("Marketing Pilgrim", "AnyBot", "/", "++++"),
    ("Marketing Pilgrim", "Googlebot", "/a?b", "++++"),
    ("Search Engine Journal", "AnyBot", "/", "++++"),
    ("Search Engine Journal", "AnyBot", "/feed/", "++++"),
    # "Allow:" without a value, then another group of everyone.
    ("Matt Cutts", "AnyBot", "/files/a.zip", "----"),
    ("Matt Cutts", "AnyBot", "/files", "++++"),
    ("Matt Cutts", "AnyBot", "/", "++++"),
    ("Matt Cutts", "AnyBot", "/%66iles/a.zip", "-+--"),
    ("Pronet Advertising", "AnyBot", "/mt-search.cgi", "----"),
    ("Pronet Advertising", "AnyBot", "/cgi-bin/a.cgi", "--++"),
    ("Pronet Advertising", "AnyBot", "/a.cgi?x", "++++"),
    ("Pronet Advertising", "AnyBot", "/*.cgi$", "++--"),
    ("TechCrunch", "AnyBot", "/2008/feed/", "--++"),
    ("TechCrunch", "AnyBot", "/feed/", "++++"),
    ("TechCrunch", "AnyBot", "//feed/", "--++"),
    ("TechCrunch", "AnyBot", "/*/feed/a", "----"),
    ("Online Marketing Blog", "Googlebot", "/a/feed/", "--++"),
    ("Online Marketing Blog", "Googlebot", "/Blogger/", "++++"),
    ("Online Marketing Blog", "AnyBot", "/Blogger/a", "----"),
    ("Online Marketing Blog", "AnyBot", "/blogger/a", "++++"),
    ("Online Marketing Blog", "Googlebot-News", "/Blogger/", "----"),
    ("Online Marketing Blog", "Google", "/Blogger/", "---+"),
    ("Shoemoney", "Googlebot", "/link.php?id=1", "----"),
    ("Shoemoney", "googlebot", "/feedback", "----"),
    ("Shoemoney", "Googlebot", "/pagination/", "++++"),
    ("Shoemoney", "AnyBot", "/feed/", "++++"),
    ("Scoreboard Media", "Googlebot", "/wp-login.php", "--++"),
    ("Scoreboard Media", "Googlebot", "/wp-*", "----"),
    ("Scoreboard Media", "Googlebot", "/cgi-bin/a", "++++"),
    ("Scoreboard Media", "AnyBot", "/cgi-bin/a", "----"),
    ("Scoreboard Media", "AnyBot", "/2007/", "++++"),
    ("Scoreboard Media", "Googlebot", "/2007/06/", "----"),
    ("SEOMoz.org", "AnyBot", "/blogdetail.php?ID=5370", "----"),
    ("SEOMoz.org", "AnyBot", "/blogdetail.php?id=537", "++++"),
    ("SEOMoz.org", "AnyBot", "/blog?page=2", "----"),
    ("SEOMoz.org", "AnyBot", "/blog", "++++"),
    # The draft of 1996 decodes everything but "%2F".
    ("SEOMoz.org", "AnyBot", "/blog%3Fpage", "++-+"),
    ("Wolf-Howl", "AnyBot", "/a?b", "--++"),
    ("Wolf-Howl", "AnyBot", "/a?", "--++"),
    ("Wolf-Howl", "AnyBot", "/2008/05/", "----"),
    ("Wolf-Howl", "AnyBot", "/2003/", "++++"),
    ("Wolf-Howl", "AnyBot", "/faq", "++++"),
    ("John Chow", "AnyBot", "/feed/", "----"),
    ("John Chow", "AnyBot", "/go", "++++"),
    # Without Allow lines, three user-agent lines and one Disallow are one record.
    ("John Chow", "Googlebot-Image", "/feed/", "+++-"),
    ("John Chow", "Mediapartners-Google", "/", "+++-"),
    ("John Chow", "duggmirror", "/a", "----"),
    ("John Chow", "duggmirror", "/robots.txt", "+-++"),
    ("Smashing Magazine", "Mediapartners-Google", "/styles/", "++-+"),
    ("Smashing Magazine", "MSIECrawler", "/", "----"),
    ("Smashing Magazine", "psbot", "/a", "----"),
    # A record of the old dialects has at least one rule.
    ("Smashing Magazine", "Slurp", "/styles/a", "++--"),
    ("Smashing Magazine", "AnyBot", "/tags", "++++"),
    ("Gizmodo", "Googlebot", "/index.xml", "--++"),
    ("Gizmodo", "Googlebot", "/index.xml$", "++--"),
    ("Gizmodo", "Googlebot", "/index.xml?a", "++++"),
    ("Gizmodo", "Googlebot", "/sitemap.xml", "++++"),
    ("Gizmodo", "Googlebot", "/a?view=rss", "--++"),
    ("Gizmodo", "AnyBot", "/index.xml", "++++"),
    ("Lifehacker", "Googlebot", "/excerpts.xml", "--++"),
    ("Lifehacker", "Googlebot", "/tag/?format=rss", "--++"),
    ("Lifehacker", "Googlebot", "/tag/?format=rss2", "++++"),
    ("Lifehacker", "AnyBot", "/index.xml", "++++"),
    ("Wall Street Journal", "AnyBot", "/article_email/a", "----"),
    ("Wall Street Journal", "AnyBot", "/article_email", "++++"),
    ("Wall Street Journal", "AnyBot", "/article%5Femail/a", "-+--"),
    ("Wall Street Journal", "AnyBot", "/pa2vjbna4r/a", "++++"),
    # What is in a comment is no rule, and the comment is no boundary.
    ("ZDNet", "AnyBot", "/i/", "++++"),
    ("ZDNet", "AnyBot", "/av/", "----"),
    ("ZDNet", "AnyBot", "/1317-a", "----"),
    ("ZDNet", "AnyBot", "/1318-a", "++++"),
    ("ZDNet", "AnyBot", "/mac-addict", "----"),
    ("NY Times", "AnyBot", "/pages/college/a", "----"),
    ("NY Times", "AnyBot", "/pages/a", "++++"),
    ("NY Times", "AnyBot", "/archives/2005", "----"),
    ("NY Times", "Mediapartners-Google", "/archives/", "++-+"),
    ("YouTube", "AnyBot", "/results?search_query=a", "----"),
    ("YouTube", "AnyBot", "/profiles", "----"),
    ("YouTube", "AnyBot", "/watch?v=1", "++++"),
    ("YouTube", "Mediapartners-Google", "/login", "++-+"),
    ("Google", "AnyBot", "/searchhistory/a", "+++-"),
    ("Google", "AnyBot", "/search?q=a", "----"),
    ("Google", "AnyBot", "/news?output=xhtml", "+++-"),
    ("Google", "AnyBot", "/news?output=xhtml&a", "----"),
    ("Google", "AnyBot", "/?q=a", "----"),
    ("Google", "AnyBot", "/", "++++"),
    ("Google", "AnyBot", "/m?", "----"),
    ("Google", "AnyBot", "/m?a", "----"),
    ("Google", "AnyBot", "/maps", "++++"),
    ("Google", "AnyBot", "/%75rl?q=a", "-+--"),
]


def test_all_files_are_found_and_checked() -> None:
    assert len(FILES) == 20
    assert set(FILES) == {site for site, _, _, _ in QUESTIONS}
    assert all(b"user-agent:" in file.lower() for file in FILES.values())


@pytest.mark.parametrize(("site", "agent", "path", "answers"), QUESTIONS)
def test_a_real_file(site: str, agent: str, path: str, answers: str) -> None:
    found = ""
    for name in NAMES:
        verdict = RobotsTxt.parse(FILES[site], DIALECTS[name]).verdict(f"http://h{path}", agent)
        found += "+" if verdict.allowed else "-"
    assert found == answers
