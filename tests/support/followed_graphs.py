"""Small random graphs, what happens to them, and indexes that follow them as plain dictionaries."""

from collections.abc import Iterable, Sequence

import orjson
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QueryResultsFormat, Store

from graphdb.config.limits import GateLimits
from graphdb.planning.gate import check, read_query
from graphdb.search.following.shape import Row, Shape, carried_out, differences
from graphdb.search.segments.operations import Action, Operation

__all__ = [
    "EX",
    "RDF_TYPE",
    "SUBCLASS",
    "FollowedStore",
    "changes",
    "graphs",
    "tangled_changes",
    "tangled_graphs",
]

EX = "http://example.org/"
RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUBCLASS = NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")

_classes = st.sampled_from([NamedNode(f"{EX}{name}") for name in ("Work", "Painting")])
_nodes = st.sampled_from(
    [*(NamedNode(f"{EX}{name}") for name in "ab"), *(BlankNode(f"b{number}") for number in range(2))]
)
_links = st.sampled_from([NamedNode(f"{EX}{name}") for name in ("part", "made")])
_literals = st.sampled_from([Literal(7), Literal("Wort", language="de")])
_names = st.sampled_from([NamedNode(f"{EX}name"), NamedNode(f"{EX}other#name")])
_quads = st.one_of(
    st.builds(Quad, _nodes, st.just(RDF_TYPE), _classes),
    st.builds(Quad, _nodes, _links, _nodes),
    st.builds(Quad, _nodes, _names, _literals),
    st.builds(Quad, _classes, st.just(SUBCLASS), _classes),
)
graphs = st.lists(_quads, min_size=5, max_size=40)
_few = st.lists(_quads, max_size=3)
changes = st.lists(st.tuples(_few, _few), min_size=1, max_size=8)
"""What is removed, what is added, one after the other."""

_tangled_quads = st.one_of(
    _quads, st.builds(Quad, _nodes, _links, _nodes), st.builds(Quad, _nodes, _links, _literals)
)
tangled_graphs = st.lists(_tangled_quads, min_size=5, max_size=40)
_few_tangled = st.lists(_tangled_quads, max_size=3)
tangled_changes = st.lists(st.tuples(_few_tangled, _few_tangled), min_size=1, max_size=6)
"""With more links, and links to literals."""


class FollowedStore:
    """A store, and the documents of a shape in it."""

    def __init__(self, shape: Shape, quads: Iterable[Quad] = ()) -> None:
        self.store = Store()
        self.store.extend(quads)
        self.documents: dict[str, bytes] = {}
        self._shape = shape
        self._unfollowed: list[Quad] = []
        self.rebuild()

    def change(self, removed: Sequence[Quad], added: Sequence[Quad]) -> None:
        """Let it happen, and follow it. Raises what a shape does that cannot be: then the next change is
        followed together with this one.
        """
        for quad in removed:
            self.store.remove(quad)
        self.store.extend(added)
        self._unfollowed += [*removed, *added]
        ids = carried_out(self._shape.owners(self._unfollowed), self._select)
        if ids is None:
            self.rebuild()
        else:
            self._take(ids, carried_out(self._shape.documents(sorted(ids)), self._select))
        self._unfollowed.clear()

    def rebuild(self) -> None:
        """Compare with the whole graph."""
        selection = carried_out(self._shape.everything(), self._select)
        documents = selection.documents
        if documents is None:
            documents = carried_out(self._shape.documents(selection.ids), self._select)
        self._take({*selection.ids, *self.documents}, documents)

    def _take(self, ids: Iterable[str], documents: object) -> None:
        for operation in list(differences(ids, documents, self.documents.get)):  # type: ignore[arg-type]
            self._apply(operation)

    def _apply(self, operation: Operation) -> None:
        if operation.action is Action.DELETE:
            del self.documents[operation.doc_id]
        else:
            assert self.documents.get(operation.doc_id) != operation.body, "nothing was to be written"
            self.documents[operation.doc_id] = operation.body

    def _select(self, query: str) -> Sequence[Row]:
        check(read_query(query, None, GateLimits()), GateLimits())
        answer = self.store.query(query).serialize(format=QueryResultsFormat.JSON)  # type: ignore[arg-type]
        rows: Sequence[Row] = orjson.loads(bytes(answer or b""))["results"]["bindings"]
        return rows
