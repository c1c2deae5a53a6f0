"""`StoreRows`: the quads of a store as rows of text, from which a view is filled.

A row is what SPARQL's TSV makes of subject, predicate, object, and graph where there is one. In place of the
predicate stands its number, so that the engine does not look it up for each quad. Rows with the names of the
variables stand among the others.
"""

from collections import Counter
from collections.abc import Iterator
from typing import IO, Final

from pyoxigraph import (
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    Store,
    Variable,
)

__all__ = ["HEADER", "StoreRows"]

HEADER: Final = "?s"  # begins a row of names
_BATCH_QUADS: Final = 50_000
_WHERE: Final = ("?s ?p ?o", "GRAPH ?g { ?s ?p ?o }")
_SIZES = "SELECT ?p (COUNT(*) AS ?quads) {{ {where} }} GROUP BY ?p"
_ROWS = "SELECT ?s ?number ?o ?g {{ VALUES (?p ?number) {{ {values} }} {where} }}"
_ODD_ROWS = "SELECT ?s ?p ?o ?g {{ {where} }}"


class StoreRows:
    """Of a store that nobody changes. For any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.graphs = [str(graph) for graph in store.named_graphs()]
        self._where = _WHERE if self.graphs else _WHERE[:1]
        sizes: Counter[NamedNode] = Counter()
        for where in self._where:
            counted = _solutions(store.query(_SIZES.format(where=where)))
            sizes.update({predicate: int(quads.value) for predicate, quads in counted})
        self._sizes = sizes.most_common()
        self.predicates = [str(predicate) for predicate, _ in self._sizes]

    def batches(self) -> Iterator[range]:
        """The numbers of all predicates, some at a time, which together have enough quads for a query."""
        first = quads = 0
        for number, (_, size) in enumerate(self._sizes, start=1):
            quads += size
            if quads >= _BATCH_QUADS or number == len(self._sizes):
                yield range(first, number)
                first, quads = number, 0

    def write(self, numbers: range, output: IO[bytes]) -> None:
        """Write all rows of these predicates."""
        plain, odd = [], []
        for number in numbers:
            predicate, _ = self._sizes[number]
            if _is_plain(predicate):
                plain.append(f"({predicate} {number})")
            else:
                odd.append(predicate)
        for where in self._where:
            rows = self._store.query(_ROWS.format(values=" ".join(plain), where=where))
            _solutions(rows).serialize(output, QueryResultsFormat.TSV)
            for predicate in odd:
                rows = self._store.query(
                    _ODD_ROWS.format(where=where), substitutions={Variable("p"): predicate}
                )
                _solutions(rows).serialize(output, QueryResultsFormat.TSV)


def _solutions(found: QuerySolutions | QueryBoolean | QueryTriples) -> QuerySolutions:
    assert isinstance(found, QuerySolutions)
    return found


def _is_plain(predicate: NamedNode) -> bool:
    """Whether it may stand in a query. The others, which a strict parser refuses, have no number in rows."""
    try:
        NamedNode(predicate.value)
    except ValueError:
        return False
    return True
