"""The terms of documents read from their sources, without what they have copied from each other.

What `significant_text` needs where the tokens of the index do not do: texts of other fields, and texts of
which whole passages (a header, a quotation, a notice at the end) stand in many documents.

Source: Elasticsearch's DuplicateByteSequenceSpotter and DeDuplicatingTokenFilter.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from graphdb.search.aggregations.aggregation import Rows, Scope
from graphdb.search.deadline import checkpoint
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Longs
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.mapping.wildcards import scalars_at

__all__ = ["SourceTexts"]

_PASSAGE = 6  # tokens that have to be the same, one after another


@dataclass(frozen=True, slots=True)
class SourceTexts:
    """spec: the field whose terms the values at some paths become. once: passages count once in a bucket."""

    spec: FieldSpec
    paths: tuple[str, ...]
    once: bool

    def found(self, scope: Scope, rows: Rows, numbers: Mapping[str, int]) -> tuple[Longs, Longs]:
        """(places in rows, numbers of terms): each term of each document once, but for those without a
        number.
        """
        members: list[int] = []
        terms: list[int] = []
        seen: dict[int, _Passages] = {}
        order = np.argsort(rows.owners, kind="stable")
        for place in order.tolist():
            checkpoint()
            owner = int(rows.owners[place])
            kept = set(self._tokens(scope, int(rows.docs[place]), seen.setdefault(owner, _Passages())))
            own = [numbers[term] for term in kept if term in numbers]
            members += [place] * len(own)
            terms += own
        found, named = np.array(members, np.int64), np.array(terms, np.int64)
        order = np.lexsort((named, found))
        return found[order], named[order]

    def _tokens(self, scope: Scope, doc: int, passages: "_Passages") -> Iterator[str]:
        for value in self._values(scope, doc):
            tokens = self._analyzed(str(value), scope)
            yield from passages.fresh(tokens) if self.once else tokens
        passages.end()

    def _values(self, scope: Scope, doc: int) -> list[Any]:
        leaf, local = scope.columns.locate(doc)
        parents = leaf.segment.parents
        while parents is not None and parents[local] >= 0:
            local = int(parents[local])
        source = orjson.loads(leaf.segment.source(local))
        found = [value for path in self.paths for value in scalars_at(path, source)]
        return [value for value in found if value is not None]

    def _analyzed(self, text: str, scope: Scope) -> Sequence[str]:
        if self.spec.storage is not Storage.TEXT:
            return [str(term_of(self.spec, text))]
        return scope.context.analyzers.analyzer(self.spec.analyzer).tokens(text)[0]


class _Passages:
    """Those that the documents of one bucket have had so far."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()
        self._last: deque[str] = deque(maxlen=_PASSAGE)

    def fresh(self, tokens: Sequence[str]) -> list[str]:
        """The tokens of a value that are in no passage that was there before.

        As in Elasticsearch, a passage may begin in the value before; if it ends in the first tokens of this
        one, all of these count as copied.
        """
        copied = [False] * len(tokens)
        for place, token in enumerate(tokens):
            self._last.append(token)
            if len(self._last) < _PASSAGE:
                continue
            passage = tuple(self._last)
            if passage in self._seen:
                first = max(0, place + 1 - _PASSAGE)
                last = max(place + 1, _PASSAGE)
                copied[first:last] = [True] * len(copied[first:last])
            self._seen.add(passage)
        return [token for token, is_copied in zip(tokens, copied, strict=True) if not is_copied]

    def end(self) -> None:
        """Of a document: passages do not go on in the next."""
        self._last.clear()
