"""`WordRequests`: requests for searches that differ in the words that they seek alone.

A request is cut at the quotes of its first string, as they stand in its body or its address. When two had the
same around their words, and these are nothing but what is sought, only the words of the next one are read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphdb.sparql.results import ResultFormat
from graphdb.store.word_searches import WordSearch

__all__ = ["Cut", "KnownSearch", "WordRequests", "cut_form", "cut_text"]

_KNOWN_MAX = 256


@dataclass(frozen=True, slots=True)
class KnownSearch:
    """What follows from a request without its words."""

    search: WordSearch
    format: ResultFormat
    has_tag: bool  # whether its answers have entity tags
    front: str  # the text of the query before its words
    back: str

    def text(self, words: str) -> str:
        """That of a query."""
        return f"{self.front}{words}{self.back}"


Key: TypeAlias = tuple[object, bytes, bytes, bytes]
"""All of a request but its words: what follows from its head, its query string, what is before and behind."""
Cut: TypeAlias = tuple[Key, str]
"""A key, and the words."""


def cut_text(head: object, query_string: bytes, text: bytes) -> Cut | None:
    """A request by the text of its query; None where that has no string of ASCII characters."""
    front, _, rest = text.partition(b'"')
    words, _, back = rest.partition(b'"')
    return ((head, query_string, front, back), words.decode("ascii")) if words and words.isascii() else None


def cut_form(head: object, query_string: bytes, form: bytes) -> Cut | None:
    """The same by an encoded form. Of encoded characters only blanks are read."""
    front, _, rest = form.partition(b"%22")
    words, _, back = rest.partition(b"%22")
    words = words.replace(b"+", b" ").replace(b"%20", b" ")
    return ((head, query_string, front, back), words.decode("ascii")) if words and words.isascii() else None


class WordRequests:
    """Used on the port's event loop."""

    def __init__(self) -> None:
        self._known: dict[Key, KnownSearch | Literal["met", "none"]] = {}

    def find(self, key: Key) -> KnownSearch | None:
        """The search of requests with this key, if one is known."""
        found = self._known.get(key)
        return found if isinstance(found, KnownSearch) else None

    def is_settled(self, key: Key) -> bool:
        """Whether it is known what requests with this key are."""
        return self._known.get(key, "met") != "met"

    def note(self, key: Key, search: Callable[[], KnownSearch | None]) -> None:
        """A search was answered at once whose request had this key. search finds out which the others are, in
        the time that it takes to read two texts; it is called for the second request.
        """
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[key] = "met"
        elif found == "met":
            self._known[key] = "none"
            self._known[key] = search() or "none"
