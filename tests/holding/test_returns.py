"""Requests that go back to the scheduler, and come again as they were."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider, signals
from scrapy.utils.test import get_crawler

from scrapy_rep.holding.returns import RETURNED, Arrival, Returns


@pytest.mark.parametrize("dont_filter", [False, True])
@pytest.mark.parametrize(("behind", "priority"), [(True, 6), (False, 7)])
def test_to_the_scheduler_and_back(dont_filter: bool, behind: bool, priority: int) -> None:
    request = Request("http://a.example/", dont_filter=dont_filter, priority=7, meta={"a": 1})
    returns = Returns(get_crawler(Spider))
    returned = returns.give_back(request, behind=behind)
    # Else it would be dropped as a duplicate.
    assert returned.dont_filter
    assert returned.priority == priority
    returns.arrival(returned)
    assert (returned.dont_filter, returned.priority) == (dont_filter, 7)
    assert returned.meta == {"a": 1} == request.meta


@pytest.mark.parametrize(
    ("scheduled", "arrival"), [(True, Arrival.FROM_SCHEDULER), (False, Arrival.FROM_COMPONENT)]
)
def test_whoever_has_it_after_that(scheduled: bool, arrival: Arrival) -> None:
    crawler = get_crawler(Spider)
    returns = Returns(crawler)
    request = returns.give_back(Request("http://a.example/"), behind=True)
    if scheduled:
        crawler.signals.send_catch_log(signals.request_scheduled, request=request)
    assert returns.arrival(request) is arrival
    assert RETURNED not in request.meta
    assert request.priority == 0


def test_a_request_from_the_disk_comes_from_the_scheduler() -> None:
    crawler = get_crawler(Spider)
    returns = Returns(crawler)
    request = returns.give_back(Request("http://a.example/"), behind=True)
    assert returns.arrival(request.copy()) is Arrival.FROM_SCHEDULER


def test_a_request_that_was_not_given_back() -> None:
    request = Request("http://a.example/")
    assert Returns(get_crawler(Spider)).arrival(request) is Arrival.FIRST
