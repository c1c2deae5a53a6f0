"""A cache of what texts were read as, bounded by its entries and by the characters of their keys."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["BoundedCache"]

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Values by a text and its context: what else decides the value, such as a base IRI or a datatype.

    The least recently used goes first. An entry of over a quarter of chars_max is not kept. Thread-safe.
    """

    def __init__(self, entries_max: int, chars_max: int) -> None:
        self._entries_max, self._chars_max = entries_max, chars_max
        self._entries: OrderedDict[tuple[str, str | None], tuple[Value, int]] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def get(self, text: str, context: str | None) -> Value | None:
        with self._lock:
            found = self._entries.get((text, context))
            if found is None:
                return None
            self._entries.move_to_end((text, context))
            return found[0]

    def put(self, text: str, context: str | None, value: Value, chars_at_least: int = 0) -> None:
        """chars_at_least is what an entry counts as if its value is larger than its text."""
        size = max(len(text) + len(context or ""), chars_at_least)
        if size > self._chars_max // 4:
            return
        with self._lock:
            if (text, context) in self._entries:
                return
            self._entries[(text, context)] = value, size
            self._chars += size
            while len(self._entries) > self._entries_max or self._chars > self._chars_max:
                _, (_, size) = self._entries.popitem(last=False)
                self._chars -= size
