"""The index against trying all rules one by one, over real files (../shared/conformance)."""

from __future__ import annotations

import gzip
import json
import zipfile
from itertools import islice

import pytest

from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.groups import groups_about
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.urls import InvalidURL, canonical_patterns, path_to_match
from scrapy_rep.rep.rules.matching import Rule, line_of, refuses
from tests.rep.conformance_data import CONFORMANCE, CORPUS, VERDICTS
from tests.rep.rules.plain_matcher import plain_decide, rule_set

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not CONFORMANCE.is_dir(), reason=f"the conformance data is not in {CONFORMANCE}"
    ),
]

# Of each file; trying all rules takes a while.
_URLS = 4


def test_the_index_decides_as_a_loop_over_all_rules_would() -> None:
    decided = 0
    with zipfile.ZipFile(CORPUS) as corpus, gzip.open(VERDICTS, "rt") as recorded:
        for line in recorded:
            site = json.loads(line)
            _, groups = groups_about(corpus.read(site["file"]), RFC9309, ())
            rules = [
                Rule(field is Field.ALLOW, value, number)
                for group in groups
                for number, field, value in group.rules
            ]
            index = rule_set(rules, RFC9309)
            patterns = canonical_patterns([rule.value for rule in rules], RFC9309)
            allows = [rule.allow for rule in rules]
            for _, url, _ in islice(site["q"], _URLS):
                try:
                    path = path_to_match(url, RFC9309)
                except InvalidURL:
                    continue
                expected = plain_decide(rules, path, RFC9309)
                weight = index.decide(path)
                assert line_of(weight) == (expected.line if expected else 0), (site["file"], url)
                refused = refuses(path, patterns, allows, RFC9309)
                assert refused is bool(expected and expected.refuses), (site["file"], url)
                decided += expected is not None
    assert decided > 1000
