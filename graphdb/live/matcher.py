"""`Matcher`: which live queries a change concerns, and what it means to each of them.

It holds a copy of the graph as it was before the change, and takes it one change further. What a change costs
is in proportion to the resources that it touches and the queries about their classes that it may concern.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.errors import LimitExceeded, RequestError
from graphdb.live.neighbourhood import Around, TooFar, Triple
from graphdb.live.notifications import Notification
from graphdb.live.records import Star, local_name
from graphdb.live.sparql_queries import WholeQuery
from graphdb.live.table_queries import Field, Table, TableQuery
from graphdb.model import ChangeSet, GraphName
from graphdb.store.quad_store import QuadStore

__all__ = ["AroundQuery", "FollowedQuery", "LiveQuery", "Match", "Matcher", "Unfollowable"]


class AroundQuery(Protocol):
    """A query that looks at the triples around a change. Equal ones are matched once."""

    @property
    def graph(self) -> NamedNode | None:
        """The graph that it asks; None is the default graph."""

    @property
    def predicates(self) -> frozenset[str] | None:
        """The IRIs of the predicates of triples that may concern it; None: any."""

    @property
    def whole(self) -> WholeQuery | None:
        """The same records by evaluating it again, where that is offered."""

    def notifications(self, index: int, around: Around) -> Iterable[Notification]:
        """What a change, of the log index, means to it. Raises TooFar, RequestError."""

    def __hash__(self) -> int: ...


FollowedQuery: TypeAlias = TableQuery | AroundQuery
LiveQuery: TypeAlias = FollowedQuery | WholeQuery
Match: TypeAlias = "tuple[FollowedQuery, Notification | Unfollowable]"


@dataclass(frozen=True, slots=True)
class Unfollowable:
    """In place of what a change means to a query: it cannot be found out near the change, and the query is
    not followed any more. then: how it goes on, or why it does not.
    """

    index: int
    then: WholeQuery | RequestError


_LOOKS_MAX = 20_000  # triples that one query looks at for one change, and some more for each of a large one
_LOOKS_A_TRIPLE = 30


class Matcher:
    """Used by one thread at a time."""

    def __init__(self, quads: QuadStore, *, union_default_graph: bool = False) -> None:
        """quads is this matcher's own, and no other object changes it."""
        self._quads = quads
        self._graph = None if union_default_graph else DefaultGraph()
        self._tables: dict[Table, _Watched] = {}
        self._around: dict[NamedNode | None, _WatchedAround] = {}  # by the graph that is asked

    @property
    def quads(self) -> QuadStore:
        """The present state, for readers only."""
        return self._quads

    def watch(self, query: FollowedQuery) -> None:
        """Match it from the next change on."""
        if isinstance(query, TableQuery):
            self._tables.setdefault(query.table, _Watched()).add(query)
        else:
            self._around.setdefault(query.graph, _WatchedAround()).add(query)

    def forget(self, query: FollowedQuery) -> None:
        """Do not match it any more."""
        if isinstance(query, TableQuery):
            watched = self._tables[query.table]
            watched.remove(query)
            if watched.is_empty:
                del self._tables[query.table]
        else:
            around = self._around[query.graph]
            around.remove(query)
            if around.is_empty:
                del self._around[query.graph]

    def step(self, index: int, parts: Sequence[ChangeSet]) -> list[Match]:
        """Go on to the state after the change of one entry, which may be in parts, and say what it means."""
        subjects = self._touched(parts) if self._tables else ()
        before = [(subject, self._star(subject)) for subject in subjects]
        self._quads.apply_many(parts) if len(parts) > 1 else self._quads.apply(parts[0])
        matches: list[Match] = []
        for subject, earlier in before:
            matches += self._of_resource(index, earlier, self._star(subject))
        for name, watched in self._around.items():
            graph = self._graph if name is None else name
            matches += self._around_change(index, parts, graph, watched)
        return matches

    def go_back(self, parts: Sequence[ChangeSet]) -> None:
        """To the state before a change that is in the present one."""
        for part in reversed(parts):
            self._quads.apply(ChangeSet(part.added, part.removed, part.created_graphs, part.dropped_graphs))

    def _touched(self, parts: Iterable[ChangeSet]) -> Iterable[Any]:
        """The subjects of what has changed where queries look, in the order of the change."""
        found: dict[Any, None] = {}
        for part in parts:
            for quads in (part.removed, part.added):
                found.update(dict.fromkeys(quad.subject for quad in quads if self._sees(quad)))
        return found

    def _sees(self, quad: Quad) -> bool:
        return _is_of(self._graph, quad)

    def _star(self, subject: Any) -> Star:
        return Star.of(subject, self._quads.quads_matching(subject, None, None, self._graph))

    def _around_change(
        self, index: int, parts: Sequence[ChangeSet], graph: GraphName | None, watched: "_WatchedAround"
    ) -> Iterator[Match]:
        added, removed = self._net(parts, graph)

        def find(subject: Any, predicate: Any, object_: Any) -> Iterator[Triple]:
            return self._triples(subject, predicate, object_, graph)

        for query in watched.about({triple[1].value for triple in (*added, *removed)}):
            looks = _LOOKS_MAX + _LOOKS_A_TRIPLE * (len(added) + len(removed))
            try:
                # all of a change, or nothing of it
                found = list(query.notifications(index, Around(find, added, removed, looks)))
                yield from ((query, _written(one)) for one in found)
            except TooFar:
                too_far = LimitExceeded("triples near one change", looks + 1, looks)
                yield query, Unfollowable(index, query.whole or too_far)
            except RequestError as error:
                yield query, Unfollowable(index, error)

    def _net(self, parts: Sequence[ChangeSet], graph: GraphName | None) -> tuple[list[Triple], list[Triple]]:
        """The triples that are there now and were not before, and the other way round."""
        added = [quad for part in parts for quad in part.added if _is_of(graph, quad)]
        removed = [quad for part in parts for quad in part.removed if _is_of(graph, quad)]
        if graph is not None:
            both = set(added) & set(removed) if len(parts) > 1 else ()  # one part took what another gave
            return (
                [_triple(quad) for quad in added if quad not in both],
                [_triple(quad) for quad in removed if quad not in both],
            )
        # a triple may stand in several graphs
        new, gone = set(added), {_triple(quad) for quad in removed}
        was = {
            triple: triple in gone or any(quad not in new for quad in self._quads_of(triple))
            for triple in dict.fromkeys(map(_triple, added))
        }
        is_now = {triple: any(self._quads_of(triple)) for triple in gone}
        return (
            [triple for triple, was_there in was.items() if not was_there],
            [triple for triple in dict.fromkeys(map(_triple, removed)) if not is_now[triple]],
        )

    def _quads_of(self, triple: Triple) -> Iterator[Quad]:
        return self._quads.quads_matching(*triple, None)

    def _triples(
        self, subject: Any, predicate: Any, object_: Any, graph: GraphName | None
    ) -> Iterator[Triple]:
        if isinstance(subject, Literal) or not isinstance(predicate, NamedNode | None):
            return
        last = None
        for quad in self._quads.quads_matching(subject, predicate, object_, graph):
            triple = _triple(quad)
            if triple != last:  # those of several graphs come more than once, which costs and does no harm
                yield triple
            last = triple

    def _of_resource(self, index: int, before: Star, after: Star) -> Iterator[Match]:
        if before == after:
            return
        classes = dict.fromkeys([*before.classes, *after.classes])
        tables = dict.fromkeys(
            table
            for iri in classes
            if isinstance(iri, str)
            for table in (Table(iri, is_iri=True), Table(local_name(iri)))
            if table in self._tables
        )
        for table in tables:
            for query in self._tables[table].queries(before, after):
                found = query.difference(before, after)
                if found is not None:
                    yield query, _written(Notification(index, found.action, found.result))


