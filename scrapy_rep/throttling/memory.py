"""Turns for a crawl that shares its sites with nobody."""

from __future__ import annotations

from scrapy_rep.throttling.backend import ROUNDING, Answer


class MemoryBackend:
    """Grants every turn from *delay* seconds after the last request on.

    See :class:`~scrapy_rep.throttling.backend.Backend`.
    """

    def ask(  # noqa: D102
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        wait = 0.0 if since is None else delay - since
        answer(wait if wait > ROUNDING else None)

    def ended(self, site: str, delay: float, *, sent: bool) -> None:  # noqa: D102
        pass

    def sent_without_turn(self, site: str, delay: float) -> None:  # noqa: D102
        pass
