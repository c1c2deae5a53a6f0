"""`kg_boost`: scores of documents that speak of important resources."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from graphdb.search.aggregations.scope import Scope
from graphdb.search.deadline import checkpoint
from graphdb.search.extension.page_rank import PageRanks
from graphdb.search.extension.request import BoostOption
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query.tree import SCORE_MAX
from graphdb.search.results.field_values import values_at
from graphdb.search.results.selection import Found
from graphdb.search.segment import Bools

__all__ = ["boosted"]

_AT_ONCE = 1_000  # documents between two looks at the clock


def boosted(option: BoostOption, ranks: PageRanks, scope: Scope, found: Found) -> Found:
    """The same documents; the scores of those with an important IRI in the field are multiplied."""
    if found.scores is None or not len(found.docs):
        return found
    important = _Important(option, ranks, scope).of(found)
    factors = np.where(important, option.factor, 1.0)
    scores = np.minimum(found.scores.astype(np.float64) * factors, SCORE_MAX).astype(np.float32)
    return Found(found.docs, scores)


@dataclass(frozen=True, slots=True)
class _Important:
    option: BoostOption
    ranks: PageRanks
    scope: Scope

    def of(self, found: Found) -> Bools:
        """Which documents of found have an IRI that is important enough."""
        spec = self.scope.context.mapping.field(self.option.field)
        if spec is not None and spec.storage is Storage.TERMS and spec.doc_values and spec.nested is None:
            return self._by_column(spec, found)
        return self._by_documents(found)

    def _by_column(self, spec: FieldSpec, found: Found) -> Bools:
        """Each term is looked up once, however many documents have it."""
        values = self.scope.columns.ordinals(spec, found.docs)
        dictionary = self.scope.columns.dictionary(spec)
        numbers, inverse = np.unique(values.data, return_inverse=True)
        enough = self.ranks.of(dictionary.term(int(number)) for number in numbers) >= self.option.least
        important = np.zeros(len(found.docs), np.bool_)
        important[values.rows[enough[inverse]]] = True
        return important

    def _by_documents(self, found: Found) -> Bools:
        """From `_id`, or the documents themselves, for a field without a column of terms."""
        important = np.zeros(len(found.docs), np.bool_)
        for start in range(0, len(found.docs), _AT_ONCE):
            checkpoint()
            rows: list[int] = []
            iris: list[str] = []
            for row, doc in enumerate(found.docs[start : start + _AT_ONCE].tolist(), start):
                for iri in self._iris(doc):
                    rows.append(row)
                    iris.append(iri)
            enough = self.ranks.of(iris) >= self.option.least
            important[np.array(rows, np.int64)[enough]] = True
        return important

    def _iris(self, doc: int) -> Iterator[str]:
        leaf, number = self.scope.columns.locate(doc)
        if self.option.field == "_id":
            yield leaf.segment.doc_id(number)
            return
        source: Any = orjson.loads(leaf.segment.source(number))
        for value in values_at(source, self.option.field):
            if isinstance(value, str):
                yield value
