"""Whether Content-Signal and Content-Usage records allow the purposes of a crawl.

:mod:`.records` has their syntax.

draft-ietf-aipref-attach, "Content-Usage Rule Semantics": the record with the longest path that
matches counts, as with rules; of those with the same path, each does. draft-ietf-aipref-vocab,
"Combining Preferences": "If any statement of preference indicates that the usage is disallowed,
the result is that the usage is disallowed". Without a statement, a usage is neither allowed nor
disallowed. The same applies to how much of a page may be shown again: the least counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import NamedTuple

from ..dialects import RFC9309
from ..parsing.lines import Field
from ..parsing.records import ContentUse, OtherRecord, UsagePreferences
from ..parsing.urls import canonical_patterns, path_to_match
from ..rules.matching import TOO_COSTLY, RuleSet, line_of

PREFERENCE_FIELDS = frozenset({Field.CONTENT_SIGNAL, Field.CONTENT_USAGE})

#: What a page may be used for: one vocabulary for robots.txt and for all that comes with a page.
PURPOSES = (
    *("search", "snippet", "images", "archive"),
    *("ai-input", "ai-train", "ai-train-images", "tdm"),
)
# The purposes that each term of https://contentsignals.org and of draft-ietf-aipref-vocab is
# about. Who refuses search refuses what a search result shows.
_ABOUT = {
    "search": frozenset({"search", "snippet", "images"}),
    "ai-input": frozenset({"ai-input"}),
    "ai-train": frozenset({"ai-train", "ai-train-images"}),
    "train-ai": frozenset({"ai-train", "ai-train-images"}),
}
# Another name of a purpose, from draft-ietf-aipref-vocab.
_ALIASES = {"train-ai": "ai-train"}
#: The purposes that have a definition somewhere, and their other names.
KNOWN_PURPOSES = frozenset(PURPOSES) | set(_ALIASES)


def purposes_of(term: str) -> frozenset[str]:
    """The purposes that *term*, of Content-Signal or Content-Usage, is about."""
    return _ABOUT.get(term) or frozenset({term})


def canonical_purpose(name: str) -> str:
    """The name of a purpose that :data:`PURPOSES` has for *name*.

    >>> canonical_purpose("train-ai")
    'ai-train'
    """
    return _ALIASES.get(name, name)


class Refusal(NamedTuple):
    """A record that refuses a URL, and the reason."""

    record: OtherRecord
    why: str


# For a path, the line of the record that counts, 0 if there is none, and whether it refuses.
_Decide = Callable[[str], tuple[int, bool]]


class Preferences:
    """Whether *records*, which apply to us, allow *purposes* and the content use *shown*."""

    def __init__(
        self,
        records: Iterable[OtherRecord],
        purposes: Sequence[str],
        shown: ContentUse | None = None,
    ) -> None:
        self._records = {
            record.line: (record, value)
            for record in records
            if isinstance(value := record.value, UsagePreferences)
        }
        self._shown = shown
        self._by_purpose = [
            (
                purpose,
                [
                    self._decider(field, partial(_states, False, purpose))
                    for field in PREFERENCE_FIELDS
                ],
            )
            for purpose in map(canonical_purpose, purposes)
        ]
        self._about_use: list[_Decide] = []
        if shown is not None:
            self._about_use = [self._decider(Field.CONTENT_SIGNAL, partial(_allows_less, shown))]

    def refusal(self, url: str) -> Refusal | None:
        """Why *url* may not be requested, or ``None``. Raises :exc:`.InvalidURL`.

        *url* is refused if all purposes are refused (the result has the record for the first
        purpose), or if the crawl shows more of a page than allowed.
        """
        if not self._records:
            return None
        path = path_to_match(url, RFC9309)
        refusing = [_refusing(deciders, path) for _, deciders in self._by_purpose]
        if refusing and all(refusing):
            return Refusal(self._records[refusing[0]][0], "it refuses every purpose of this crawl")
        if self._shown and (line := _refusing(self._about_use, path)):
            why = f"this crawl shows more of its pages than that: {self._shown.value}"
            return Refusal(self._records[line][0], why)
        return None

    def stated(self, url: str) -> Iterator[tuple[str, OtherRecord, bool]]:
        """Each purpose that a record refuses or allows, the record, and whether it allows.

        Raises as :meth:`refusal` does.
        """
        if not self._records:
            return
        path = path_to_match(url, RFC9309)
        for purpose, deciders in self._by_purpose:
            if line := _refusing(deciders, path):
                yield purpose, self._records[line][0], False
                continue
            lines = (decide(path)[0] for decide in deciders)
            for record, value in (self._records[line] for line in lines if line):
                if _states(True, purpose, value):
                    yield purpose, record, True

    def _decider(self, field: Field, refuses: Callable[[UsagePreferences], bool]) -> _Decide:
        values = {
            line: value for line, (record, value) in self._records.items() if record.field is field
        }
        paths = [(value.path or "/").encode("ascii") for value in values.values()]
        refusing = [refuses(value) for value in values.values()]
        # A record that refuses "allows" in this index, which wins a tie.
        rules = RuleSet([*values], canonical_patterns(paths, RFC9309), refusing, RFC9309)
        first = min(compress(values, refusing), default=0)

        def decide(path: str) -> tuple[int, bool]:
            weight = rules.decide(path)
            # A file that takes too long to match must not gain access by that.
            return (first, True) if weight == TOO_COSTLY else (line_of(weight), bool(weight & 1))

        return decide


def _states(yes: bool, purpose: str, value: UsagePreferences) -> bool:
    """Whether *value* allows *purpose*; without *yes*, whether it refuses it."""
    return any(stated is yes and purpose in purposes_of(term) for term, stated in value.purposes)


def _allows_less(shown: ContentUse, value: UsagePreferences) -> bool:
    return value.shown is not None and shown.exceeds(value.shown)


def _refusing(deciders: Iterable[_Decide], path: str) -> int:
    """The line of the first record that refuses *path*; 0 where none does."""
    decided = (decide(path) for decide in deciders)
    return min((line for line, refuses in decided if refuses and line), default=0)
