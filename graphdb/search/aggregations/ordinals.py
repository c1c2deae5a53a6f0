"""What ordinals stand for: the terms of a field, or the distinct numbers that some documents have."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphdb.search.aggregations.columns import GlobalTerms, Numbers
from graphdb.search.segment import Doubles, Longs

__all__ = ["NumberOrdinals", "Ordinals", "TermOrdinals"]


class Ordinals(Protocol):
    """Values by ordinal, from 0, as Lucene numbers the values of a field."""

    def __len__(self) -> int: ...
    def value(self, number: int) -> Any:
        """The value in its stored form."""

    def places(self, numbers: Longs) -> Doubles:
        """Where each stands among the others, to sort by."""


@dataclass(frozen=True, slots=True)
class NumberOrdinals:
    """Distinct numbers, ascending."""

    values: Numbers

    @staticmethod
    def of(data: Numbers) -> "NumberOrdinals":
        return NumberOrdinals(np.unique(data))

    def __len__(self) -> int:
        return len(self.values)

    def value(self, number: int) -> Any:
        return self.values[number].item()

    def find(self, data: Numbers) -> Longs:
        return np.searchsorted(self.values, data)

    def places(self, numbers: Longs) -> Doubles:
        return numbers.astype(np.float64)


@dataclass(frozen=True, slots=True)
class TermOrdinals:
    """The terms of a field, and one more where `missing` is a term that no document has."""

    terms: GlobalTerms | None
    missing: str | None

    @property
    def _held(self) -> int:
        return 0 if self.terms is None else len(self.terms)

    @property
    def missing_number(self) -> int:
        """The number of `missing`."""
        found = -1 if self.terms is None or self.missing is None else self.terms.find(self.missing)
        return found if found >= 0 else self._held

    def __len__(self) -> int:
        return self._held + (self.missing is not None and self.missing_number == self._held)

    def value(self, number: int) -> Any:
        return self.missing if self.terms is None or number >= self._held else self.terms.term(number)

    def places(self, numbers: Longs) -> Doubles:
        places = numbers.astype(np.float64)
        if self.terms is not None and self.missing is not None:
            places[numbers >= self._held] = self.terms.lower_bound(self.missing) - 0.5
        return places
