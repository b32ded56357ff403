"""What everybody says of URLs, and why some say otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scrapy.robotstxt import RobotParser

from scrapy_rep.cli.compare.parsers import Answers, read, short_name
from scrapy_rep.cli.sources import Asking, Robots
from scrapy_rep.cli.wording import because
from scrapy_rep.parsers.external import too_costly
from scrapy_rep.rep.access import FetchResult, access_result
from scrapy_rep.rep.dialects import DIALECTS, RFC9309, Access, Dialect
from scrapy_rep.rep.differences import Differences
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin, has_other_scheme
from scrapy_rep.rep.verdict import Reason, Verdict, origin_or_verdict

_UNKNOWN = "unknown"


def plain(text: str) -> str:
    """*text*, in which reStructuredText marks code, without the marks."""
    return text.replace("``", "")


@dataclass(frozen=True, slots=True)
class Said:
    """The answer of one column: *allowed* or not, or why there is no answer, *error*.

    *points* is why it is another one than that of rfc9309.
    """

    allowed: bool | None
    line: int = 0
    reason: str = ""
    error: str = ""
    points: tuple[str, ...] = ()

    @property
    def known_class(self) -> str:
        """Why it is another answer; "" where it is the same."""
        return plain("; ".join(self.points))

    @property
    def why(self) -> str:
        """Why it is another answer, or none."""
        return self.known_class or self.error


@dataclass(frozen=True, slots=True)
class Row:
    """One URL, and what each column says."""

    url: str
    said: dict[str, Said]
    trouble: bool = False

    @property
    def ours(self) -> Said:
        """What rfc9309 says."""
        return self.said[RFC9309.name]

    @property
    def agree(self) -> bool:
        """Whether all that have an answer have the same."""
        return len({said.allowed for said in self.said.values()} - {None}) < 2


class Files:
    """One robots.txt, as everybody reads it."""

    def __init__(self, known: Robots, asking: Asking, parsers: Sequence[type[RobotParser]]) -> None:
        self.trouble = known.unreachable
        self._asking = asking
        result = _result(known)
        # As far as a crawl reads it.
        self._body = asking.parse(result.body, cut=result.cut).body
        overrides = asking.settings.status_overrides
        self._access = {
            name: access_result(result, dialect, overrides) for name, dialect in DIALECTS.items()
        }
        self._dialects = {
            name: asking.parse(result.body, cut=result.cut, dialect=dialect)
            for name, dialect in DIALECTS.items()
        }
        self._answers = {short_name(parser): self._read(parser) for parser in parsers}
        self._differences = Differences(self._body)

    def _read(self, parser: type[RobotParser]) -> Answers | str:
        """What has read the file, or why nothing has."""
        if self._access[RFC9309.name] is not Access.SUCCESSFUL:
            return "not asked: there is no file"
        if cost := too_costly(self._body):
            return f"not asked: {cost}"
        try:
            return read(parser, self._body)
        except Exception as error:
            return _raised(error)

    def ask(self, url: str) -> dict[str, Said]:
        """What everybody says of *url*."""
        ours = self._by_dialect(url, RFC9309)
        said = {RFC9309.name: ours}
        for dialect in DIALECTS.values():
            if dialect is not RFC9309:
                said[dialect.name] = self._explained(url, dialect, ours)
        for name, answers in self._answers.items():
            said[name] = self._by_parser(url, answers, ours)
        return said

    def _by_dialect(self, url: str, dialect: Dialect) -> Said:
        access = self._access[dialect.name]
        if access is not Access.SUCCESSFUL:
            return Said(access is Access.UNAVAILABLE, reason=access.value)
        verdict = self._dialects[dialect.name].verdict(url, self._asking.agents)
        return Said(verdict.allowed, verdict.line, verdict.reason.value)

    def _explained(self, url: str, dialect: Dialect, ours: Said) -> Said:
        said = self._by_dialect(url, dialect)
        if said.allowed is ours.allowed:
            return said
        if self._access[dialect.name] is not self._access[RFC9309.name]:
            points: tuple[str, ...] = ("what the answer to the request means",)
        else:
            points = self._differences.from_dialect(url, self._asking.agents, dialect)
        return Said(said.allowed, said.line, said.reason, points=points or (_UNKNOWN,))

    def _by_parser(self, url: str, answers: Answers | str, ours: Said) -> Said:
        if isinstance(answers, str):
            return Said(None, error=answers)
        agents = self._asking.agents
        try:
            allowed = bool(answers.allowed(url, agents[0] if agents else "*"))
        except Exception as error:
            return Said(None, error=_raised(error))
        if allowed is ours.allowed:
            return Said(allowed)
        points = self._differences.of_answer(url, agents, allowed)
        return Said(allowed, points=points or (_UNKNOWN,))


def _result(known: Robots) -> FetchResult:
    """What a crawl goes by: the answer in use, or that there is none."""
    if known.policy is None:
        return FetchResult(known.name, 200, known.file.body if known.file else b"")
    last = known.policy.copy or known.policy.entry.outage
    assert last is not None
    return last.result


def _raised(error: Exception) -> str:
    return printable(f"raised {type(error).__name__}: {error}")


def files_of(
    urls: Sequence[str],
    file: str | None,
    asking: Asking,
    parsers: Sequence[type[RobotParser]],
) -> Iterator[tuple[str, Files | Verdict]]:
    """Each of *urls* with the robots.txt that holds for it, or the verdict where none does."""
    if file is not None:
        files = Files(asking.read(file), asking, parsers)
        for url in urls:
            yield url, Verdict(True, Reason.OTHER_SCHEME) if has_other_scheme(url) else files
        return
    origins = {url: origin_or_verdict(url) for url in urls}
    wanted = {origin for origin in origins.values() if isinstance(origin, Origin)}
    known: Mapping[Origin, Robots] = (
        asking.ask_with(lambda crawl: crawl.get(wanted)) if wanted else {}
    )
    by_origin = {origin: Files(each, asking, parsers) for origin, each in known.items()}
    for url, origin in origins.items():
        yield url, by_origin[origin] if isinstance(origin, Origin) else origin


def row_of(url: str, files: Files | Verdict) -> Row:
    """What everybody says of *url*, for which *files* holds; a verdict is put to nobody."""
    if isinstance(files, Verdict):
        nobody = Said(None, reason=files.reason.value, error=because(files))
        return Row(url, {RFC9309.name: nobody}, trouble=not files.allowed)
    said = files.ask(url)
    no_url = said[RFC9309.name].reason == Reason.INVALID_URL.value
    return Row(url, said, trouble=files.trouble or no_url)
