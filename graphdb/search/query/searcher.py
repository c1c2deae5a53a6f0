"""A point in time of a whole index: its segments, and the statistics over all of them that BM25 needs."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from graphdb.search.analysis import Analyzers
from graphdb.search.mapping import Mapping
from graphdb.search.query.similarity import FieldStatistics
from graphdb.search.query.term_codes import TermCodes
from graphdb.search.segment import Floats, Leaf, Longs, TermDictionary

__all__ = ["Searcher"]

Value = TypeVar("Value")

KEPT_MAX = 50_000
_UNKNOWN = object()


class Searcher:
    """Owned by whoever searches; its leaves never change, so what it computes once it may keep.

    memory is kept for as long as the segments live, by segment and field; hand the one of an earlier searcher
    over so that a refresh does not compute it again.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        mapping: Mapping,
        analyzers: Analyzers,
        memory: dict[tuple[str, str], TermCodes] | None = None,
        index_name: str = "",
    ) -> None:
        self.leaves = tuple(leaves)
        self.mapping = mapping
        self.analyzers = analyzers
        self.memory = {} if memory is None else memory
        self.index_name = index_name
        self._kept: dict[Hashable, Any] = {}

    @property
    def max_doc(self) -> int:
        """Documents with deleted and nested ones: one more than the largest number."""
        return sum(leaf.segment.size for leaf in self.leaves)

    @property
    def doc_count(self) -> int:
        """Documents that count in statistics: with deleted and nested ones, but none that are hidden."""
        return sum(leaf.count for leaf in self.leaves)

    def shown_numbers(self, docs: Longs) -> Longs:
        """The numbers of documents among those that count, in the same order."""
        if all(leaf.counted is None for leaf in self.leaves):
            return docs
        return self.keep("shown numbers", self._shown_numbers)[docs]

    def _shown_numbers(self) -> Longs:
        counted = [
            np.ones(leaf.segment.size, np.bool_) if leaf.counted is None else leaf.counted
            for leaf in self.leaves
        ]
        return np.cumsum(np.concatenate(counted)) - 1

    def keep(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """make()'s result, computed at the first call with this key (and again, once too many were kept)."""
        known = self._kept.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            known = self._kept[key] = make()
        return cast(Value, known)

    def dictionaries(self, path: str) -> list[tuple[Leaf, TermDictionary]]:
        """The term dictionaries of a text or keyword field, by leaf that has it."""
        found = []
        for leaf in self.leaves:
            index = leaf.segment.text(path) or leaf.segment.terms(path)
            if index is not None:
                found.append((leaf, index.dictionary))
        return found

    def codes(self, leaf: Leaf, path: str, dictionary: TermDictionary) -> TermCodes:
        """The terms of a dictionary as an array, to match patterns against."""
        key = (leaf.segment.name, path)
        if key not in self.memory:
            self.memory[key] = TermCodes.of(dictionary)
        return self.memory[key]

    def statistics(self, path: str) -> FieldStatistics:
        """Of a text or keyword field. A keyword counts once in each document that has it."""
        return self.keep(("statistics", path), lambda: self._statistics(path))

    def _statistics(self, path: str) -> FieldStatistics:
        doc_count = total_terms = 0
        for leaf in self.leaves:
            if (text := leaf.segment.text(path)) is not None:
                doc_count, total_terms = doc_count + text.doc_count, total_terms + text.total_terms
            elif (terms := leaf.segment.terms(path)) is not None:
                doc_count += terms.doc_count
                total_terms += len(terms.ordinals.terms)
        return FieldStatistics(doc_count, total_terms)

    def inverse_norms(self, path: str) -> Floats:
        """By norm byte, see `FieldStatistics`."""
        return self.keep(("norms", path), lambda: self.statistics(path).inverse_norms())

    def doc_freq(self, path: str, term: str) -> int:
        """Documents that hold a term, deleted ones too, but none that are hidden."""
        return self.keep(("doc_freq", path, term), lambda: self._doc_freq(path, term))

    def _doc_freq(self, path: str, term: str) -> int:
        count = 0
        for leaf in self.leaves:
            if (text := leaf.segment.text(path)) is not None:
                number = text.dictionary.find(term)
                count += len(text.postings(number)[0]) if number >= 0 else 0
            elif (terms := leaf.segment.terms(path)) is not None:
                number = terms.dictionary.find(term)
                count += len(terms.postings(number)) if number >= 0 else 0
        return count

    def text_numbers(self, path: str, term: str) -> dict[int, int]:
        """Its number in the dictionary of each leaf that has it in this text field, by the leaf's base."""
        return self.keep(("text_numbers", path, term), lambda: self._text_numbers(path, term))

    def _text_numbers(self, path: str, term: str) -> dict[int, int]:
        found = {}
        for leaf in self.leaves:
            text = leaf.segment.text(path)
            number = -1 if text is None else text.dictionary.find(term)
            if number >= 0:
                found[leaf.base] = number
        return found

    def part(self, leaf: Leaf) -> tuple[int, Leaf, "Searcher"]:
        """The index that a leaf is of, where several are searched: its number, its own leaf, its searcher."""
        return 0, leaf, self

    def locate(self, doc: int) -> tuple[Leaf, int]:
        """The leaf of a document of the whole searcher, and its number there."""
        bases = [leaf.base for leaf in self.leaves]
        leaf = self.leaves[int(np.searchsorted(bases, doc, side="right")) - 1]
        return leaf, doc - leaf.base
