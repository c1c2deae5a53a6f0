"""`DatasetCounts`: how many triples there are by predicate, class and graph, following a store.

What a change adds and removes says all but one thing of them: the predicates within classes. For these the
subjects that a change touches are read, and what has changed is undone in thought: so the counts before are
taken away, and those of now are added.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from graphdb.errors import LimitExceeded
from graphdb.model import ChangeSet, GraphName
from graphdb.store.view import Subject

__all__ = ["QUADS_MAX", "DatasetCounts"]

QUADS_MAX = 20_000
"""More quads are not read for the sake of a change: then all is counted anew."""

_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

Read: TypeAlias = Callable[[Subject, GraphName], Iterable[Quad]]


@dataclass(frozen=True)
class DatasetCounts:
    """Of one state. Keys are terms in N-Triples; pairs, by class and predicate, is None if it is not known.

    Classes are IRIs and blank nodes. A class counts once for each graph that says it of a resource, and so do
    its predicates in that graph.
    """

    predicates: Counter[str]
    classes: Counter[str]
    pairs: Counter[tuple[str, str]] | None
    graphs: Counter[str]

    def after(self, changes: Iterable[ChangeSet], read: Read) -> "DatasetCounts":
        """The counts after some changes, of which the last has led to the state that read is of: the quads of
        a subject in a graph. Raises LimitExceeded where too many quads would be read.
        """
        removed, added = _net(changes)
        predicates, classes, graphs = Counter(self.predicates), Counter(self.classes), Counter(self.graphs)
        for quads, sign in ((removed, -1), (added, 1)):
            for quad in quads:
                predicates[str(quad.predicate)] += sign
                if _says_class(quad):
                    classes[str(quad.object)] += sign
                if not isinstance(quad.graph_name, DefaultGraph):
                    graphs[str(quad.graph_name)] += sign
        pairs = None
        if self.pairs is not None:
            pairs = Counter(self.pairs)
            _follow_pairs(pairs, removed, added, read)
        return DatasetCounts(+predicates, +classes, None if pairs is None else +pairs, +graphs)


def _net(changes: Iterable[ChangeSet]) -> tuple[set[Quad], set[Quad]]:
    """What several changes in their order remove, and what they add."""
    removed, added = set[Quad](), set[Quad]()
    for change in changes:
        for quads, undone, done in ((change.removed, added, removed), (change.added, removed, added)):
            for quad in quads:
                if quad in undone:
                    undone.remove(quad)
                else:
                    done.add(quad)
    return removed, added


def _follow_pairs(pairs: Counter[tuple[str, str]], removed: set[Quad], added: set[Quad], read: Read) -> None:
    touched = dict.fromkeys((quad.subject, quad.graph_name) for quad in (*removed, *added))
    before: dict[tuple[Subject, GraphName], list[Quad]] = {}
    for quad in removed:
        before.setdefault((quad.subject, quad.graph_name), []).append(quad)
    left = QUADS_MAX
    for key in touched:
        now = []
        for quad in read(*key):
            now.append(quad)
            left -= 1
            if left < 0:
                raise LimitExceeded("quads of changed resources", QUADS_MAX + 1, QUADS_MAX)
        _count_pairs(pairs, [*(quad for quad in now if quad not in added), *before.get(key, ())], -1)
        _count_pairs(pairs, now, 1)


def _says_class(quad: Quad) -> bool:
    return quad.predicate == _TYPE and isinstance(quad.object, NamedNode | BlankNode)


def _count_pairs(pairs: Counter[tuple[str, str]], quads: Sequence[Quad], sign: int) -> None:
    """Those of one subject in one graph."""
    classes = [str(quad.object) for quad in quads if _says_class(quad)]
    if not classes:
        return
    for quad in quads:
        predicate = str(quad.predicate)
        for kind in classes:
            pairs[kind, predicate] += sign
