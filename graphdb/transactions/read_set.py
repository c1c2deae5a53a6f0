"""`ReadSet`: what a transaction has read, as quad patterns; whether a change concerns it."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyoxigraph import DefaultGraph, NamedNode, Quad

from graphdb.geo.entailment import is_derived
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.sparql.algebra import (
    Algebra,
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    Path,
    Project,
    Service,
    Union,
)
from graphdb.sparql.patterns import AlternativePath, InversePath, RepeatedPath, SequencePath
from graphdb.sparql.syntax import (
    AddGraph,
    ClearGraph,
    CopyGraph,
    CreateGraph,
    DeleteData,
    DeleteWhere,
    DropGraph,
    GraphTarget,
    InsertData,
    Modify,
    MoveGraph,
    Operation,
    Query,
    Update,
)
from graphdb.sparql.terms import Iri
from graphdb.sparql.translation import abstract_query, pattern_of_group, pattern_of_quads
from graphdb.sparql.tree_walk import parts_of
from graphdb.transactions.read_pattern import ReadPattern

__all__ = ["PATTERNS_MAX", "ReadSet"]

PATTERNS_MAX = 1_000  # beyond it everything counts as read


EVERYTHING = ReadPattern()


class _Unknown(Exception):
    """What a query reads cannot be told by patterns."""


class ReadSet:
    """Belongs to one transaction. It may hold more than was read, and never less.

    Objects of a query's patterns do not count, nor what its filters say: what it reads is known by subject,
    predicate and graph alone. The names of graphs are read where the quads of whole graphs are.
    """

    def __init__(self, patterns: Iterable[ReadPattern] = ()) -> None:
        self._patterns: dict[ReadPattern, None] = {}
        for pattern in patterns:
            self.note(pattern)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    @property
    def patterns(self) -> tuple[ReadPattern, ...]:
        """All of them, for another process."""
        return tuple(self._patterns)

    def note(self, pattern: ReadPattern) -> None:
        """These quads were read, whether there are any or not."""
        if EVERYTHING in self._patterns:
            return
        if pattern == EVERYTHING or len(self._patterns) >= PATTERNS_MAX:
            self._patterns = {EVERYTHING: None}
        else:
            self._patterns[pattern] = None

    def note_query(self, query: Query, *, has_dataset: bool, unites_graphs: bool) -> None:
        """A query was evaluated. has_dataset: its request names the graphs. unites_graphs: its default graph
        is the union of all.
        """
        if query.form == "DESCRIBE":
            self.note(EVERYTHING)
            return
        is_any = has_dataset or unites_graphs or bool(query.dataset)
        self._note_pattern(abstract_query(query).pattern, None if is_any else DefaultGraph())

    def note_update(self, update: Update, *, has_dataset: bool, unites_graphs: bool) -> None:
        """The operations of an update were planned. What they write is not read by that."""
        for operation in update.operations:
            self._note_operation(operation, is_any=has_dataset or unites_graphs)

    def _note_operation(self, operation: Operation, *, is_any: bool) -> None:
        match operation:
            case InsertData() | DeleteData():
                return
            case DeleteWhere(pattern=pattern):
                self._note_pattern(pattern_of_quads(pattern), None if is_any else DefaultGraph())
            case Modify(pattern=pattern, using=using, with_graph=with_graph):
                default: GraphName = DefaultGraph() if with_graph is None else NamedNode(with_graph.value)
                self._note_pattern(pattern_of_group(pattern), None if is_any or using else default)
            case ClearGraph(target) | DropGraph(target):
                self._note_target(target)
            case CopyGraph(source, target) | MoveGraph(source, target) | AddGraph(source, target):
                self._note_target(source)
                self._note_target(target)
            case CreateGraph(graph):
                self.note(ReadPattern(graph=NamedNode(graph.value)))
            case _:
                self.note(EVERYTHING)

    def _note_target(self, target: GraphTarget) -> None:
        if target.kind == "graph" and target.graph is not None:
            self.note(ReadPattern(graph=NamedNode(target.graph.value)))
        elif target.kind == "default":
            self.note(ReadPattern(graph=DefaultGraph()))
        else:
            self.note(EVERYTHING)

    def _note_pattern(self, root: Algebra, default_graph: GraphName | None) -> None:
        try:
            found = list(_patterns(root, default_graph))
        except _Unknown:
            found = [EVERYTHING]
        for pattern in found:
            self.note(pattern)

    def concerns(self, quad: Quad) -> bool:
        """Whether the quad is one of those that were asked for."""
        return any(pattern.matches(quad) for pattern in self._patterns)

    def concerns_graph(self, graph: NamedGraph) -> bool:
        """Whether it was asked whether there is such a graph."""
        return any(
            not pattern.has_terms and (pattern.graph is None or pattern.graph == graph)
            for pattern in self._patterns
        )

    def is_touched_by(self, change: ChangeSet) -> bool:
        """Whether what was read may be another after the change."""
        return (
            any(map(self.concerns, change.removed))
            or any(map(self.concerns, change.added))
            or any(map(self.concerns_graph, change.dropped_graphs))
            or any(map(self.concerns_graph, change.created_graphs))
        )


def _patterns(root: Algebra, default_graph: GraphName | None) -> Iterator[ReadPattern]:
    """Raises _Unknown."""
    waiting: list[tuple[Any, GraphName | None]] = [(root, default_graph)]
    while waiting:
        node, graph = waiting.pop()
        match node:
            case Service():
                continue  # another store's
            case Bgp(triples=triples):
                for triple in triples:
                    if is_derived(triple):
                        raise _Unknown
                    predicate = _iri(triple.predicate)
                    yield ReadPattern(_iri(triple.subject), predicate, None, graph)
            case Path(predicate=path):
                yield from (ReadPattern(None, step, None, graph) for step in _steps(path))
            case Graph(name=name, pattern=pattern):
                if not _needs_triple(pattern):
                    raise _Unknown  # the names of graphs make solutions too
                waiting.append((pattern, _iri(name)))
            case _:
                waiting += [(part, graph) for part in parts_of(node)]


def _iri(term: Any) -> NamedNode | None:
    return NamedNode(term.value) if isinstance(term, Iri) else None


def _steps(path: Any) -> Iterator[NamedNode]:
    """The predicates of a path. Raises _Unknown where it leads over others, or to any node without a step."""
    match path:
        case Iri(value=value):
            yield NamedNode(value)
        case InversePath(path=inner):
            yield from _steps(inner)
        case RepeatedPath(path=inner, modifier="+"):
            yield from _steps(inner)
        case SequencePath(steps=parts) | AlternativePath(choices=parts):
            for part in parts:
                yield from _steps(part)
        case _:
            raise _Unknown


def _needs_triple(node: Any) -> bool:
    """Whether each solution has a triple of its own. False where that is not sure."""
    match node:
        case Bgp(triples=triples):
            return bool(triples)
        case Path():
            return True
        case Join(left=left, right=right):
            return _needs_triple(left) or _needs_triple(right)
        case LeftJoin(left=left) | Minus(left=left):
            return _needs_triple(left)
        case Union(branches=branches):
            return all(map(_needs_triple, branches))
        case Filter(pattern=inner) | Extend(pattern=inner) | Project(pattern=inner) | Distinct(pattern=inner):
            return _needs_triple(inner)
    return False
