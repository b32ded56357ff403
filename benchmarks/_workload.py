"""Made-up robots.txt files, and URLs for them, that look like real ones.

Which URLs a file refuses is known from how they are made, not from a parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SITE = "https://www.example.com"

_WORDS = (
    *("category", "product", "shop", "archive", "members", "forum", "search", "tag", "author"),
    *("basket", "review", "profile", "image", "download", "gallery", "event", "ticket", "news"),
    *("sport", "travel", "recipe", "support", "account", "wishlist", "brand"),
)
# {a} and {b} are words, {n} is a number that no other rule has.
_PLAIN = ("/{a}/item-{n}/", "/{a}/{b}/{n}/", "/{a}/{b}{n}/", "/{a}-{n}.html", "/{a}/{n}/{b}/")
_WILDCARDS = ("/*/{a}-{n}/", "/{a}/*/{b}-{n}.html", "/*.{a}{n}$", "/*?{a}{n}=", "/{a}-{n}/*/edit$")
# Of 20 rules, which are Allow rules and which have "*" or "$" where there are such.
_ALLOW = (4, 9, 14, 19)
_WILD = (1, 5, 10, 13, 17)
# Numbers in URLs that are in no rule.
_UNRULED = (10**6, 10**10)


@dataclass(frozen=True, slots=True)
class Workload:
    """A robots.txt, and patterns to make URLs from.

    Those of *near* look like those of rules, but no rule matches their URLs.
    """

    body: bytes
    refusing: tuple[str, ...]
    allowing: tuple[str, ...]
    near: tuple[str, ...]

    def urls(self, random: Random, count: int, refused: float, site: str = SITE) -> dict[str, bool]:
        """*count* URLs in any order, and whether they are allowed; the share *refused* is not.

        Of the others, every fifth is allowed by an Allow rule, the rest by there
        being no rule for it.
        """
        number = round(count * refused)
        made = [(_path(random, self.refusing), False) for _ in range(number)]
        made += [
            (_path(random, self.near if index % 5 else self.allowing), True)
            for index in range(count - number)
        ]
        random.shuffle(made)
        urls = {site + path: allowed for path, allowed in made}
        assert len(urls) == count
        return urls


def _path(random: Random, patterns: tuple[str, ...]) -> str:
    """A path that one of *patterns* matches."""
    pattern = random.choice(patterns)
    word, number = random.choice(_WORDS), random.randrange(*_UNRULED)
    start = pattern.replace("{n}", str(number)).replace("*", f"{word}/page-{number}")
    if pattern.endswith("$"):
        return start[:-1]
    return f"{start}{word}-{number}/page.html?x={random.randrange(10)}"


def workload(rules: int, *, mixed: bool) -> Workload:
    """A file of *rules* rules for everyone, five at least.

    Every fifth is an Allow rule below what a Disallow rule before it disallows.
    Where *mixed*, a quarter of all have ``*`` or ``$``.
    """
    random = Random(rules)
    near: list[str] = []
    refusing: list[str] = []
    allowing: list[str] = []
    lines: list[str] = []
    for number in range(rules):
        if number % 20 in _ALLOW:
            above = random.choice([path for path in refusing[-20:] if _is_folder(path)])
            allowing.append(f"{above}public/")
            lines.append(f"Allow: {allowing[-1]}")
        else:
            shape = random.choice(_WILDCARDS if mixed and number % 20 in _WILD else _PLAIN)
            near.append(shape.replace("{a}", _word(random)).replace("{b}", _word(random)))
            refusing.append(near[-1].replace("{n}", str(number)))
            lines.append(f"Disallow: {refusing[-1]}")
    return Workload(_file(lines), tuple(refusing), tuple(allowing), tuple(near))


def _word(random: Random) -> str:
    return random.choice(_WORDS)


def _is_folder(pattern: str) -> bool:
    return pattern.endswith("/") and "*" not in pattern


def _file(lines: list[str]) -> bytes:
    start = ["User-agent: BadBot", "Disallow: /", "", "# Everyone else", "User-agent: *"]
    return "\n".join([*start, *lines, "", f"Sitemap: {SITE}/sitemap.xml", ""]).encode()
