"""Counts of solutions that are found without making the solutions: `counted`.

Triple patterns whose variables form a tree are counted from the numbers of matches of each term. The
solutions with some value of a variable are the product of what each branch at this variable has for it, and
what a branch has is summed over the quads in between (the semi-joins of M. Yannakakis, Algorithms for acyclic
database schemes, VLDB 1981, with counts in place of sets). An OPTIONAL, MINUS, EXISTS, UNION or group that
has one variable in common with the tree is a weight of the terms of that variable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from graphdb.columns.catalog import Catalog, PredicateTable
from graphdb.columns.compiler import CompiledQuery
from graphdb.columns.end_values import values_aggregated
from graphdb.columns.expressions import conjuncts
from graphdb.columns.quad_arrays import Ends, Weights
from graphdb.columns.results import Fetch
from graphdb.columns.term_ids import XSD
from graphdb.sparql.algebra import (
    AbstractQuery,
    Algebra,
    Bgp,
    Exists,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Select,
    Union,
    spine_of,
)
from graphdb.sparql.patterns import Aggregate, TriplePattern
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable

__all__ = ["Counted", "counted"]

Floats: TypeAlias = npt.NDArray[np.float64]
_EXACT: Final = 2.0**53  # whole numbers below it are exact as doubles
_SPAN_MAX: Final = 1 << 20  # of the numbers of one end's terms, however few there are
_SPAN_A_QUAD: Final = 8


@dataclass(frozen=True, slots=True)
class Counted:
    """The one solution of a query: a cell for each of its columns."""

    variables: tuple[str, ...]
    cells: tuple[str, ...]

    def answer(self) -> tuple[CompiledQuery, Fetch]:
        """As `results` reads it: a query without SQL, and its row."""
        return CompiledQuery("SELECT", self.variables, ""), lambda _count: [self.cells]


class _UncountedError(Exception):
    """What SQL has to count."""


def counted(query: AbstractQuery, catalog: Catalog) -> Counted | None:
    """The counts that a query asks for over the default graph, or other aggregates of one end of a pattern;
    None of what has to be computed in SQL.
    """
    select = query.select
    if query.form != "SELECT" or not select.aggregates or select.keys or select.variables is None:
        return None
    if select.modifier or select.having or select.values or select.order or select.start is not None:
        return None
    if select.length is not None or query.dataset or catalog.named_graphs:
        return None
    named: dict[Variable, Any] = dict(select.extends)
    wanted: list[Any] = [named.get(variable) for variable in select.variables]
    if not {variable for variable, _ in select.aggregates}.issuperset(wanted):
        return None
    found = _counts(select, catalog)
    if found is None and catalog.aggregates_values:
        found = values_aggregated(select.where, select.aggregates, catalog)
    if found is None:
        return None
    names = tuple(variable.name for variable in select.variables)
    return Counted(names, tuple(found[variable] for variable in wanted))


def _counts(select: Select, catalog: Catalog) -> dict[Variable, str] | None:
    """The value of each aggregate of a SELECT of counts; None of what has to be counted in another way."""
    try:
        part = _part(select.where, catalog)
        counts = {variable: _count(part, aggregate) for variable, aggregate in select.aggregates}
    except (_UncountedError, RecursionError):  # the last of a chain of hundreds of patterns
        return None
    return {variable: f'"{count}"^^<{XSD}integer>' for variable, count in counts.items()}


def _count(part: "_Part", aggregate: Aggregate) -> int:
    if aggregate.name != "COUNT":
        raise _UncountedError
    match aggregate.expression:
        case None if not aggregate.distinct:
            return part.total()
        case Variable(name=name) if name in part.certain:
            return part.distinct(name) if aggregate.distinct else part.total()
    raise _UncountedError


class _Part(Protocol):
    """A group or a UNION. certain are the variables that all its solutions bind, names all that it has."""

    certain: frozenset[str]
    names: frozenset[str]

    def total(self) -> int:
        """How many solutions there are."""

    def weights(self, name: str) -> Weights:
        """How many there are with each term as the value of a variable, one that is certain."""

    def distinct(self, name: str) -> int:
        """How many values a variable has, one that is certain."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """A triple pattern: its variables, and the predicate that it is looked for in."""

    subject: str
    object: str
    predicate: int
    table: PredicateTable

    def other(self, name: str) -> str:
        return self.object if name == self.subject else self.subject


def _part(node: Algebra, catalog: Catalog) -> _Part:
    """Raises _UncountedError."""
    if isinstance(node, Union):
        return _Alternatives([_part(branch, catalog) for branch in node.branches])
    if not isinstance(node, Bgp | Join | LeftJoin | Minus | Filter):
        raise _UncountedError
    first, steps = spine_of(node)
    edges: list[_Edge] = []
    beside: list[tuple[_Effect, _Part]] = []

    def joined(operand: Algebra) -> None:
        if isinstance(operand, Bgp):
            edges.extend(_edge(triple, catalog) for triple in operand.triples)
        else:
            beside.append((_Effect.FACTOR, _part(operand, catalog)))

    joined(first)
    for step in steps:
        match step:
            case Join(right=right):
                joined(right)
            case LeftJoin(right=right, condition=None):
                beside.append((_Effect.FACTOR_OR_ONE, _part(right, catalog)))
            case Minus(right=right):
                beside.append((_Effect.NONE, _part(right, catalog)))
            case Filter(expression=expression):
                for condition in conjuncts(expression):
                    if not isinstance(condition, Exists):
                        raise _UncountedError
                    effect = _Effect.NONE if condition.negated else _Effect.SOME
                    beside.append((effect, _part(condition.pattern, catalog)))
            case _:
                raise _UncountedError
    return _Tree(edges, beside, catalog)


def _edge(triple: TriplePattern, catalog: Catalog) -> _Edge:
    subject, object_ = _name(triple.subject), _name(triple.object)
    if subject == object_ or not isinstance(triple.predicate, Iri):
        raise _UncountedError
    number = catalog.id_of(NamedNode(triple.predicate.value))
    table = None if number is None else catalog.predicates.get(number)
    if number is None or table is None:
        raise _UncountedError  # nothing matches: DuckDB knows that without reading anything
    return _Edge(subject, object_, number, table)


def _name(term: object) -> str:
    match term:
        case Variable(name=name):
            return name
        case BlankNodeLabel(label=label):
            return f"_:{label}"
    raise _UncountedError


class _Effect(Enum):
    """What a part beside a tree does to the number of solutions with a term, by its own number of them."""

    FACTOR = "factor"  # a join
    FACTOR_OR_ONE = "factor or one"  # OPTIONAL
    SOME = "some"  # EXISTS
    NONE = "none"  # NOT EXISTS, MINUS

    def weigh(self, found: Floats, low: int, part: Weights) -> None:
        """Apply it to the numbers of the terms from low on. Terms that the part does not name it has 0 of."""
        first, last = (min(max(at - low, 0), len(found)) for at in (part.low, part.high))
        here = part.values[low + first - part.low : low + last - part.low]
        match self:
            case _Effect.FACTOR:
                found[first:last] *= here
            case _Effect.FACTOR_OR_ONE:
                found[first:last] *= np.maximum(here, 1.0)
            case _Effect.SOME:
                found[first:last] *= here > 0.0
            case _Effect.NONE:
                found[first:last] *= here == 0.0
        if self in (_Effect.FACTOR, _Effect.SOME):
            found[:first] = found[last:] = 0.0


class _Tree:
    """Triple patterns whose variables form a tree, and parts that each have one of these variables and
    otherwise names of their own. A `_Part`.
    """

    def __init__(
        self, edges: Sequence[_Edge], beside: Sequence[tuple[_Effect, _Part]], catalog: Catalog
    ) -> None:
        """Raises _UncountedError."""
        self._catalog = catalog
        self._at: dict[str, list[_Edge]] = {}
        for edge in edges:
            for name in (edge.subject, edge.object):
                self._at.setdefault(name, []).append(edge)
        self.certain = frozenset(self._at)
        self._check_tree(edges)
        self._beside: dict[str, list[tuple[_Effect, _Part]]] = {}
        names = set(self.certain)
        for effect, part in beside:
            shared = list(part.names & names)
            if len(shared) != 1 or shared[0] not in self.certain & part.certain:
                raise _UncountedError
            self._beside.setdefault(shared[0], []).append((effect, part))
            names |= part.names
        self.names = frozenset(names)
        self._edges = edges

    def _check_tree(self, edges: Sequence[_Edge]) -> None:
        """So many edges join all variables only where there is no circle."""
        if not edges or len(edges) != len(self._at) - 1:
            raise _UncountedError
        reached, waiting = set[str](), [edges[0].subject]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += [edge.other(name) for edge in self._at[name]]
        if reached != self.certain:
            raise _UncountedError

    def total(self) -> int:
        """See `_Part.total`. Counted at the inner edge of the most quads, or at the one variable that all
        edges have.
        """
        if len(self._edges) == 1 and not self._beside:
            return self._edges[0].table.quads
        inner = [edge for edge in self._edges if self._has_more(edge.subject, edge)]
        inner = [edge for edge in inner if self._has_more(edge.object, edge)]
        if not inner:
            center = max(self._at, key=lambda name: len(self._at[name]) + len(self._beside.get(name, ())))
            return _whole(self._weighed(center, None, *self._range(center)))
        root = max(inner, key=lambda edge: edge.table.quads)
        found = [self._of_quads(name, root) for name in (root.subject, root.object)]
        return _whole(found[0] * found[1])

    def weights(self, name: str) -> Weights:
        """See `_Part.weights`."""
        if len(self._edges) == 1 and not self._beside:
            return self._message(self._edges[0], name)
        low, high = self._range(name)
        found = self._weighed(name, None, low, high)
        _whole(found)
        return Weights(low, found)

    def distinct(self, name: str) -> int:
        """See `_Part.distinct`."""
        [edge, *others] = self._edges
        if not (others or self._beside or edge.table.is_stale):
            return edge.table.subjects if name == edge.subject else edge.table.objects
        return int(np.count_nonzero(self.weights(name).values))

    def _range(self, name: str) -> tuple[int, int]:
        """Where all terms are that a variable can have."""
        ends = self._ends(min(self._at[name], key=lambda edge: edge.table.quads), name)
        return ends.low, ends.high

    def _has_more(self, name: str, edge: _Edge) -> bool:
        """Whether a variable is more than the end of this edge."""
        return len(self._at[name]) > 1 or name in self._beside

    def _weighed(self, name: str, source: _Edge | None, low: int, high: int) -> Floats:
        """How many solutions there are with the terms of a range as a variable's value, but for the branch of
        one edge. A product is inexact only where it passes 2^53, and then so does any sum with it.
        """
        branches = [self._message(edge, name) for edge in self._at[name] if edge is not source]
        found = branches[0].within(low, high).copy() if branches else np.ones(high - low)
        for branch in branches[1:]:
            _Effect.FACTOR.weigh(found, low, branch)
        for effect, part in self._beside.get(name, ()):
            effect.weigh(found, low, part.weights(name))
        return found

    def _message(self, edge: _Edge, name: str) -> Weights:
        """How many solutions the branch of an edge has for each term at this end of it."""
        far = edge.other(name)
        ends = self._ends(edge, name)
        if not self._has_more(far, edge):
            key = edge.predicate, name == edge.subject
            return self._catalog.arrays.get(key, lambda: ends.gathered(None))
        found = self._of_quads(far, edge)
        _whole(found)
        return ends.gathered(found)

    def _of_quads(self, name: str, edge: _Edge) -> Floats:
        """How many solutions the branches at a variable but for this edge have for each quad of it."""
        ends = self._ends(edge, name)
        return self._weighed(name, edge, ends.low, ends.high).take(ends.codes)

    def _ends(self, edge: _Edge, name: str) -> Ends:
        """Raises _UncountedError where they are not all terms of the dictionary, or too many."""
        ends = self._catalog.ends(edge.predicate, "s" if name == edge.subject else "o")
        if ends is None or ends.span > max(_SPAN_MAX, _SPAN_A_QUAD * edge.table.quads):
            raise _UncountedError
        return ends


class _Alternatives:
    """UNION. A `_Part`."""

    def __init__(self, branches: Sequence[_Part]) -> None:
        self._branches = branches
        self.certain = frozenset.intersection(*(branch.certain for branch in branches))
        self.names = frozenset[str]().union(*(branch.names for branch in branches))

    def total(self) -> int:
        """See `_Part.total`."""
        return sum(branch.total() for branch in self._branches)

    def weights(self, name: str) -> Weights:
        """See `_Part.weights`."""
        each = [branch.weights(name) for branch in self._branches]
        low = min(one.low for one in each)
        high = max(one.high for one in each)
        found = np.zeros(high - low)
        for one in each:
            found[one.low - low : one.high - low] += one.values
        _whole(found)
        return Weights(low, found)

    def distinct(self, name: str) -> int:
        """See `_Part.distinct`."""
        return int(np.count_nonzero(self.weights(name).values))


def _whole(found: Floats) -> int:
    """The sum. Raises _UncountedError where it is not exact, nor perhaps the weights: none is negative, so
    that each is less than the sum.
    """
    total = float(found.sum())
    if total >= _EXACT:
        raise _UncountedError
    return int(total)
