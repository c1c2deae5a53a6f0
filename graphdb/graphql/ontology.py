"""The model of a schema, from an ontology or inferred from the data."""

from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.errors import MalformedShapes
from graphdb.graphql.model import Path
from graphdb.graphql.modelling import Drafts, FieldDraft, TypeDraft, TypeKey, with_field
from graphdb.graphql.scalars import iri_text, is_iri
from graphdb.shacl.shapes_graph import ShapesGraph
from graphdb.shacl.vocabulary import OWL, RDF, RDF_TYPE, RDFS, RDFS_CLASS, RDFS_SUBCLASS_OF, XSD, Term

__all__ = ["CLASSES", "classes_of", "description_of", "inferred", "read_ontology", "samples"]

# What an ontology (RDFS, OWL) says of classes: properties by their domain and range.
#
# Lenient: what GraphQL cannot show (restrictions, classes without a name) is passed over. Source: the
# interface's table of RDF concepts; RDF Schema 1.1 sections 2 and 3, OWL 2 for unions.

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


# A schema for data without ontology or shapes: what a sample of each class's resources has.
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
