"""What the sources of a schema declare about classes: an ontology, SHACL shapes, or the data themselves.

Each source is read leniently: what GraphQL cannot show is passed over.
Sources: the interface's table of RDF concepts; RDF Schema 1.1 sections 2 and 3, OWL 2 for unions; SHACL
sections 2 and 4.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.errors import MalformedShapes
from graphdb.graphql.model import Path
from graphdb.graphql.modelling import Drafts, FieldDraft, TypeDraft, TypeKey, with_field
from graphdb.graphql.scalars import iri_text, is_iri
from graphdb.shacl.shacl_names import (
    OWL,
    RDF,
    RDF_TYPE,
    RDFS,
    RDFS_CLASS,
    RDFS_SUBCLASS_OF,
    XSD,
    Node,
    Term,
    sh,
)
from graphdb.shacl.shapes_graph import ShapesGraph

__all__ = ["CLASSES", "classes_of", "description_of", "inferred", "read_ontology", "read_shapes", "samples"]

# An ontology (RDFS, OWL): properties by their domain and range. Restrictions, and classes without a name, are
# passed over.

_CLASSES = (NamedNode(OWL + "Class"), RDFS_CLASS)
_DOMAIN, _RANGE = NamedNode(RDFS + "domain"), NamedNode(RDFS + "range")
_UNION = NamedNode(OWL + "unionOf")
_FUNCTIONAL = NamedNode(OWL + "FunctionalProperty")
_OBJECT_PROPERTY = NamedNode(OWL + "ObjectProperty")
_COMMENT = NamedNode(RDFS + "comment")
_LITERAL = NamedNode(RDFS + "Literal")
_BUILT_IN = (RDF, RDFS, OWL, XSD, "http://www.w3.org/ns/shacl#")
_LITERALS = (XSD, RDF)  # namespaces of datatypes; a range in any other is a class


def read_ontology(graph: ShapesGraph) -> Drafts:
    """Every named class that is declared or is the domain of a property."""
    found: dict[TypeKey, TypeDraft] = {}
    for cls in _classes(graph):
        parents = (one for one in graph.objects(cls, RDFS_SUBCLASS_OF) if isinstance(one, NamedNode))
        found[cls] = TypeDraft(
            cls,
            parents=tuple(one for one in parents if not is_built_in(one) and one != cls),
            description=description_of(graph, cls, _COMMENT),
        )
    for predicate in sorted(_properties(graph), key=lambda one: one.value):
        draft = _field(graph, predicate)
        for domain in graph.objects(predicate, _DOMAIN):
            for cls in _named(graph, domain):
                found[cls] = with_field(found.get(cls, TypeDraft(cls)), draft)
    return found


def description_of(graph: ShapesGraph, subject: NamedNode | BlankNode, predicate: NamedNode) -> str | None:
    """A text for people: the one in English or in no language, else the first by language."""
    texts = [one for one in graph.objects(subject, predicate) if isinstance(one, Literal)]
    ordered = sorted(texts, key=lambda one: (one.language not in (None, "en"), one.language or "", one.value))
    return ordered[0].value if ordered else None


def is_built_in(node: NamedNode) -> bool:
    """Whether it is a term of RDF, RDFS, OWL, XSD or SHACL, which no type is made of."""
    return node.value.startswith(_BUILT_IN)


def _classes(graph: ShapesGraph) -> Iterator[NamedNode]:
    for kind in _CLASSES:
        for node in graph.subjects(RDF_TYPE, kind):
            if isinstance(node, NamedNode) and not is_built_in(node):
                yield node


def _properties(graph: ShapesGraph) -> Iterator[NamedNode]:
    for node in graph.subjects_with([_DOMAIN]):
        if isinstance(node, NamedNode) and not is_built_in(node):
            yield node


def _field(graph: ShapesGraph, predicate: NamedNode) -> FieldDraft:
    ranges = [
        one for given in graph.objects(predicate, _RANGE) for one in _named(graph, given, built_in=True)
    ]
    datatypes = frozenset(one for one in ranges if one == _LITERAL or one.value.startswith(_LITERALS))
    references = tuple(one for one in ranges if one not in datatypes and not is_built_in(one))
    kinds = graph.objects(predicate, RDF_TYPE)
    return FieldDraft(
        Path(predicate.value),
        datatypes=datatypes,
        references=references,
        only_iris=not datatypes and not references and (bool(ranges) or _OBJECT_PROPERTY in kinds),
        at_most_one=_FUNCTIONAL in kinds,
        description=description_of(graph, predicate, _COMMENT),
    )


def _named(graph: ShapesGraph, node: Term, built_in: bool = False) -> Iterable[NamedNode]:
    """The class, or the classes of a union (`owl:unionOf`)."""
    if isinstance(node, NamedNode):
        return [node] if built_in or not is_built_in(node) else []
    if not isinstance(node, BlankNode):
        return []
    try:
        members = [one for head in graph.objects(node, _UNION) for one in graph.members(head, node, "")]
    except MalformedShapes:
        return []
    return [one for one in members if isinstance(one, NamedNode) and (built_in or not is_built_in(one))]


# Data without ontology or shapes: what a sample of each class's resources has.
#
# First `CLASSES` is asked, then each of `samples`; `inferred` makes drafts of the answers. All fields are
# lists of values that may be missing: a sample cannot tell otherwise.

_CLASSES_MAX = 200
_RESOURCES_MAX = 200  # of each class
_CLASSES_A_QUERY = 20  # which keeps within the gate

CLASSES = f"SELECT DISTINCT ?c WHERE {{ ?s a ?c FILTER(isIRI(?c)) }} LIMIT {_CLASSES_MAX}"
"""The classes that have resources. Its answer is wanted as tab-separated values, as all here."""


def classes_of(answer: bytes) -> list[NamedNode]:
    """Those of the answer to `CLASSES` that types are made of, in the order of their IRIs."""
    cells = answer.decode().split("\n")[1:]
    found = [NamedNode(cell[1:-1]) for cell in cells if cell.startswith("<") and is_iri(cell[1:-1])]
    return sorted((one for one in found if not is_built_in(one)), key=str)


def samples(classes: Sequence[NamedNode]) -> list[str]:
    """Queries for what some resources of each class have, some classes a query.

    Rows are (?c, ?p, ?d, ?o): class, property, datatype of a literal, class of a resource.
    """
    return [
        _sample(classes[start : start + _CLASSES_A_QUERY])
        for start in range(0, len(classes), _CLASSES_A_QUERY)
    ]


def inferred(classes: Iterable[NamedNode], answers: Iterable[bytes]) -> Drafts:
    """The drafts of the classes; answers are those to `samples`, in any order."""
    found: dict[TypeKey, TypeDraft] = {one: TypeDraft(one) for one in classes}
    kinds: dict[tuple[NamedNode, str], tuple[set[NamedNode], set[NamedNode]]] = {}
    for answer in answers:
        for line in answer.decode().split("\n")[1:]:
            if line:
                cls, predicate, datatype, of = (cell[1:-1] for cell in line.split("\t"))
                datatypes, references = kinds.setdefault((NamedNode(cls), predicate), (set(), set()))
                datatypes |= {NamedNode(datatype)} if datatype else set()
                references |= {NamedNode(of)} if of and NamedNode(of) in found else set()
    for (key, path), (datatypes, references) in sorted(kinds.items(), key=lambda one: one[0][1]):
        draft = FieldDraft(
            Path(path),
            datatypes=frozenset(datatypes),
            references=() if datatypes else tuple(sorted(references, key=str)),
            only_iris=not datatypes,
        )
        found[key] = with_field(found[key], draft)
    return found


def _sample(classes: Sequence[NamedNode]) -> str:
    branches = " UNION ".join(
        f"{{ {{ SELECT ?s {{ ?s a {iri_text(one.value)} }} LIMIT {_RESOURCES_MAX} }} "
        f"?s ?p ?v BIND({iri_text(one.value)} AS ?c) }}"
        for one in classes
    )
    other = f"FILTER(?p != {iri_text(RDF_TYPE.value)})"
    classed = "OPTIONAL { ?v a ?o FILTER(isIRI(?o)) }"
    return f"SELECT DISTINCT ?c ?p (DATATYPE(?v) AS ?d) ?o WHERE {{ {branches} {other} {classed} }}"


# Shapes: the property shapes of the node shapes that target classes. A path of several steps is passed over.

_LANG_STRING = NamedNode(RDF + "langString")
_NESTED_MAX = 20  # of sh:node on node shapes: circles end
_RESOURCES = frozenset({sh("IRI"), sh("BlankNode"), sh("BlankNodeOrIRI")})


def read_shapes(graph: ShapesGraph) -> Drafts:
    """A type for every class that a node shape targets, and for each shape of no class that `sh:node` of a
    property shape refers to.
    """
    return _Reader(graph).drafts()


class _Reader:
    def __init__(self, graph: ShapesGraph) -> None:
        self._graph = graph
        self._found: dict[TypeKey, TypeDraft] = {}
        self._waiting: list[Node] = []  # shapes of no class that fields refer to

    def drafts(self) -> Drafts:
        for shape in self._node_shapes():
            for cls in self._classes(shape):
                self._add(cls, shape)
        while self._waiting:
            shape = self._waiting.pop()
            if shape not in self._found:
                self._add(shape, shape)
        return self._found

    def _node_shapes(self) -> list[Node]:
        with_properties = self._graph.subjects_with([sh("property"), sh("targetClass")])
        found = {*self._graph.subjects(RDF_TYPE, sh("NodeShape")), *with_properties}
        return sorted((one for one in found if not self._is_off(one)), key=str)

    def _classes(self, shape: Node) -> list[NamedNode]:
        """Those that it targets; itself where it is a class too (SHACL section 2.1.3.3)."""
        classes = [one for one in self._graph.objects(shape, sh("targetClass")) if isinstance(one, NamedNode)]
        if isinstance(shape, NamedNode) and self._graph.is_class(shape):
            classes.append(shape)
        return classes

    def _add(self, key: TypeKey, shape: Node) -> None:
        known = self._found.get(
            key, TypeDraft(key, is_class=key != shape or self._graph.is_class(shape), shape=shape)
        )
        description = known.description or description_of(self._graph, shape, sh("description"))
        draft = replace(known, description=description)
        self._found[key] = draft  # before the fields, which may refer to it
        for part in self._with_nodes(shape):
            for given in self._graph.objects(part, sh("property")):
                if isinstance(given, NamedNode | BlankNode) and not self._is_off(given):
                    field = self._field(given)
                    draft = draft if field is None else with_field(draft, field)
        self._found[key] = draft

    def _with_nodes(self, shape: Node) -> Iterator[Node]:
        """The shape and those that it includes by `sh:node`, the most general first: it has the last word."""
        found: list[Node] = []
        waiting = [shape]
        while waiting and len(found) < _NESTED_MAX:
            one = waiting.pop()
            if one not in found:
                found.append(one)
                waiting += [
                    node for node in self._objects(one, "node") if isinstance(node, NamedNode | BlankNode)
                ]
        return reversed(found)

    def _field(self, shape: Node) -> FieldDraft | None:
        path = self._path(shape)
        if path is None:
            return None
        datatypes = frozenset(one for one in self._objects(shape, "datatype") if isinstance(one, NamedNode))
        if not datatypes and (self._objects(shape, "languageIn") or self._objects(shape, "uniqueLang")):
            datatypes = frozenset({_LANG_STRING})
        kinds = set(self._objects(shape, "nodeKind"))
        return FieldDraft(
            path,
            name=self._name(shape),
            datatypes=datatypes,
            references=() if datatypes else tuple(self._references(shape)),
            values=self._values(shape),
            only_iris=bool(kinds) and kinds <= _RESOURCES,
            at_most_one=self._number(shape, "maxCount", 2) <= 1,
            at_least_one=self._number(shape, "minCount", 0) >= 1,
            description=description_of(self._graph, shape, sh("description")),
            order=self._number(shape, "order", 0) if self._objects(shape, "order") else None,
        )

    def _path(self, shape: Node) -> Path | None:
        for value in self._objects(shape, "path"):
            if isinstance(value, NamedNode):
                return Path(value.value)
            if isinstance(value, BlankNode):
                for inverse in self._objects(value, "inversePath"):
                    if isinstance(inverse, NamedNode):
                        return Path(inverse.value, inverse=True)
        return None

    def _references(self, shape: Node) -> Iterator[TypeKey]:
        for cls in self._objects(shape, "class"):
            if isinstance(cls, NamedNode):
                yield cls
        for node in self._objects(shape, "node"):
            if isinstance(node, NamedNode | BlankNode):
                classes = self._classes(node)
                yield from classes
                if not classes:
                    self._waiting.append(node)
                    yield node

    def _values(self, shape: Node) -> tuple[NamedNode | Literal, ...]:
        for head in self._objects(shape, "in"):
            try:
                members = self._graph.members(head, shape, "in")
            except MalformedShapes:
                return ()
            if all(isinstance(one, NamedNode | Literal) for one in members):
                return tuple(one for one in members if isinstance(one, NamedNode | Literal))
        return ()

    def _name(self, shape: Node) -> str | None:
        return description_of(self._graph, shape, sh("name"))

    def _number(self, shape: Node, name: str, default: float) -> float:
        for value in self._objects(shape, name):
            if isinstance(value, Literal):
                try:
                    return float(value.value)
                except ValueError:
                    return default
        return default

    def _objects(self, shape: Node, name: str) -> list[Term]:
        return self._graph.objects(shape, sh(name))

    def _is_off(self, shape: Node) -> bool:
        values = self._objects(shape, "deactivated")
        return any(isinstance(one, Literal) and one.value == "true" for one in values)
