"""docs/purposes.rst has the table that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from scrapy_rep.pages.statements import REFUSED_BY_RULE, REFUSED_BY_TDM, REFUSED_BY_VALUE
from scrapy_rep.rep.directives.purposes import PURPOSES, purposes_of

TEXT = Path(__file__).parents[2].joinpath("docs/purposes.rst").read_text("utf-8")
_NAMES = re.compile("``([^`]+)``")


def _refused_by(statement: str) -> frozenset[str]:
    if statement in REFUSED_BY_RULE:
        return REFUSED_BY_RULE[statement]
    if statement == "tdm-reservation: 1":
        return REFUSED_BY_TDM
    if "=" in statement:
        return purposes_of(statement.partition("=")[0])
    rule, _, value = statement.partition(": ")
    return REFUSED_BY_VALUE[rule, value]


def test_the_table_of_statements_is_that_of_the_code() -> None:
    section = TEXT.partition("Which statement refuses")[2].partition("\n``yes``")[0]
    rows = [row.split("     - ") for row in section.split("   * - ")[2:]]
    stated = {
        statement: frozenset(_NAMES.findall(refused))
        for statements, refused, _ in rows
        for statement in _NAMES.findall(statements)
    }
    assert stated == {statement: _refused_by(statement) for statement in stated}
    rules = REFUSED_BY_RULE.keys() | {f"{rule}: {value}" for rule, value in REFUSED_BY_VALUE}
    assert rules <= stated.keys()


def test_the_table_of_purposes_is_that_of_the_code() -> None:
    section = TEXT.partition("the crawl\n")[2].partition("\n\n")[0]
    assert tuple(re.findall("^``([^`]+)``", section, re.MULTILINE)) == PURPOSES
