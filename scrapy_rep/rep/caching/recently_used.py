"""The values that were used most recently, within a bound in number and in size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class RecentlyUsed(OrderedDict[_K, _V]):
    """At most *most* values, with at most *room* as the sum of their *size_of*.

    Add values with :meth:`put`, which removes the least recently used ones. The value that was
    added last stays, whatever its size.
    """

    def __init__(self, size_of: Callable[[_V], int], room: int, most: int | None = None) -> None:
        super().__init__()
        self._size_of = size_of
        self._room = room
        self._most = most
        #: The size of all values together.
        self.taken = 0

    def use(self, key: _K) -> _V | None:
        """The value of *key*, if there is one. This counts as a use."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def put(self, key: _K, value: _V) -> None:
        """Add *value*, or replace the value of *key*."""
        if key in self:
            self.taken -= self._size_of(self.pop(key))
        self[key] = value
        self.taken += self._size_of(value)
        while len(self) > 1 and self._is_full():
            self.taken -= self._size_of(self.popitem(last=False)[1])

    def _is_full(self) -> bool:
        return self.taken > self._room or (self._most is not None and len(self) > self._most)
