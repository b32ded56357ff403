"""A chain of lines, in which each line carries the digest of all lines before it.

The digest of a line is the SHA-256 of the digest of the line before and of the line itself
up to its digest. So a change of any byte is found at the line where it happened.
"""

from __future__ import annotations

import json
from hashlib import sha256

#: The digest before the first line.
FIRST = "0" * 64

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_BEFORE = b',"digest":"'
_AFTER = b'"}'
_SEAL_SIZE = len(_BEFORE) + 64 + len(_AFTER)


def to_json(value: object) -> str:
    """*value* as JSON in ASCII. Raises :exc:`ValueError` for what JSON cannot hold."""
    return _encode(value)


def seal(previous: str, content: str) -> tuple[bytes, str]:
    """The line, without its end, for *content*, a JSON object; and the digest of the line.

    *previous* is the digest of the line before.
    """
    fields = content[:-1].encode("ascii")
    digest = _digest(previous, fields)
    return b"%b%b%b%b" % (fields, _BEFORE, digest.encode("ascii"), _AFTER), digest


def digest_of(line: bytes) -> str | None:
    """The digest that *line* carries; ``None`` if it carries none."""
    carried = line[-_SEAL_SIZE:]
    if not (carried.startswith(_BEFORE) and carried.endswith(_AFTER)):
        return None
    return carried[len(_BEFORE) : -len(_AFTER)].decode("ascii", "replace")


def is_sealed(previous: str, line: bytes) -> bool:
    """Whether *line* is as it was written after the line with the digest *previous*."""
    return digest_of(line) == _digest(previous, line[:-_SEAL_SIZE])


def _digest(previous: str, fields: bytes) -> str:
    return sha256(previous.encode("ascii", "replace") + fields).hexdigest()
