"""Which triples of a store define a schema: its ontology and its shapes, in whichever graphs.

`schema_triples` reads them. `SchemaWatch` reports that a change may have touched them, so that the schema is
built again.
"""

from collections.abc import Callable, Iterable, Iterator

from pyoxigraph import BlankNode, NamedNode, Quad, Triple

from graphdb.errors import LimitExceeded
from graphdb.model import ChangeSet, GraphName
from graphdb.rdf.quad_lines import AddedLines, ClearedLines
from graphdb.shacl.shacl_names import (
    OWL,
    RDF_FIRST,
    RDF_NIL,
    RDF_REST,
    RDF_TYPE,
    RDFS,
    RDFS_CLASS,
    RDFS_SUBCLASS_OF,
    SH,
    Node,
    Term,
    sh,
)

__all__ = ["Matching", "SchemaWatch", "schema_triples", "touches_schema"]

# `StoreView.quads_matching`
Matching = Callable[
    [NamedNode | BlankNode | Triple | None, NamedNode | None, Term | None, GraphName | None], Iterable[Quad]
]

TRIPLES_MAX = 200_000

_COMMENT = NamedNode(RDFS + "comment")
_PREDICATES = frozenset(
    {
        RDFS_SUBCLASS_OF,
        *(NamedNode(RDFS + name) for name in ("domain", "range")),
        NamedNode(OWL + "unionOf"),
        *map(sh, ("property", "targetClass", "path", "inversePath", "node", "class", "in", "datatype")),
        *map(sh, ("minCount", "maxCount", "name", "description", "order", "nodeKind", "languageIn")),
        *map(sh, ("uniqueLang", "deactivated")),
    }
)
_KINDS = frozenset(
    {
        RDFS_CLASS,
        *(NamedNode(OWL + name) for name in ("Class", "FunctionalProperty", "ObjectProperty")),
        sh("NodeShape"),
    }
)
_LISTS = frozenset({NamedNode(OWL + "unionOf"), sh("in")})
# What also stands in data; a change of it may be one of the schema.
_PERHAPS = frozenset({_COMMENT, RDF_FIRST, RDF_REST, NamedNode(OWL + "imports")})
_LOOKED_AT_MAX = 10_000  # quads of one change; a larger one is taken for one of the schema


def schema_triples(matching: Matching, triples_max: int = TRIPLES_MAX) -> list[Triple]:
    """Everything that `read_ontology` and `read_shapes` may read, each triple once.

    In an order that the store chooses. Raises LimitExceeded.
    """
    found: dict[Triple, None] = {}
    for triple in _triples(matching):
        found[triple] = None
        if len(found) > triples_max:
            raise LimitExceeded("triples of ontology and shapes", len(found), triples_max)
    return list(found)


def _triples(matching: Matching) -> Iterator[Triple]:
    heads: list[Term] = []
    subjects: dict[Node, None] = {}
    for triple in _declarations(matching):
        if not isinstance(triple.subject, Triple):
            subjects[triple.subject] = None
        if triple.predicate in _LISTS:
            heads.append(triple.object)
        yield triple
    yield from _lists(matching, heads)
    for subject in subjects:
        yield from (quad.triple for quad in matching(subject, _COMMENT, None, None))


def _declarations(matching: Matching) -> Iterator[Triple]:
    for predicate in sorted(_PREDICATES, key=str):
        yield from (quad.triple for quad in matching(None, predicate, None, None))
    for kind in _kinds(matching):
        yield from (quad.triple for quad in matching(None, RDF_TYPE, kind, None))


def _kinds(matching: Matching) -> Iterator[NamedNode]:
    """What declares a class, classes of classes among it, or a property or shape."""
    yield from sorted(_KINDS, key=str)
    waiting, seen = [RDFS_CLASS, NamedNode(OWL + "Class")], set(_KINDS)
    while waiting:
        for quad in matching(None, RDFS_SUBCLASS_OF, waiting.pop(), None):
            if isinstance(quad.subject, NamedNode) and quad.subject not in seen:
                seen.add(quad.subject)
                waiting.append(quad.subject)
                yield quad.subject


def _lists(matching: Matching, heads: list[Term]) -> Iterator[Triple]:
    waiting, seen = list(heads), set()
    while waiting:
        node = waiting.pop()
        if node in seen or node == RDF_NIL or not isinstance(node, NamedNode | BlankNode):
            continue
        seen.add(node)
        yield from (quad.triple for quad in matching(node, RDF_FIRST, None, None))
        for quad in matching(node, RDF_REST, None, None):
            yield quad.triple
            waiting.append(quad.object)


class SchemaWatch:
    """Listens to a store: its state is another one once a change is visible. Written by one thread, read by
    any.
    """

    def __init__(self) -> None:
        self._state = self._taken = object()
        # of the change being applied: its parts where it comes as a whole; else what was found in them
        self._whole: tuple[ChangeSet, ...] = ()
        self._is_touched = self._is_unseen = False  # unseen: nobody held a state, so parts were not looked at

    @property
    def state(self) -> object:
        """Another object after every change that may have touched an ontology or shapes.

        Whoever takes it before reading the store, and reads again when it is another one, misses nothing.
        """
        state = self._state
        self._taken = state
        return state

    @property
    def _is_taken(self) -> bool:
        """Whether somebody may hold the present state: whom else would a change concern?"""
        return self._taken is self._state

    def touch(self) -> None:
        """The store may hold another schema."""
        self._state = object()

    def applying(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """See `graphdb.store.quad_store.ChangeListener`."""
        self._is_touched = self._is_unseen = False
        self._whole = changes if isinstance(changes, tuple) else ()
        return self._whole or self._passing(changes)

    def applying_lines(self, lines: AddedLines | ClearedLines) -> None:
        """See `graphdb.store.quad_store.ChangeListener`. So many quads are taken for some of the schema."""
        self._is_touched, self._is_unseen, self._whole = True, False, ()

    def _passing(self, changes: Iterable[ChangeSet]) -> Iterator[ChangeSet]:
        for change in changes:
            self._is_unseen = self._is_unseen or not self._is_taken
            self._is_touched = self._is_touched or (not self._is_unseen and touches_schema(change))
            yield change

    def applied(self) -> None:
        """See `graphdb.store.quad_store.ChangeListener`."""
        whole, self._whole = self._whole, ()
        if self._is_touched or (self._is_taken and (self._is_unseen or any(map(touches_schema, whole)))):
            self.touch()


def touches_schema(change: ChangeSet) -> bool:
    """Whether a change may have touched an ontology or shapes."""
    if change.affected_triples > _LOOKED_AT_MAX:
        return True
    quads = (*change.removed, *change.added)
    predicates = {quad.predicate for quad in quads}  # mostly one or two
    if RDF_TYPE in predicates:
        kinds = (quad.object for quad in quads if quad.predicate == RDF_TYPE)
        if any(
            isinstance(kind, NamedNode) and (kind in _KINDS or kind.value.startswith(SH)) for kind in kinds
        ):
            return True
    # what shapes demand beyond what a schema shows counts as well: mutations are validated by it
    return any(
        predicate in _PREDICATES or predicate in _PERHAPS or predicate.value.startswith(SH)
        for predicate in predicates - {RDF_TYPE}
    )
