"""How many solutions a pattern has for each term of a variable, without the solutions: `part_of`.

Triple patterns whose variables form a tree are counted from the numbers of matches of each term. The
solutions with some value of a variable are the product of what each branch at this variable has for it, and
what a branch has is summed over the quads in between (the semi-joins of M. Yannakakis, Algorithms for acyclic
database schemes, VLDB 1981, with counts in place of sets). An OPTIONAL, MINUS, EXISTS, UNION or group that
has one variable in common with the tree is a weight of the terms of that variable, and so is a FILTER of one
variable, or a constant at the other end of a pattern. Two patterns with the same two variables are one, of
the pairs that both have, and so is a path, of the pairs that it joins.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from itertools import count
from typing import Any, Final, Protocol

import numpy as np
from pyoxigraph import NamedNode

from graphdb.columns.catalog import Catalog
from graphdb.columns.expressions import conjuncts, literal_of
from graphdb.columns.pieces import pieces, small_pieces
from graphdb.columns.quad_arrays import Ends, Floats, Ids, NotCounted, Numbers, Terms, Weights, kind_of
from graphdb.columns.relations import Relation, closure, common, of_predicate, where_equal
from graphdb.columns.term_vectors import Column, Unread, condition, variables_of
from graphdb.columns.triples import column_name
from graphdb.sparql.algebra import (
    Algebra,
    Bgp,
    Exists,
    Expression,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Path,
    Union,
    spine_of,
)
from graphdb.sparql.patterns import Comparison, InversePath, RepeatedPath, SequencePath
from graphdb.sparql.patterns import Path as Predicate
from graphdb.sparql.terms import Iri, PatternTerm, RdfLiteral, Variable

__all__ = ["EXACT", "Edge", "Part", "Tree", "part_of", "whole"]

EXACT: Final = 2.0**53  # whole numbers below it are exact as doubles


class Part(Protocol):
    """A group or a UNION. certain are the variables that all its solutions bind, names all that it has."""

    certain: frozenset[str]
    names: frozenset[str]

    def total(self) -> int:
        """How many solutions there are."""

    def weights(self, name: str) -> Weights:
        """How many there are with each term as the value of a variable, one that is certain."""

    def distinct(self, name: str) -> int:
        """How many values a variable has, one that is certain."""

    def column(self, name: str) -> Column:
        """The terms of a variable, one that is certain and by ids: those that weights has places for."""

    def forget(self) -> None:
        """What was computed on the way, which is kept for the case that it is needed more than once."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A triple pattern between two variables."""

    subject: str
    object: str
    relation: Relation

    def other(self, name: str) -> str:
        return self.object if name == self.subject else self.subject

    def column(self, name: str) -> str:
        return "s" if name == self.subject else "o"


def part_of(
    node: Algebra, catalog: Catalog, by_ids: AbstractSet[str], conditions: Sequence[Expression] = ()
) -> Part:
    """What a pattern has where conditions, of variables that it binds, hold. by_ids are the variables whose
    terms are by their ids. Raises NotCounted.
    """
    outer = list(conditions)
    while isinstance(node, Filter) and isinstance(node.pattern, Filter | Union):
        outer += conjuncts(node.expression)
        node = node.pattern
    if isinstance(node, Union):
        return _Alternatives([part_of(branch, catalog, by_ids, outer) for branch in node.branches])
    if not isinstance(node, Bgp | Path | Join | LeftJoin | Minus | Filter):
        raise NotCounted
    group = _Group(catalog, by_ids, outer)
    first, steps = spine_of(node)
    group.join(first)
    for step in steps:
        match step:
            case Join(right=right):
                group.join(right)
            case LeftJoin(right=right, condition=None):
                group.put_beside(_Effect.FACTOR_OR_ONE, right)
            case Minus(right=right):
                group.put_beside(_Effect.NONE, right)
            case Filter(expression=expression):
                group.filter(expression)
            case _:
                raise NotCounted
    return group.tree()


