from __future__ import annotations

import random
import tracemalloc

import pytest

from scrapy_rep.stores.memory import MemoryStore
from tests.stores.examples import Clock, entry, origin, run, run_all


def test_those_not_used_for_longest_go_first() -> None:
    store = MemoryStore(3, Clock())
    for number in range(3):
        run(store.write(entry(number)))
    run(store.read(origin(0)))
    run(store.write(entry(3)))
    assert set(run_all(store.origins())) == {origin(0), origin(2), origin(3)}
    assert run(store.read(origin(1))) is None


def test_too_large_to_keep_is_not_kept_and_nothing_else_is() -> None:
    store = MemoryStore(3, Clock())
    run(store.write(entry()))
    run(store.write(entry(body=bytes(17 * 1024 * 1024))))
    assert run(store.read(origin())) is None
    assert run(store.delete(origin())) is False


@pytest.mark.once
def test_bodies_are_compressed() -> None:
    words = [b"Disallow: /%d/" % number for number in range(1000)]
    tracemalloc.start()
    store = MemoryStore(10_000, Clock())
    for number in range(1000):
        body = b"\n".join(random.sample(words, 320))
        assert len(body) > 4000
        run(store.write(entry(number, body=body)))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 1000 < 2000
