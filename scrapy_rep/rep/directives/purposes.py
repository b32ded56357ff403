"""Whether Content-Signal and Content-Usage records allow the purposes of a crawl.

Here may not live: their syntax (:mod:`.records`).

draft-ietf-aipref-attach, "Content-Usage Rule Semantics": the record with the longest path that
matches counts, as with rules; of those with the same path, each does. draft-ietf-aipref-vocab,
"Combining Preferences": "If any statement of preference indicates that the usage is disallowed,
the result is that the usage is disallowed". Without a statement, a usage is neither allowed nor
disallowed. The same applies to how much of a page may be shown again: the least counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import NamedTuple

from ..dialects import RFC9309
from ..parsing.lines import Field
from ..parsing.records import ContentUse, OtherRecord, UsagePreferences
from ..parsing.urls import canonical_patterns, path_to_match
from ..rules.matching import TOO_COSTLY, RuleSet, line_of

PREFERENCE_FIELDS = frozenset({Field.CONTENT_SIGNAL, Field.CONTENT_USAGE})

#: The purposes of https://contentsignals.org and of draft-ietf-aipref-vocab,
KNOWN_PURPOSES = frozenset({"search", "ai-input", "ai-train", "train-ai"})
# and their terms for the same purpose.
_SAME = frozenset({"ai-train", "train-ai"})


class Refusal(NamedTuple):
    """A record by which a URL may not be requested, and the reason."""

    record: OtherRecord
    why: str


class Preferences:
    """Whether *records*, which are about us, allow *purposes* and to show *shown* again."""

    def __init__(
        self,
        records: Iterable[OtherRecord],
        purposes: Sequence[str],
        shown: ContentUse | None = None,
    ) -> None:
        self._records = {record.line: record for record in records}
        self._shown = shown
        self._by_purpose = [
            [self._rules(field, _refuses(purpose)) for field in PREFERENCE_FIELDS]
            for purpose in purposes
        ]
        self._bounds: list[_Refusing] = []
        if shown is not None:
            self._bounds = [self._rules(Field.CONTENT_SIGNAL, _allows_less_than(shown))]

    def refusal(self, url: str) -> Refusal | None:
        """Why *url* may not be requested, or ``None``. Raises :exc:`.InvalidURL`.

        It may be used for none of the purposes (the record is that for the first one), or less
        of it may be shown than the crawl shows.
        """
        if not self._records:
            return None
        path = path_to_match(url, RFC9309)
        refusing = [_first_refusal(rules, path) for rules in self._by_purpose]
        if refusing and all(refusing):
            return Refusal(self._records[refusing[0]], "no purpose of this crawl is left")
        line = _first_refusal(self._bounds, path)
        if line and self._shown is not None:
            why = f"this crawl shows more of its pages again: {self._shown.value}"
            return Refusal(self._records[line], why)
        return None

    def _rules(self, field: Field, refuse: Callable[[UsagePreferences], bool]) -> _Refusing:
        """The records of *field* as rules that "allow" where they *refuse*, which wins a tie."""
        lines: list[int] = []
        paths: list[bytes] = []
        refuses: list[bool] = []
        for record in self._records.values():
            value = record.value
            if record.field is field and isinstance(value, UsagePreferences):
                lines.append(record.line)
                paths.append((value.path or "/").encode("ascii"))
                refuses.append(refuse(value))
        rules = RuleSet(lines, canonical_patterns(paths, RFC9309), refuses, RFC9309)
        return _Refusing(rules, min(compress(lines, refuses), default=0))


class _Refusing(NamedTuple):
    """The records of one field as rules, and the line of the first one that refuses."""

    rules: RuleSet
    first_line: int

    def line(self, path: str) -> int:
        """The line of the record that refuses *path*; 0 where none does."""
        weight = self.rules.decide(path)
        # A file that takes too long must not allow anything by that.
        if weight == TOO_COSTLY:
            return self.first_line
        return line_of(weight) if weight & 1 else 0


def _refuses(purpose: str) -> Callable[[UsagePreferences], bool]:
    same = _SAME if purpose in _SAME else {purpose}
    return lambda value: any(term in same and not yes for term, yes in value.purposes)


def _allows_less_than(shown: ContentUse) -> Callable[[UsagePreferences], bool]:
    return lambda value: value.shown is not None and shown.exceeds(value.shown)


def _first_refusal(records: Iterable[_Refusing], path: str) -> int:
    """The line of the first record that refuses *path*; 0 where none does."""
    return min(filter(None, (each.line(path) for each in records)), default=0)
