"""What a change of the graph changes in a view of it, found from the change and the state it led to alone."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from pyoxigraph import DefaultGraph, NamedNode, Quad, Triple

from graphdb.access.annotations import ALLOWED_SID, REIFIES, VisibleQuads, has_annotations, is_annotating
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import has_hidden_quads
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.store.view import StoreView, Subject, Term

__all__ = ["NestedTerms", "hidden_by_annotations", "hidden_graphs", "step_of_view"]

_Placed = tuple[Triple, GraphName]


class NestedTerms:
    """The quads of a state whose triple term holds another: no index of the store leads to what is inside."""

    def __init__(self, quads: Iterable[Quad] = ()) -> None:
        """quads: those whose object is a triple term with a triple term in it; others are passed over."""
        self._holding: dict[_Placed, set[Quad]] = {}
        self.note(ChangeSet(added=tuple(quads)))

    def note(self, change: ChangeSet) -> None:
        """The state has changed so."""
        for quad in change.removed:
            for inner in _inner(quad):
                holding = self._holding.get(inner, set())
                holding.discard(quad)
                if not holding:
                    self._holding.pop(inner, None)
        for quad in change.added:
            for inner in _inner(quad):
                self._holding.setdefault(inner, set()).add(quad)

    def holding(self, triple: Triple, graph: GraphName) -> Iterable[Quad]:
        """The quads of the graph that hold the triple below their object."""
        return self._holding.get((triple, graph), ())


def _inner(quad: Quad) -> Iterator[_Placed]:
    term = quad.object
    while isinstance(term, Triple):
        term = term.object
        if isinstance(term, Triple):
            yield term, quad.graph_name


def step_of_view(
    visibility: Visibility, view: StoreView, parts: Sequence[ChangeSet], state: StoreView, nested: NestedTerms
) -> ChangeSet:
    """What makes a view, of the state before the parts, one of the state after them.

    nested is that of the state. Neither view nor state may change meanwhile.
    """
    visible_quads = VisibleQuads(visibility, state)
    removed: dict[Quad, None] = {}
    added: dict[Quad, None] = {}
    graphs = dict.fromkeys(_graphs(parts))
    for quad in dict.fromkeys(_candidates(visibility, parts, state, nested)):
        if not isinstance(quad.graph_name, DefaultGraph):
            graphs[quad.graph_name] = None
        is_seen = state.contains(quad) and visible_quads.sees(quad)
        if is_seen != view.contains(quad):
            (added if is_seen else removed)[quad] = None
    filled = {quad.graph_name for quad in added}
    dropped: list[NamedGraph] = []
    created: list[NamedGraph] = []
    for graph in graphs:
        exists = visibility.sees_graph(graph) and state.graph_exists(graph)
        if exists and graph not in filled and has_hidden_quads(state, graph):
            exists = any(quad not in removed for quad in view.quads_matching(None, None, None, graph))
        if exists != view.graph_exists(graph):
            (created if exists else dropped).append(graph)
    return ChangeSet(tuple(removed), tuple(added), tuple(dropped), tuple(created))


def hidden_graphs(visibility: Visibility, state: StoreView, view: StoreView) -> tuple[NamedGraph, ...]:
    """The graphs that a visibility shows by their names, and of which it sees nothing that they hold.

    view is of the state, but that these may be there.
    """
    return tuple(
        graph
        for graph in state.named_graphs()
        if visibility.sees_graph(graph)
        and has_hidden_quads(state, graph)
        and next(iter(view.quads_matching(None, None, None, graph)), None) is None
    )


def hidden_by_annotations(
    visibility: Visibility, state: StoreView, nested: NestedTerms, among: StoreView | None = None
) -> Iterator[Quad]:
    """The quads of the graphs which a visibility shows that it does not see; some more than once.

    among: those of another state, if they were there in this one; None: of this one. nested is that of the
    state, or of both.
    """
    looked_into = state if among is None else _Both(state, among)
    among = state if among is None else among
    visible_quads = VisibleQuads(visibility, state)
    for allowing in state.quads_matching(None, ALLOWED_SID, None, None):
        if not visibility.sees_graph(allowing.graph_name):
            continue
        concerned = _Concerned(looked_into, nested)
        said = concerned.annotating(allowing.subject, allowing.graph_name)
        yield from filter(among.contains, said)
        for quad in concerned.quads():
            if quad not in said and not visible_quads.sees(quad) and among.contains(quad):
                yield quad


def _candidates(
    visibility: Visibility, parts: Sequence[ChangeSet], state: StoreView, nested: NestedTerms
) -> Iterator[Quad]:
    """What may have become visible or hidden."""
    concerned = _Concerned(state, nested)
    changed = [
        quad
        for quad in chain.from_iterable(chain(part.removed, part.added) for part in parts)
        if visibility.sees_graph(quad.graph_name)
    ]
    yield from changed
    if not changed or not (has_annotations(state) or any(quad.predicate == ALLOWED_SID for quad in changed)):
        return  # nothing was hidden, and nothing is
    for quad in changed:
        if quad.predicate == ALLOWED_SID:
            concerned.annotating(quad.subject, quad.graph_name)
        elif quad.predicate == REIFIES:
            concerned.reifier(quad.subject, quad.graph_name)
    # a triple that was reified before by what annotates still, or did until now
    for quad in changed:
        reifier = quad.subject, quad.graph_name
        if quad.predicate == REIFIES and (concerned.annotates(*reifier) or is_annotating(state, *reifier)):
            concerned.term(quad.object, quad.graph_name)
    # what a reifier says is hidden with what it reifies, and what is said of that only while it is there
    for quad in changed:
        if concerned.has_reifier(quad.subject, quad.graph_name) or _is_reifying(state, quad):
            concerned.triple(quad.triple, quad.graph_name)
    yield from concerned.quads()


def _is_reifying(state: StoreView, quad: Quad) -> bool:
    found = state.quads_matching(quad.subject, REIFIES, None, quad.graph_name)
    return next(iter(found), None) is not None or is_annotating(state, quad.subject, quad.graph_name)


class _Both:
    """The quads of two states, found by their terms; those of both come twice."""

    def __init__(self, one: StoreView, other: StoreView) -> None:
        self._one, self._other = one, other

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`."""
        terms = subject, predicate, object_, graph
        return chain(self._one.quads_matching(*terms), self._other.quads_matching(*terms))


