"""From statements to a verdict for each use.

All restrictions add up, whatever source they are from: draft-illyes-repext, "the implementor
MUST apply the union of all rules"; draft-ietf-aipref-vocab, "If any statement of preference
indicates that the usage is disallowed, the result is that the usage is disallowed". Only a TDM
reservation may be lifted by a more specific source: the TDM Reservation Protocol, "Processing
priority".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrapy_rep.pages.statements import (
    USES,
    PageRules,
    Source,
    Statement,
    UseVerdict,
)

_BY_PRIORITY = (Source.META, Source.HEADER, Source.TDM_FILE)


def evaluate(
    statements: Iterable[Statement],
    now: float,
    policies: Sequence[str | None] = (),
    uses: Sequence[str] = USES,
) -> PageRules:
    """The rules of a page by its *statements* at time *now*, in seconds since the epoch.

    *policies* are the URLs of TDM policies, from the least specific source to the most
    specific one. *uses* are those to be evaluated.
    """
    found = tuple(dict.fromkeys(statements))
    tdm = _tdm_source(found)
    holding = [
        each
        for each in found
        if (each.since is None or each.since <= now) and (not each.is_tdm or each.source is tdm)
    ]
    verdicts = {use: _verdict(use, holding) for use in uses}
    reserved = any(each.is_tdm and not each.allows for each in holding)
    policy = next(filter(None, reversed(policies)), None)
    return PageRules(found, verdicts, policy if reserved else None)


def _verdict(use: str, holding: Iterable[Statement]) -> UseVerdict:
    about = [each for each in holding if use in each.uses]
    refusal = next((each for each in about if not each.allows), None)
    by = refusal or next(iter(about), None)
    return UseVerdict(use, refusal is None, by)


def _tdm_source(statements: Iterable[Statement]) -> Source | None:
    """The most specific source of a TDM reservation: "absence MUST not reset current values"."""
    sources = {each.source for each in statements if each.is_tdm}
    return next((source for source in _BY_PRIORITY if source in sources), None)
