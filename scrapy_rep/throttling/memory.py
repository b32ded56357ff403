"""Turns for a worker that shares its sites with nobody."""

from __future__ import annotations

from scrapy_rep.throttling.backend import Answer

_LONG_AGO = -float("inf")


class MemoryBackend:
    """Grants every turn at once, from *delay* seconds after the last request on."""

    def free_at(self, delay: float, left_at: float | None, began: float) -> float:
        """See :class:`~scrapy_rep.throttling.backend.Backend`, also for the others."""
        return _LONG_AGO if left_at is None else left_at + delay

    def ask(  # noqa: D102
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        answer(None)

    def give_back(self, site: str, delay: float) -> None:  # noqa: D102
        pass

    def ended(self, site: str, delay: float) -> None:  # noqa: D102
        pass

    def sent_without_turn(self, site: str, delay: float) -> None:  # noqa: D102
        pass