class _Concerned:
    """The quads that are hidden with a triple or a reifier, where these are hidden: found step by step."""

    def __init__(self, state: StoreView | _Both, nested: NestedTerms) -> None:
        self._state, self._nested = state, nested
        self._triples: dict[_Placed, None] = {}
        self._reifiers: dict[tuple[Subject, GraphName], list[Quad]] = {}  # what each says
        self._annotating: set[tuple[Subject, GraphName]] = set()
        self._ahead: list[_Placed] = []

    def annotating(self, reifier: Subject, graph: GraphName) -> Collection[Quad]:
        """A resource that annotates, or did: what it reifies, and what it says, which is returned."""
        self._annotating.add((reifier, graph))
        said = self.reifier(reifier, graph)
        for quad in said:
            if quad.predicate == REIFIES:
                self.term(quad.object, graph)
        return said

    def annotates(self, reifier: Subject, graph: GraphName) -> bool:
        """Whether it was named as one that annotates."""
        return (reifier, graph) in self._annotating

    def reifier(self, reifier: Subject, graph: GraphName) -> Collection[Quad]:
        """One of something that is concerned: what it says, which is returned."""
        if (reifier, graph) in self._reifiers:
            return self._reifiers[reifier, graph]
        said = self._reifiers[reifier, graph] = list(self._state.quads_matching(reifier, None, None, graph))
        for quad in said:
            self.triple(quad.triple, graph)
        return said

    def has_reifier(self, reifier: Subject, graph: GraphName) -> bool:
        """Whether it has come upon this one."""
        return (reifier, graph) in self._reifiers

    def term(self, term: Term, graph: GraphName) -> None:
        """What somebody reifies, which ought to be a triple term."""
        if isinstance(term, Triple):
            self.triple(term, graph)

    def triple(self, triple: Triple, graph: GraphName) -> None:
        """It need not be there."""
        if (triple, graph) not in self._triples:
            self._triples[triple, graph] = None
            self._ahead.append((triple, graph))

    def quads(self) -> Iterator[Quad]:
        """All of them, some of which may not be there; once."""
        while self._ahead:
            triple, graph = self._ahead.pop()
            yield Quad(triple.subject, triple.predicate, triple.object, graph)
            for holding in chain(
                self._state.quads_matching(None, None, triple, graph), self._nested.holding(triple, graph)
            ):
                self.triple(holding.triple, graph)
                if holding.predicate == REIFIES:
                    self.reifier(holding.subject, graph)


def _graphs(parts: Iterable[ChangeSet]) -> Iterator[NamedGraph]:
    for part in parts:
        yield from part.dropped_graphs
        yield from part.created_graphs
