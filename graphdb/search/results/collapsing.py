"""`collapse`: the best hit for each value of a field."""

from typing import Any

import numpy as np

from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import aggregatable
from graphdb.search.errors import illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.lookup import METADATA
from graphdb.search.mapping.values import shown
from graphdb.search.results.selection import Sorting
from graphdb.search.segment import Longs

__all__ = ["Groups"]


_SINGLE = ("boolean", "text", *METADATA)  # whose values groups are not made of


class Groups:
    """Which group each of some documents is in, by number; all without a value are one group."""

    def __init__(self, scope: Scope, path: str, docs: Longs) -> None:
        spec = aggregatable(scope.context, path)
        if spec is None:
            raise illegal_argument(f"no mapping found for `{path}` in order to collapse on")
        if spec.storage not in (Storage.TERMS, Storage.INTS, Storage.FLOATS) or spec.type in _SINGLE:
            raise illegal_argument(
                f"collapse is not supported for the field [{path}] of the type [{spec.type}]"
            )
        self._spec: FieldSpec = spec
        is_terms = spec.storage is Storage.TERMS
        values = scope.columns.ordinals(spec, docs) if is_terms else scope.columns.exact(spec, docs)
        if len(np.unique(values.rows)) < len(values.rows):
            raise illegal_argument(
                f"failed to collapse on field [{path}]: multi-valued fields cannot be collapsed on"
            )
        self._dictionary = scope.columns.dictionary(spec) if is_terms else None
        self._keys, inverse = np.unique(values.data, return_inverse=True)
        self.numbers = np.full(len(docs), len(self._keys), np.int64)
        self.numbers[values.rows] = inverse

    def leaders(self, sorting: Sorting, rows: Longs) -> Longs:
        """Of rows in order, the first of each group."""
        _, first = np.unique(self.numbers[rows], return_index=True)
        return rows[np.sort(first)]

    def members(self, row: int) -> Longs:
        """All rows in the group of one."""
        return np.flatnonzero(self.numbers == self.numbers[row])

    def value(self, row: int) -> Any:
        """The value of a row's group as `fields` shows it, None for the group without."""
        number = int(self.numbers[row])
        if number == len(self._keys):
            return None
        key = self._keys[number].item() + (2**63 if self._spec.type == "unsigned_long" else 0)
        return shown(self._spec, key if self._dictionary is None else self._dictionary.term(key), None)