def _written(notification: Notification) -> Notification:
    _ = notification.tail  # here, and not on whichever thread hands it on
    return notification


def _is_of(graph: GraphName | None, quad: Quad) -> bool:
    return graph is None or quad.graph_name == graph


def _triple(quad: Quad) -> Triple:
    return quad.subject, quad.predicate, quad.object


class _WatchedAround:
    """Queries of one graph that look around a change, by the predicates that concern them."""

    def __init__(self) -> None:
        self._any: dict[AroundQuery, None] = {}
        self._by_predicate: dict[str, dict[AroundQuery, None]] = {}

    @property
    def is_empty(self) -> bool:
        return not self._any and not self._by_predicate

    def add(self, query: AroundQuery) -> None:
        if query.predicates is None:
            self._any[query] = None
        for predicate in query.predicates or ():
            self._by_predicate.setdefault(predicate, {})[query] = None

    def remove(self, query: AroundQuery) -> None:
        self._any.pop(query, None)
        for predicate in query.predicates or ():
            queries = self._by_predicate.get(predicate, {})
            queries.pop(query, None)
            if not queries:
                self._by_predicate.pop(predicate, None)

    def about(self, predicates: Iterable[str]) -> list[AroundQuery]:
        """Those that a change of triples with these predicates may concern, each once."""
        found = dict(self._any)
        for predicate in predicates:
            found.update(self._by_predicate.get(predicate, {}))
        return list(found)


class _Watched:
    """The queries of one table: those that name a value of a field are found by it."""

    def __init__(self) -> None:
        self._any: dict[TableQuery, None] = {}
        self._anchored: dict[Field, dict[Any, dict[TableQuery, None]]] = {}

    @property
    def is_empty(self) -> bool:
        return not self._any and not self._anchored

    def add(self, query: TableQuery) -> None:
        if query.anchor is None:
            self._any[query] = None
            return
        field, values = query.anchor
        by_value = self._anchored.setdefault(field, {})
        for value in values:
            by_value.setdefault(value, {})[query] = None

    def remove(self, query: TableQuery) -> None:
        if query.anchor is None:
            del self._any[query]
            return
        field, values = query.anchor
        by_value = self._anchored[field]
        for value in values:
            if value in by_value:
                by_value[value].pop(query, None)
                if not by_value[value]:
                    del by_value[value]
        if not by_value:
            del self._anchored[field]

    def queries(self, *stars: Star) -> list[TableQuery]:
        """Those of which one of these may be a row, each once."""
        found = dict(self._any)
        for field, by_value in self._anchored.items():
            for star in stars:
                for value in field.values(star):
                    found.update(by_value.get(value, {}))
        return list(found)
