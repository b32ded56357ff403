"""Where the data of ../shared/conformance are."""

from __future__ import annotations

from pathlib import Path

CONFORMANCE = Path(__file__).parents[2].resolve().parent / "shared" / "conformance"
SPECIFICATION = CONFORMANCE / "spec-test-correctness.json"
VERDICTS = CONFORMANCE / "reference-verdicts.jsonl.gz"
CORPUS = CONFORMANCE / "robots-corpus.zip"