class _Group:
    """The elements of a group, as they are gathered."""

    def __init__(self, catalog: Catalog, by_ids: AbstractSet[str], conditions: Iterable[Expression]) -> None:
        self._catalog, self._by_ids = catalog, by_ids
        self._conditions = list(conditions)
        self._edges: list[Edge] = []
        self._beside: list[tuple[_Effect, Part]] = []
        self._fixed: dict[str, list[_Fixed]] = {}
        self._fresh = count()

    def join(self, operand: Algebra) -> None:
        match operand:
            case Bgp(triples=triples):
                for triple in triples:
                    if not isinstance(triple.predicate, Iri):
                        raise NotCounted
                    self._step(triple.subject, triple.predicate, triple.object)
            case Path():
                self._step(operand.subject, operand.predicate, operand.object)
            case _:
                self.put_beside(_Effect.FACTOR, operand)

    def put_beside(self, effect: "_Effect", pattern: Algebra) -> None:
        self._beside.append((effect, part_of(pattern, self._catalog, self._by_ids)))

    def filter(self, expression: Expression) -> None:
        for one in conjuncts(expression):
            if isinstance(one, Exists):
                self.put_beside(_Effect.NONE if one.negated else _Effect.SOME, one.pattern)
            else:
                self._conditions.append(one)

    def _step(self, subject: PatternTerm, predicate: Predicate, object_: PatternTerm) -> None:
        """A sequence is its steps, with variables of its own between them."""
        match predicate:
            case SequencePath(steps=steps):
                between = [Variable(f"/{next(self._fresh)}") for _ in steps[1:]]
                ends: list[PatternTerm] = [subject, *between, object_]
                for place, step in enumerate(steps):
                    self._step(ends[place], step, ends[place + 1])
            case InversePath(path=path):
                self._step(object_, path, subject)
            case RepeatedPath(path=Iri() as path, modifier="+"):
                self._put(subject, closure(self._relation(path)), object_)
            case Iri():
                self._put(subject, self._relation(predicate), object_)
            case _:
                raise NotCounted

    def _relation(self, predicate: Iri) -> Relation:
        number = self._catalog.id_of(NamedNode(predicate.value))
        if number is None:
            raise NotCounted  # nothing matches: DuckDB knows that without reading anything
        return of_predicate(self._catalog, number)

    def _put(self, subject: PatternTerm, relation: Relation, object_: PatternTerm) -> None:
        names = column_name(subject), column_name(object_)
        match names:
            case str() as one, str() as other if one != other:
                self._edges.append(Edge(one, other, relation))
            case str() as one, None:
                self._fix(one, relation, "s", object_)
            case None, str() as other:
                self._fix(other, relation, "o", subject)
            case _:
                raise NotCounted

    def _fix(self, name: str, relation: Relation, column: str, term: PatternTerm) -> None:
        if not isinstance(term, Iri | RdfLiteral):
            raise NotCounted
        number = self._catalog.id_of(NamedNode(term.value) if isinstance(term, Iri) else literal_of(term))
        if number is None:
            raise NotCounted
        self._fixed.setdefault(name, []).append(_Fixed(relation, column, number))

    def tree(self) -> "Tree":
        """All of it. Raises NotCounted."""
        edges = _merged(self._edges)
        masks: dict[str, list[Expression]] = {}
        for one in self._conditions:
            names = variables_of(one)
            if len(names) == 2:
                edges = _restricted(edges, one, names)
            elif len(names) == 1:
                masks.setdefault(next(iter(names)), []).append(one)
            else:
                raise NotCounted
        return Tree(edges, self._beside, self._fixed, masks, self._by_ids)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A pattern with a term at one end; column is the other one."""

    relation: Relation
    column: str
    term: int


def _merged(edges: Sequence[Edge]) -> list[Edge]:
    """Those with the same two variables as one."""
    found: dict[frozenset[str], Edge] = {}
    for edge in edges:
        names = frozenset((edge.subject, edge.object))
        known = found.get(names)
        if known is None:
            found[names] = edge
        else:
            turned = known.subject != edge.subject
            found[names] = replace(known, relation=common(known.relation, edge.relation, turned=turned))
    return list(found.values())


def _restricted(edges: Sequence[Edge], expression: Expression, names: AbstractSet[str]) -> list[Edge]:
    """Where the two variables of one edge are equal, or are not."""
    if not isinstance(expression, Comparison) or expression.operator not in ("=", "!="):
        raise NotCounted
    if not isinstance(expression.left, Variable) or not isinstance(expression.right, Variable):
        raise NotCounted
    found = [edge for edge in edges if {edge.subject, edge.object} == names]
    if len(found) != 1:
        raise NotCounted
    relation = where_equal(found[0].relation, negated=expression.operator == "!=")
    return [replace(edge, relation=relation) if edge is found[0] else edge for edge in edges]


class _Effect(Enum):
    """What a part beside a tree does to the number of solutions with a term, by its own number of them."""

    FACTOR = "factor"  # a join
    FACTOR_OR_ONE = "factor or one"  # OPTIONAL
    SOME = "some"  # EXISTS
    NONE = "none"  # NOT EXISTS, MINUS

    def weighed(self, found: Numbers | None, terms: Terms, part: Weights, kind: type[Any]) -> Numbers:
        """The numbers of some terms, 1 each where found is None, times what it makes of those of the part: as
        numbers of this kind, or of the part's own, to be read.
        """
        where, here = part.on(terms)
        match self:
            case _Effect.FACTOR_OR_ONE:
                here = np.maximum(here, 1)
            case _Effect.SOME:
                here = here != 0
            case _Effect.NONE:
                here = here == 0
        if kind is np.bool_ or here.dtype == np.bool_:  # each 0 or 1
            here = here.view(np.bool_ if kind is np.bool_ else np.uint8)
        if len(here) < terms.span:
            whole = (np.ones if self.leaves_others else np.zeros)(terms.span, kind)
            whole[where] = here
            here = whole
        return here if found is None else np.multiply(found, here, dtype=kind)

    @property
    def leaves_others(self) -> bool:
        """Whether terms that the part does not have keep their numbers."""
        return self in (_Effect.FACTOR_OR_ONE, _Effect.NONE)

    def most(self, part: Weights) -> int | None:
        """What no number is multiplied by more than."""
        if self in (_Effect.SOME, _Effect.NONE) or part.values.dtype == np.bool_:
            return 1
        if part.most is None and part.values.dtype.kind == "u":
            return int(np.iinfo(part.values.dtype).max)
        return None if part.most is None else max(part.most, 1)


class Tree:
    """Triple patterns whose variables form a tree, and parts that each have one of these variables and
    otherwise names of their own. A `Part`.
    """

    def __init__(
        self,
        edges: Sequence[Edge],
        beside: Sequence[tuple[_Effect, Part]],
        fixed: dict[str, list[_Fixed]],
        masks: dict[str, list[Expression]],
        by_ids: AbstractSet[str],
    ) -> None:
        """fixed are patterns with one variable, masks conditions of one. Raises NotCounted."""
        self.edges = edges
        self._at: dict[str, list[Edge]] = {}
        for edge in edges:
            for name in (edge.subject, edge.object):
                self._at.setdefault(name, []).append(edge)
        self._fixed, self._masks = fixed, masks
        if not edges and len(fixed) == 1:
            self._at = {name: [] for name in fixed}
        self.certain = frozenset(self._at)
        self._check_tree()
        if not self.certain.issuperset((*fixed, *masks)):
            raise NotCounted
        self._by_ids = by_ids | masks.keys()
        self._beside: dict[str, list[tuple[_Effect, Part]]] = {}
        names = set(self.certain)
        for effect, part in beside:
            shared = list(part.names & names)
            if len(shared) != 1 or shared[0] not in self.certain & part.certain:
                raise NotCounted
            self._beside.setdefault(shared[0], []).append((effect, part))
            names |= part.names
        self.names = frozenset(names)
        self._is_plain = len(edges) == 1 and not (self._beside or fixed or masks)
        self._found_masks: dict[str, Weights] = {}

    def _check_tree(self) -> None:
        """So many edges join all variables only where there is no circle."""
        if len(self.edges) != len(self._at) - 1:
            raise NotCounted
        reached, waiting = set[str](), [next(iter(self._at))]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += [edge.other(name) for edge in self._at[name]]
        if reached != self.certain:
            raise NotCounted

    def total(self) -> int:
        """See `Part.total`. Counted at the inner edge of the most quads, or at the one variable that all
        edges have.
        """
        if self._is_plain:
            return self.edges[0].relation.quads
        inner = [edge for edge in self.edges if self._has_more(edge.subject, edge)]
        inner = [edge for edge in inner if self._has_more(edge.object, edge)]
        if not inner:
            center = max(self._at, key=lambda name: len(self._at[name]) + self._weight_count(name))
            products = self._products(self._factors(center, None), self._terms(center))
            return whole(np.array([_sum_of(found) for _, found in products]))
        largest = max(inner, key=lambda edge: edge.relation.quads)
        of_ends = self._of_ends(largest)
        few = next((few for end in of_ends if (few := end.few()) is not None), None)
        if few is not None:
            return whole(reduce(np.multiply, [end.of_quads(few).astype(np.float64) for end in of_ends]))
        return whole(np.array([found.sum() for found in self.of_pieces(largest)]))

    def weights(self, name: str) -> Weights:
        """See `Part.weights`."""
        if self._is_plain:
            return self._message(self.edges[0], name)
        terms = self._terms(name)
        found = self._weighed(name, None, terms)
        whole(found)
        return Weights(terms, found)

    def distinct(self, name: str) -> int:
        """See `Part.distinct`."""
        if self._is_plain:
            edge = self.edges[0]
            known = edge.relation.distinct(edge.column(name))
            if known is not None:
                return known
        return int(np.count_nonzero(self.weights(name).values))

    def column(self, name: str) -> Column:
        """See `Part.column`."""
        relation, column = self._narrowest(name)
        return relation.column(column, name)

    def forget(self) -> None:
        """See `Part.forget`."""
        self._found_masks.clear()
        for beside in self._beside.values():
            for _, part in beside:
                part.forget()

    def of_pieces(self, edge: Edge) -> Iterator[Floats]:
        """How many solutions there are with each quad of an edge, for the quads of each of the `pieces`."""
        of_ends = self._of_ends(edge)
        for piece in pieces(edge.relation.quads):
            if not of_ends:
                yield np.ones(piece.stop - piece.start)
                continue
            found = of_ends[0].of_quads(piece).astype(np.float64, copy=False)
            for of_end in of_ends[1:]:
                found *= of_end.of_quads(piece)
            yield found

    def _of_ends(self, edge: Edge) -> "list[_WeighedEnd]":
        """What the branches at each end that has some have for each quad of an edge."""
        return [
            self._of_end(name, edge) for name in (edge.subject, edge.object) if self._has_more(name, edge)
        ]

    def ends(self, edge: Edge, name: str) -> Ends:
        """One end of an edge."""
        return edge.relation.ends(edge.column(name), by_ids=name in self._by_ids)

    def _narrowest(self, name: str) -> tuple[Relation, str]:
        """An end where all terms are that a variable can have."""
        ends = [(edge.relation, edge.column(name)) for edge in self._at[name]]
        ends += [(fixed.relation, fixed.column) for fixed in self._fixed.get(name, ())]
        return min(ends, key=lambda end: end[0].quads)

    def _terms(self, name: str) -> Terms:
        relation, column = self._narrowest(name)
        return relation.ends(column, by_ids=name in self._by_ids).terms

    def _weight_count(self, name: str) -> int:
        beside, fixed, masks = (
            self._beside.get(name, ()),
            self._fixed.get(name, ()),
            self._masks.get(name, ()),
        )
        return len(beside) + len(fixed) + len(masks)

    def _has_more(self, name: str, edge: Edge) -> bool:
        """Whether a variable is more than the end of this edge."""
        return len(self._at[name]) > 1 or self._weight_count(name) > 0

    def _weighed(self, name: str, source: Edge | None, terms: Terms) -> Numbers:
        """How many solutions there are with each of some terms as a variable's value, but for the branch of
        one edge; to be read.
        """
        factors = self._factors(name, source)
        match factors:
            case [(_Effect.FACTOR, only)] if only.terms is terms:
                return only.values
        found = np.empty(terms.span, _kind_of_products(factors))
        for piece, product in self._products(factors, terms):
            found[piece] = product
        return found

    def _factors(self, name: str, source: Edge | None) -> list[tuple[_Effect, Weights]]:
        """What there is at a variable, but for the branch of one edge."""
        branches = [self._message(edge, name) for edge in self._at[name] if edge is not source]
        branches += [
            fixed.relation.matches_with(fixed.column, fixed.term, by_ids=name in self._by_ids)
            for fixed in self._fixed.get(name, ())
        ]
        if name in self._masks:
            branches.append(self._mask(name))
        beside = [(effect, part.weights(name)) for effect, part in self._beside.get(name, ())]
        return [*((_Effect.FACTOR, branch) for branch in branches), *beside]

    @staticmethod
    def _products(
        factors: Sequence[tuple[_Effect, Weights]], terms: Terms
    ) -> Iterator[tuple[slice, Numbers]]:
        """All factors together for each of the terms, piece by piece, to be read: as small whole numbers
        where they are known to be small, which take a sixth of the time. A product of doubles is inexact
        only where it passes 2^53, and then so does any sum with it.
        """
        kind = _kind_of_products(factors)
        spread = [(effect, weights.spread(terms)) for effect, weights in factors]
        for piece in small_pieces(terms.span):
            found, part = None, terms.part(piece)
            for effect, weights in spread:
                found = effect.weighed(found, part, weights, kind)
            yield piece, np.ones(part.span) if found is None else found

    def _mask(self, name: str) -> Weights:
        """For which terms the conditions of a variable hold."""
        found = self._found_masks.get(name)
        if found is None:
            column = self.column(name)
            each = [condition(one, column) for one in self._masks[name]]
            found = Weights(self._terms(name), reduce(np.logical_and, each))
            self._found_masks[name] = found
        return found

    def _message(self, edge: Edge, name: str) -> Weights:
        """How many solutions the branch of an edge has for each term at this end of it."""
        far = edge.other(name)
        if not self._has_more(far, edge):
            return edge.relation.matches_of_each(edge.column(name), by_ids=name in self._by_ids)
        far_end, ends = self._of_end(far, edge), self.ends(edge, name)
        few = far_end.few()
        if few is None:
            found = ends.gathered(far_end.of_quads)
        else:
            found = ends.gathered_of(few, far_end.of_quads(few))
        whole(found.values)
        return found

    def _of_end(self, name: str, edge: Edge) -> "_WeighedEnd":
        """How many solutions the branches at a variable but for this edge have for each quad of it."""
        ends = self.ends(edge, name)
        return _WeighedEnd(ends, self._weighed(name, edge, ends.terms))


@dataclass(frozen=True, slots=True)
class _WeighedEnd:
    """One end of the quads of an edge, and what the other branches there have for each of its terms."""

    ends: Ends
    weights: Numbers

    def few(self) -> Ids | None:
        """See `Ends.quads_of_few`."""
        return self.ends.quads_of_few(self.weights)

    def of_quads(self, quads: slice | Ids) -> Numbers:
        """The weights of some quads."""
        # the places are all there: to have NumPy look whether they are takes as long again
        return np.take(self.weights, self.ends.codes[quads], mode="clip")


class _Alternatives:
    """UNION. A `Part`."""

    def __init__(self, branches: Sequence[Part]) -> None:
        self._branches = branches
        self.certain = frozenset.intersection(*(branch.certain for branch in branches))
        self.names = frozenset[str]().union(*(branch.names for branch in branches))

    def total(self) -> int:
        """See `Part.total`."""
        return sum(branch.total() for branch in self._branches)

    def weights(self, name: str) -> Weights:
        """See `Part.weights`."""
        each = [branch.weights(name) for branch in self._branches]
        ids = [one.terms.ids for one in each]
        if all(one is None for one in ids):
            low = min(one.terms.low for one in each)
            terms = Terms(low, max(one.terms.high for one in each) - low)
        else:
            known = [one for one in ids if one is not None]
            if len(known) < len(ids):
                raise NotCounted
            terms = Terms.of(np.unique(np.concatenate(known)))
        found = np.zeros(terms.span)
        for one in each:
            where, here = one.on(terms)
            found[where] += here
        whole(found)
        return Weights(terms, found)

    def distinct(self, name: str) -> int:
        """See `Part.distinct`."""
        return int(np.count_nonzero(self.weights(name).values))

    def column(self, name: str) -> Column:
        """See `Part.column`. Texts of several relations together are not read."""
        ids = self.weights(name).terms.ids
        if ids is None:
            raise NotCounted
        return Column(name, ids, Unread())

    def forget(self) -> None:
        """See `Part.forget`."""
        for branch in self._branches:
            branch.forget()


def _kind_of_products(factors: Sequence[tuple[_Effect, Weights]]) -> type[Any]:
    """What numbers hold the products of these."""
    most = 1
    for effect, weights in factors:
        bound = effect.most(weights)
        if bound is None:
            return np.float64
        most *= bound
    return np.bool_ if most == 1 else kind_of(most) or np.float64


def _sum_of(found: Numbers) -> Any:
    """The sum of the numbers of a small piece. NumPy itself takes 64 bits for it, and twice as long."""
    if found.dtype == np.bool_:
        return np.count_nonzero(found)
    return found.sum(dtype=np.uint32 if found.dtype == np.uint8 else None)


def whole(found: Numbers) -> int:
    """The sum. Raises NotCounted where it is not exact, nor perhaps the weights: none is negative, so that
    each is less than the sum.
    """
    total = float(found.sum())
    if total >= EXACT:
        raise NotCounted
    return int(total)
