"""Trees of texts seen lately, bounded by their number and by the characters of texts and base IRIs."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["ParseCache"]

Tree = TypeVar("Tree")


class ParseCache(Generic[Tree]):
    """The least recently used goes first; one over a quarter of chars_max is not kept. Thread-safe."""

    def __init__(self, entries_max: int, chars_max: int) -> None:
        self._entries_max, self._chars_max = entries_max, chars_max
        self._trees: OrderedDict[tuple[str, str | None], tuple[Tree, int]] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def get(self, text: str, base_iri: str | None) -> Tree | None:
        with self._lock:
            found = self._trees.get((text, base_iri))
            if found is None:
                return None
            self._trees.move_to_end((text, base_iri))
            return found[0]

    def put(self, text: str, base_iri: str | None, tree: Tree, chars_at_least: int = 0) -> None:
        """chars_at_least is what a tree counts as that is larger than its text."""
        size = max(len(text) + len(base_iri or ""), chars_at_least)
        if size > self._chars_max // 4:
            return
        with self._lock:
            if (text, base_iri) in self._trees:
                return
            self._trees[(text, base_iri)] = tree, size
            self._chars += size
            while len(self._trees) > self._entries_max or self._chars > self._chars_max:
                _, (_, size) = self._trees.popitem(last=False)
                self._chars -= size
