"""One order for the terms of a field over all segments, as Elasticsearch's global ordinals."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Longs, TermDictionary

__all__ = ["GlobalTerms", "OneTerm"]


@dataclass(frozen=True, slots=True)
class OneTerm:
    """A `TermDictionary` of one term."""

    only: str

    def __len__(self) -> int:
        return 1

    def find(self, term: str) -> int:
        return 0 if term == self.only else -1

    def lower_bound(self, term: str) -> int:
        return int(self.only < term)

    def term(self, number: int) -> str:
        return self.only

    def terms(self, start: int, stop: int) -> Iterator[str]:
        return iter([self.only][start:stop])


class GlobalTerms:
    """The terms of all leaves, merged; None stands for a leaf that lacks the field.

    With one dictionary nothing is copied. With several their terms are held once more.
    """

    def __init__(self, dictionaries: Sequence[TermDictionary | None]) -> None:
        held = [dictionary for dictionary in dictionaries if dictionary is not None]
        self._only = held[0] if len(held) == 1 else None
        self._terms: list[str] = []
        self._numbers: list[Longs | None] = [None] * len(dictionaries)
        if len(held) > 1:
            self._merge(dictionaries)

    def _merge(self, dictionaries: Sequence[TermDictionary | None]) -> None:
        own = [[] if one is None else list(one.terms(0, len(one))) for one in dictionaries]
        self._terms = sorted(set().union(*own))
        number = {term: position for position, term in enumerate(self._terms)}
        self._numbers = [np.fromiter((number[term] for term in terms), np.int64) for terms in own]

    def __len__(self) -> int:
        return len(self._terms) if self._only is None else len(self._only)

    def of_leaf(self, leaf: int, ordinals: NDArray[np.int32]) -> Longs:
        """Numbers of a leaf's own dictionary as numbers of this one."""
        numbers = self._numbers[leaf]
        return ordinals.astype(np.int64) if numbers is None else numbers[ordinals]

    def term(self, number: int) -> str:
        return self._terms[number] if self._only is None else self._only.term(number)

    def lower_bound(self, term: str) -> int:
        """The number of the first term that is not before this one; len() where there is none."""
        if self._only is not None:
            return self._only.lower_bound(term)
        return bisect_left(self._terms, term)

    def find(self, term: str) -> int:
        """The number of a term, -1 where it is not there."""
        number = self.lower_bound(term)
        return number if number < len(self) and self.term(number) == term else -1
