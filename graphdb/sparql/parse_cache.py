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
        self._trees: OrderedDict[tuple[str, str | None], Tree] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def get(self, text: str, base_iri: str | None) -> Tree | None:
        with self._lock:
            tree = self._trees.get((text, base_iri))
            if tree is not None:
                self._trees.move_to_end((text, base_iri))
            return tree

    def put(self, text: str, base_iri: str | None, tree: Tree) -> None:
        size = _size(text, base_iri)
        if size > self._chars_max // 4:
            return
        with self._lock:
            if (text, base_iri) in self._trees:
                return
            self._trees[(text, base_iri)] = tree
            self._chars += size
            while len(self._trees) > self._entries_max or self._chars > self._chars_max:
                oldest, _ = self._trees.popitem(last=False)
                self._chars -= _size(*oldest)


def _size(text: str, base_iri: str | None) -> int:
    return len(text) + len(base_iri or "")
