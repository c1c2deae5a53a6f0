"""The rewrite of derived triple patterns: how the engine finds what they match.

Which patterns are derived, and what they match, is in `graphdb.geo.entailment`. The ends of a topology
property are features or geometries. A feature stands for its default geometry; if it has none, for any
geometry that it has.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from graphdb.geo.entailment import MARK, TOPOLOGY, at_or_below, is_derived
from graphdb.geo.lookups import MEETING, Binding, Lookup, MeetsResource
from graphdb.geometry.geosparql_names import GEOMETRY_PROPERTIES, RDF_TYPE, SERIALIZATIONS
from graphdb.sparql.algebra import (
    EMPTY,
    Algebra,
    Bgp,
    Distinct,
    Exists,
    Extend,
    Filter,
    Graph,
    Join,
    Lateral,
    LeftJoin,
    Minus,
    Narrowed,
    Path,
    Project,
    Service,
    Slot,
    Union,
    Values,
    join,
    spine_of,
    variables_in_scope,
)
from graphdb.sparql.patterns import (
    AlternativePath,
    FunctionCall,
    Or,
    RepeatedPath,
    TriplePattern,
    variables_of_triples,
)
from graphdb.sparql.rewriting import GroupPass
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import all_below, nodes_below, renamed

__all__ = ["REWRITTEN", "NewSlot", "with_derived_triples"]

REWRITTEN = {"nesting": 4, "patterns": 16, "unions": 5, "filters": 8}
"""What one such triple pattern adds to what the gate counts (`graphdb.planning.complexity`)."""

NewSlot: TypeAlias = Callable[[Lookup], str]
"""Gives the name of a slot for what a lookup finds."""

_VALUES_MAX = 1_000
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_ANY_SERIALIZATION = AlternativePath(tuple(map(Iri, SERIALIZATIONS)))
_DEFAULT, _ANY = map(Iri, GEOMETRY_PROPERTIES)


def with_derived_triples(pattern: Algebra, fresh: FreshNames, new_slot: NewSlot | None = None) -> Algebra:
    """A pattern whose derived triple patterns match what `entailment` says.

    new_slot is None where no index is asked. Blank nodes become variables: their patterns may be split.
    """
    start = fresh.prefix("geo")
    labels = dict.fromkeys(node for node in all_below(pattern) if isinstance(node, BlankNodeLabel))
    services = [node for node in nodes_below(pattern) if isinstance(node, Service)]
    elsewhere = {node for node in all_below(*services) if isinstance(node, BlankNodeLabel)}
    names = {
        label: Variable(f"{start}n{number}") for number, label in enumerate(labels) if label not in elsewhere
    }
    return _DerivedTriples(start, new_slot).group(renamed(pattern, names))


class _DerivedTriples(GroupPass):
    """The pass. Within GRAPH with a variable a pattern holds within each graph by itself."""

    def __init__(self, fresh: str, new_slot: NewSlot | None) -> None:
        """fresh begins names that are free."""
        self._fresh, self._new_slot = fresh, new_slot

    def operand(self, node: Any, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        if isinstance(node, Bgp) and any(map(is_derived, node.triples)):
            return self._block(EMPTY, node.triples, graph, ())
        return super().operand(node, graph)

    def step(self, step: Any, left: Algebra, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        match step:
            case Join(right=Bgp(triples=triples)) if any(map(is_derived, triples)):
                return self._block(left, triples, graph, _bound_in(step.left))
            case _:
                return super().step(step, left, graph)

    def _block(
        self,
        left: Algebra,
        triples: Sequence[TriplePattern],
        graph: Variable | None,
        known: Collection[str],
    ) -> Algebra:
        """Triple patterns, the derived ones after the others.

        What binds an end before, the others or what known names, binds it in the pattern (LATERAL).
        """
        plain = Bgp(tuple([triple for triple in triples if not is_derived(triple)]))
        bound = {*known, *variables_of_triples(plain.triples)}
        made = join(left, Graph(graph, EMPTY) if graph is not None and plain == EMPTY else plain)
        for triple in triples:
            if is_derived(triple):
                made = self._derived(made, triple, frozenset(bound), graph)
                bound.update(variables_of_triples((triple,)))
        return made

    def _derived(
        self, left: Algebra, triple: TriplePattern, bound: Collection[str], graph: Variable | None
    ) -> Algebra:
        """One pattern, for each solution of those before; but by itself where a lookup leaves few values."""
        usual = self._select(triple, bound, graph, {})
        lookup = _lookup(triple, f"{self._fresh}a", f"{self._fresh}b")
        if self._new_slot is None or lookup is None:
            return Lateral(left, usual)
        name = self._new_slot(lookup)
        found = self._select(triple, (), graph, {lookup.binding.variable: Slot(name)})
        return Narrowed(left, usual, name, found)

    def _select(
        self, triple: TriplePattern, bound: Collection[str], graph: Variable | None, slots: Mapping[str, Slot]
    ) -> Algebra:
        """Each pair of ends once, as a triple pattern has it. slots has what is put before the patterns that
        bind a name.
        """
        shown = [graph] if graph is not None else []
        shown += [end for end in (triple.subject, triple.object) if isinstance(end, Variable)]
        assert isinstance(triple.predicate, Iri)
        if triple.predicate.value in TOPOLOGY:
            holds = self._related(triple, triple.predicate, bound, slots)
        else:
            holds = self._entailed(triple, triple.predicate.value)
        columns = dict.fromkeys(shown or [Variable(f"{self._fresh}x")])  # which has no value
        return Distinct(Project(holds, tuple(columns)))

    def _related(
        self, triple: TriplePattern, verb: Iri, bound: Collection[str], slots: Mapping[str, Slot]
    ) -> Algebra:
        """Stated, or by geometries: each end a geometry, or a feature."""
        one, other = (
            _End(end, f"{self._fresh}{letter}", bound)
            for end, letter in ((triple.subject, "a"), (triple.object, "b"))
        )
        values = (Variable(one.value), Variable(other.value))
        holds = FunctionCall(Iri(TOPOLOGY[verb.value]), values, False)
        first, second = sorted((one, other), key=lambda end: not end.is_known)
        cases = [
            Filter(holds, Lateral(way, other_way))
            for way in first.ways(slots.get(first.value, EMPTY))
            for other_way in second.ways(slots.get(second.value, EMPTY))
        ]
        return Union((Bgp((triple,)), *cases))

    def _entailed(self, triple: TriplePattern, verb: str) -> Algebra:
        below, above = Variable(f"{self._fresh}a"), Variable(f"{self._fresh}b")
        if verb == RDF_TYPE:
            assert isinstance(triple.object, Iri)
            marked, found, step = triple.object.value, replace(triple, object=below), "subClassOf"
        else:
            marked, found, step = verb, replace(triple, predicate=below), "subPropertyOf"
        known = tuple([(Iri(iri),) for iri in at_or_below(marked.removeprefix(MARK))])
        is_below = Path(below, RepeatedPath(Iri(_RDFS + step), "+"), above)
        stated = Bgp((found,))
        by_schema = Lateral(Lateral(Values((above,), known), is_below), stated)
        return Union((Lateral(Values((below,), known), stated), by_schema))


def _bound_in(pattern: Algebra) -> set[str]:
    """The names that a group binds before its next element, but for those of OPTIONAL."""
    names: set[str] = set()
    first, steps = spine_of(pattern)
    for part in (first, *steps):
        match part:
            case LeftJoin() | Minus() | Filter():
                pass
            case Extend(variable=variable):
                names.add(variable.name)
            case Join(right=right) | Lateral(right=right) | Narrowed(right=right):
                names |= variables_in_scope(right)
            case _:
                names |= variables_in_scope(part)
    return names


def _lookup(triple: TriplePattern, one: str, other: str) -> Lookup | None:
    """The geometries of the one end of a topology property where the other alone is given."""
    assert isinstance(triple.predicate, Iri)
    if TOPOLOGY.get(triple.predicate.value) not in MEETING:
        return None
    match triple.subject, triple.object:
        case Iri(value=iri), Variable():
            name = other
        case Variable(), Iri(value=iri):
            name = one
        case _:
            return None
    return Lookup(Binding(name, frozenset(SERIALIZATIONS), _VALUES_MAX), (MeetsResource(iri),))


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a topology property, the name for its serializations, and what is bound before."""

    term: PatternTerm
    value: str
    bound: Collection[str]

    @property
    def is_known(self) -> bool:
        """Whether it has a value when the pattern is evaluated."""
        return not isinstance(self.term, Variable) or self.term.name in self.bound

    def ways(self, values: Algebra) -> tuple[Algebra, Algebra]:
        """How the end comes to serializations: a geometry to its own, a feature to those of its default
        geometry, or of any where it has no default geometry.

        The engine does not order joins that are parts of others, so the order is said here.
        """
        geometry = Variable(f"{self.value}g")
        own = Path(self.term, _ANY_SERIALIZATION, Variable(self.value))
        its = Path(geometry, _ANY_SERIALIZATION, Variable(self.value))
        is_default = Exists(self._with_default(geometry), negated=False)
        has_none = Exists(self._with_default(Variable(f"{self.value}d")), negated=True)
        has_geometry = Path(self.term, AlternativePath((_DEFAULT, _ANY)), geometry)
        feature = Filter(Or((is_default, has_none)), has_geometry)  # type: ignore[arg-type]
        if self.is_known:
            return own, Lateral(feature, its)
        return Lateral(values, own), Lateral(Lateral(values, its), feature)

    def _with_default(self, geometry: Variable) -> Bgp:
        return Bgp((TriplePattern(self.term, _DEFAULT, geometry),))
