"""A schema for data without ontology or shapes: what a sample of each class's resources has.

First `CLASSES` is asked, then each of `samples`; `inferred` makes drafts of the answers. All fields are lists
of values that may be missing: a sample cannot tell otherwise.
"""

from collections.abc import Iterable, Sequence

from pyoxigraph import NamedNode

from graphdb.graphql.drafts import Drafts, FieldDraft, TypeDraft, TypeKey, with_field
from graphdb.graphql.model import Path
from graphdb.graphql.ontology import is_built_in
from graphdb.graphql.terms import iri_text, is_iri
from graphdb.shacl.vocabulary import RDF_TYPE

__all__ = ["CLASSES", "classes_of", "inferred", "samples"]

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
