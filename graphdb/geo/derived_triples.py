"""Triple patterns that more than stated triples match, and how the engine finds what they match.

The query rewrite extension of GeoSPARQL has a triple with a topology property (`?a geo:sfWithin ?b`) hold
where it is stated, and where the function of the same name holds for the geometries of its ends: each end a
feature, by its default geometry, or a geometry itself. A feature without a default geometry stands for any
geometry that it has.

Its RDFS entailment extension has instances of subclasses be instances of GeoSPARQL's classes, and values of
subproperties be values of `geo:hasGeometry`. That is for patterns whose class or property is marked
(`graphdb.geo.entailment`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from graphdb.geo.class_hierarchy import at_or_below
from graphdb.geo.lookups import MEETING, Binding, Lookup, MeetsResource
from graphdb.geo.signatures import RELATIONS
from graphdb.geo.vocabulary import GEO, GEOF, RDF_TYPE
from graphdb.sparql.patterns import TriplePattern
from graphdb.sparql.scope import variables_of_triples
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, Variable
from graphdb.sparql.writing import Names, written_term, written_triple

__all__ = [
    "GEOMETRY_PROPERTIES",
    "MARK",
    "READ_PROPERTIES",
    "REWRITTEN",
    "SERIALIZATIONS",
    "Rewriting",
    "Slot",
    "is_derived",
]

MARK = "urn:graphdb:entailed:"
"""Before the IRI of a class or property: RDFS is meant."""

SERIALIZATIONS = tuple(GEO + name for name in ("asWKT", "asGML", "asGeoJSON"))
GEOMETRY_PROPERTIES = (GEO + "hasDefaultGeometry", GEO + "hasGeometry")
READ_PROPERTIES = (*SERIALIZATIONS, *GEOMETRY_PROPERTIES)
"""What a pattern with a topology property looks at beside that property."""

REWRITTEN = {"nesting": 4, "patterns": 16, "unions": 5, "filters": 8}
"""What one such triple pattern adds to what the gate counts (`graphdb.sparql.complexity`)."""

Slot: TypeAlias = Callable[[Lookup, str, tuple[str, ...]], str]
"""Takes what is written without what a lookup finds, and the pieces of what is written around it."""
_NO_VALUES: Mapping[str, str] = MappingProxyType({})

_VALUES_MAX = 1_000
_TOPOLOGY = {GEO + name: GEOF + name for name in RELATIONS}
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_ANY_SERIALIZATION = f"({'|'.join(f'<{iri}>' for iri in SERIALIZATIONS)})"
_DEFAULT, _ANY = (f"<{iri}>" for iri in GEOMETRY_PROPERTIES)


def is_derived(triple: TriplePattern) -> bool:
    """Whether more than stated triples match the pattern."""
    match triple:
        case TriplePattern(predicate=Iri(value=verb), object=Iri(value=class_)) if verb == RDF_TYPE:
            return class_.startswith(MARK)
        case TriplePattern(predicate=Iri(value=verb)) if verb in _TOPOLOGY:
            ends = triple.subject, triple.object  # a literal is neither a feature nor a geometry
            return all(isinstance(end, Iri | Variable | BlankNodeLabel) for end in ends)
        case TriplePattern(predicate=Iri(value=verb)):
            return verb.startswith(MARK)
    return False


@dataclass(frozen=True, slots=True)
class Rewriting:
    """How the derived triple patterns of one group are written.

    names writes variables, and blank nodes as variables; fresh begins names that are free. graph is the
    variable of the GRAPH around them, without its mark: then a pattern holds within each graph by itself.
    slot gives a mark for what is written where a lookup finds something, and where it does not.
    """

    names: Names
    fresh: str
    graph: str | None = None
    slot: Slot | None = None

    def block(self, triples: Iterable[TriplePattern], known: Iterable[str] = ()) -> str:
        """Triple patterns, the derived ones behind the others and made so that they match as said above.

        What binds an end before, the others or what known names, binds it in the pattern (LATERAL).
        """
        derived, pieces, bound = [], [], set(known)
        for triple in triples:
            if is_derived(triple):
                derived.append(triple)
            else:
                pieces.append(f"{written_triple(triple, self.names)} .")
                bound.update(_bound_by(triple))
        if self.graph is not None and not pieces:
            pieces.append(f"GRAPH ?{self.graph} {{}}")
        for triple in derived:
            pieces.append(self._derived(triple, bound))
            bound.update(_bound_by(triple))
        return " ".join(pieces)

    def _derived(self, triple: TriplePattern, bound: Collection[str]) -> str:
        """One pattern, for each solution of those before; but by itself where a lookup leaves few values."""
        usual = f"LATERAL {{ {self._select(triple, bound)} }}"
        lookup = _lookup(triple, f"{self.fresh}a", f"{self.fresh}b")
        if self.slot is None or lookup is None:
            return usual
        mark = f"<{self.fresh}:values>"
        narrowed = f"{{ {self._select(triple, (), {lookup.binding.variable: mark})} }}"
        return self.slot(lookup, usual, tuple(narrowed.split(mark)))

    def _select(
        self, triple: TriplePattern, bound: Collection[str], values: Mapping[str, str] = _NO_VALUES
    ) -> str:
        """Each pair of ends once, as a triple pattern has it. values is what is put before the patterns that
        bind a name.
        """
        ends = triple.subject, triple.object
        shown = [f"?{self.graph}"] if self.graph is not None else []
        shown += (written_term(end, self.names) for end in ends if not isinstance(end, Iri))
        assert isinstance(triple.predicate, Iri)
        if triple.predicate.value in _TOPOLOGY:
            holds = self._related(triple, triple.predicate.value, bound, values)
        else:
            holds = self._entailed(triple, triple.predicate.value)
        columns = " ".join(dict.fromkeys(shown)) or f"?{self.fresh}x"  # which has no value
        return f"SELECT DISTINCT {columns} {{ {holds} }}"

    def _related(
        self, triple: TriplePattern, verb: str, bound: Collection[str], values: Mapping[str, str]
    ) -> str:
        """Stated, or by geometries: each end a geometry, or a feature."""
        one, other = (
            _End(end, written_term(end, self.names), f"{self.fresh}{letter}", bound)
            for end, letter in ((triple.subject, "a"), (triple.object, "b"))
        )
        holds = f"FILTER(<{_TOPOLOGY[verb]}>(?{one.value}, ?{other.value}))"
        first, second = sorted((one, other), key=lambda end: not end.is_known)
        cases = [
            f"{{ {way} LATERAL {{ {other_way} }} {holds} }}"
            for way in first.ways(values.get(first.value, ""))
            for other_way in second.ways(values.get(second.value, ""))
        ]
        return " UNION ".join([f"{{ {one.text} <{verb}> {other.text} }}", *cases])

    def _entailed(self, triple: TriplePattern, verb: str) -> str:
        subject, object_ = (written_term(end, self.names) for end in (triple.subject, triple.object))
        below, above = f"?{self.fresh}a", f"?{self.fresh}b"
        if verb == RDF_TYPE:
            assert isinstance(triple.object, Iri)
            marked, found, step = triple.object.value, f"{subject} a {below}", "subClassOf"
        else:
            marked, found, step = verb, f"{subject} {below} {object_}", "subPropertyOf"
        known = " ".join(f"<{iri}>" for iri in at_or_below(marked.removeprefix(MARK)))
        return (
            f"{{ VALUES {below} {{ {known} }} LATERAL {{ {found} }} }} UNION {{ VALUES {above} {{ {known} }}"
            f" LATERAL {{ {below} <{_RDFS}{step}>+ {above} }} LATERAL {{ {found} }} }}"
        )


def _lookup(triple: TriplePattern, one: str, other: str) -> Lookup | None:
    """The geometries of the one end of a topology property where the other alone is given."""
    assert isinstance(triple.predicate, Iri)
    if _TOPOLOGY.get(triple.predicate.value) not in MEETING:
        return None
    match triple.subject, triple.object:
        case Iri(value=iri), Variable() | BlankNodeLabel():
            name = other
        case Variable() | BlankNodeLabel(), Iri(value=iri):
            name = one
        case _:
            return None
    return Lookup(Binding(name, frozenset(SERIALIZATIONS), _VALUES_MAX), (MeetsResource(iri),))


def _bound_by(triple: TriplePattern) -> Iterator[str]:
    """Names of variables and labels of blank nodes. That one may be called as another does no harm."""
    yield from variables_of_triples((triple,))
    for end in (triple.subject, triple.object):
        if isinstance(end, BlankNodeLabel):
            yield end.label


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a topology property: its text, the name for its serializations, and what is bound before."""

    term: PatternTerm
    text: str
    value: str
    bound: Collection[str]

    @property
    def is_known(self) -> bool:
        """Whether it has a value when the pattern is evaluated."""
        match self.term:
            case Variable(name=name) | BlankNodeLabel(label=name):
                return name in self.bound
            case _:
                return True

    def ways(self, values: str) -> tuple[str, str]:
        """How the end comes to serializations: a geometry to its own, a feature to those of its default
        geometry, or of any where it has no default geometry.

        The engine does not order joins that are parts of others, so the order is said here.
        """
        geometry, has = f"?{self.value}g", f"{_DEFAULT}|{_ANY}"
        own = f"{self.text} {_ANY_SERIALIZATION} ?{self.value}"
        its = f"{geometry} {_ANY_SERIALIZATION} ?{self.value}"
        is_default = (
            f"FILTER(EXISTS {{ {self.text} {_DEFAULT} {geometry} }}"
            f" || NOT EXISTS {{ {self.text} {_DEFAULT} ?{self.value}d }})"
        )
        feature = f"{self.text} {has} {geometry} {is_default}"
        if self.is_known:
            return own, f"{{ {feature} }} LATERAL {{ {its} }}"
        first = f"{{ {values} }} LATERAL"
        return f"{first} {{ {own} }}", f"{first} {{ {its} }} LATERAL {{ {feature} }}"
