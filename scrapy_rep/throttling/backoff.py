"""The delay that a site asks for by its answers: 429 (Too Many Requests), 503, Retry-After.

A pure function. Here may not live: who keeps the delay, and what becomes of the requests that
were answered so: Scrapy's RetryMiddleware counts and repeats them as always.
"""

from __future__ import annotations

from dataclasses import dataclass

#: RFC 6585 §4 and RFC 9110 §15.6.4: both may come with a Retry-After.
ASK_FOR_LESS = frozenset({429, 503})
#: The first delay in seconds where the answer says none. It doubles from there,
FIRST = 1.0
#: up to this: whether the site is busy or broken, nobody knows, and the crawl has to end.
LONGEST_GUESS = 16.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How slow a site wants the crawl to be. Times are seconds of one clock."""

    #: Seconds between two requests; 0 where it does not say.
    delay: float = 0.0
    #: When that changed. Answers to requests from before say nothing new.
    since: float = -float("inf")

    def after(
        self,
        status: int,
        retry_after: float,
        sent_at: float,
        now: float,
        *,
        asked: float,
        longest: float,
    ) -> Backoff:
        """The same after an answer with *status*, which asks for *retry_after* seconds or 0.

        Its request was sent at *sent_at*; the site's robots.txt has *asked* for a delay. The
        new one is *longest* at most.
        """
        if status in ASK_FOR_LESS and retry_after:
            delay = max(self.delay, min(retry_after, longest))
        elif sent_at < self.since:
            return self
        elif status in ASK_FOR_LESS:
            doubled = max(FIRST, 2 * max(self.delay, asked))
            delay = max(self.delay, min(doubled, LONGEST_GUESS, longest))
        elif status < 500:
            delay = self.delay / 2
            if delay < FIRST or delay <= asked:
                delay = 0.0
        else:
            return self
        return self if delay == self.delay else Backoff(delay, now)
