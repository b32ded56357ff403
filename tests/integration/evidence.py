"""The evidence that a crawl has left, and changes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from scrapy_rep.evidence.chain import FIRST, seal, to_json
from scrapy_rep.evidence.verify import Problem, Summary, Verifier


@dataclass(frozen=True)
class Evidence:
    """A log, and the archive of the same crawl."""

    log: bytes
    archive: bytes

    @classmethod
    def read(cls, directory: Path) -> Evidence:
        """The only log and the only archive in *directory*."""
        [log], [archive] = directory.glob("*.jsonl"), directory.glob("*.warc.gz")
        return cls(log.read_bytes(), archive.read_bytes())

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]

    def decisions(self) -> dict[str, dict[str, Any]]:
        """By URL: the line of the last decision."""
        return {line["url"]: line for line in self.of_type("decision")}

    def verify(self, **options: Any) -> tuple[list[Problem], Summary]:
        verifier = Verifier(BytesIO(self.archive), Settings(), **options)
        return list(verifier.check(BytesIO(self.log))), verifier.summary

    def problems(self, **options: Any) -> list[Problem]:
        return self.verify(**options)[0]


def settings(directory: Path) -> dict[str, str]:
    """Those of a crawl that leaves its evidence in *directory*."""
    return {"REP_AUDIT": f"{directory}/%(name)s.jsonl", "REP_ARCHIVE": str(directory)}


def resealed(lines: Iterable[dict[str, Any]]) -> bytes:
    """A log of *lines*, with digests that are right: by whoever can write all of it.

    Where a line is about another one, that one is found by its old digest.
    """
    log = b""
    digest = FIRST
    renamed: dict[str, str] = {}
    for line in lines:
        fields = {name: line[name] for name in line if name != "digest"}
        for name in ("rests_on", "before"):
            if fields.get(name) is not None:
                fields[name] = renamed.get(fields[name], fields[name])
        sealed, digest = seal(digest, to_json(fields))
        renamed[line["digest"]] = digest
        log += sealed + b"\n"
    return log
