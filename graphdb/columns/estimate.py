"""What a query costs on the column view, from the statistics alone; whether a reader is the better place."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from pyoxigraph import NamedNode

from graphdb.columns.catalog import Catalog, PredicateTable
from graphdb.columns.expressions import literal_of
from graphdb.sparql.patterns import (
    Comparison,
    Filter,
    GroupGraphPattern,
    NegatedPropertySet,
    RepeatedPath,
    TriplesBlock,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri, RdfLiteral, Variable
from graphdb.sparql.tree_walk import nodes_below
from graphdb.sparql.writing import written_term

__all__ = ["Estimate", "PatternEstimate", "estimate"]

# A listing of one pattern is no work but writing, which the engine does as fast in a reader, and without
# turning numbers back into terms.
LISTING_ROWS_MAX = 50_000
# Each round of a path of any length takes the columns a share of a millisecond, however little there is:
# among so few quads the engine has ended before.
PATH_QUADS_MAX = 1_000
# Planning and starting takes the columns some 5 ms, however little there is. A step of a join takes the
# engine a third of a microsecond.
READER_STEPS_MAX = 16_000


@dataclass(frozen=True, slots=True)
class PatternEstimate:
    """One triple pattern: the quads of the tables that it is looked for in, and how many may fit it."""

    pattern: str
    scanned: int
    rows: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What stands in a query's patterns; reader_because is None where the columns are to answer."""

    patterns: tuple[PatternEstimate, ...]
    reader_because: str | None

    def shown(self) -> dict[str, Any]:
        """For `explain`."""
        return {
            "estimate": {
                "quads_scanned": sum(each.scanned for each in self.patterns),
                "patterns": [
                    {"pattern": each.pattern, "scanned": each.scanned, "rows": each.rows}
                    for each in self.patterns
                ],
            }
        }


def estimate(query: Query, catalog: Catalog) -> Estimate:
    """Evaluates nothing: exact counts per predicate, and of distinct subjects and objects the mean."""
    triples = [
        triple for node in nodes_below(query) if isinstance(node, TriplesBlock) for triple in node.triples
    ]
    patterns = tuple(_pattern(triple, catalog) for triple in triples)
    listed = patterns[0].rows if len(patterns) == 1 and _is_listing(query) else 0
    if query.modifiers.limit is not None:
        listed = min(listed, query.modifiers.limit + (query.modifiers.offset or 0))
    because = f"it lists {listed} matches of one pattern" if listed > LISTING_ROWS_MAX else None
    scanned = sum(each.scanned for each in patterns)
    if scanned <= PATH_QUADS_MAX and any(_repeats(triple.predicate) for triple in triples):
        because = f"it follows a path of any length among {scanned} quads only"
    joined = _joined(query.where)
    if query.where is not None and joined is not None and _is_filtered_star(query.where, joined):
        steps = min(each.scanned for each in patterns) * len(patterns)
        if steps <= READER_STEPS_MAX:
            because = f"it joins and filters few quads, in about {steps} steps"
    if joined == triples:
        anchored = _anchored_steps(triples, patterns, catalog)
        if anchored is not None and anchored <= READER_STEPS_MAX:
            because = f"it joins what a constant leads to, in about {anchored} steps"
    return Estimate(patterns, because)


def _joined(where: GroupGraphPattern | None) -> list[Any] | None:
    """The triples of a group that has nothing but them and filters."""
    if where is None or not all(isinstance(each, TriplesBlock | Filter) for each in where.elements):
        return None
    return [triple for each in where.elements if isinstance(each, TriplesBlock) for triple in each.triples]


def _is_filtered_star(where: GroupGraphPattern, triples: Sequence[Any]) -> bool:
    """Whether one variable has several properties, and few are left to be grouped or sorted: one of them is
    beyond a bound.
    """
    if len({triple.subject for triple in triples}) != 1 or not all(
        isinstance(triple.subject, Variable) and isinstance(triple.predicate, Iri) for triple in triples
    ):
        return False
    objects = {triple.object for triple in triples}
    return any(isinstance(each, Filter) and _bounded(each.expression) in objects for each in where.elements)


def _anchored_steps(
    triples: Sequence[Any], patterns: Sequence[PatternEstimate], catalog: Catalog
) -> int | None:
    """What the engine looks at that goes from the constant with the fewest quads from pattern to pattern,
    each time by the one with the fewest matches on average; None where it cannot go so.
    """
    tables = [_tables(triple.predicate, catalog) for triple in triples]
    if len(triples) < 2 or not all(
        isinstance(triple.predicate, Iri) and len(found) == 1
        for triple, found in zip(triples, tables, strict=True)
    ):
        return None
    left = dict(enumerate(triples))
    anchors = [n for n, each in left.items() if _is_constant(each.subject) or _is_constant(each.object)]
    if not anchors:
        return None
    first = min(anchors, key=lambda n: patterns[n].rows)
    bound = _ends(left.pop(first))
    rows = steps = float(patterns[first].rows)
    while left and steps <= READER_STEPS_MAX:
        ways = {n: _matches(each, tables[n][0], patterns[n].rows, bound) for n, each in left.items()}
        following = min(ways, key=lambda n: ways[n])
        if not bound & _ends(left[following]):
            return None
        bound |= _ends(left.pop(following))
        steps += max(1.0, rows)
        rows *= ways[following]
        steps += rows
    return round(steps)


def _matches(triple: Any, table: PredicateTable, rows: int, bound: Set[Any]) -> float:
    """How many matches a pattern has on average, where some variables have a value."""
    matches = float(rows)
    if triple.subject in bound:
        matches /= max(1, table.subjects)
    if triple.object in bound:
        matches /= max(1, table.objects)
    return matches


def _ends(triple: Any) -> Set[Any]:
    """The subject and the object, where they are no constants."""
    return {end for end in (triple.subject, triple.object) if not _is_constant(end)}


def _bounded(expression: Any) -> Variable | None:
    """The variable that is compared with a constant."""
    if isinstance(expression, Comparison) and expression.operator not in ("=", "!="):
        for one, other in ((expression.left, expression.right), (expression.right, expression.left)):
            if isinstance(one, Variable) and isinstance(other, RdfLiteral):
                return one
    return None


def _repeats(predicate: Any) -> bool:
    """Whether a path has steps again and again, and none of length zero, which joins all nodes."""
    paths = [node for node in nodes_below(predicate) if isinstance(node, RepeatedPath)]
    return bool(paths) and all(path.modifier == "+" for path in paths)


def _is_listing(query: Query) -> bool:
    """Whether each match of the one pattern is a row: nothing filtered, grouped, sorted or made distinct."""
    modifiers, where = query.modifiers, query.where
    if query.form == "ASK" or not isinstance(where, GroupGraphPattern):
        return False
    if query.select is not None and (
        query.select.distinct
        or (
            query.select.projections is not None
            and any(projection.expression is not None for projection in query.select.projections)
        )
    ):
        return False
    return not (modifiers.group_by or modifiers.having or modifiers.order_by) and all(
        isinstance(element, TriplesBlock) for element in where.elements
    )


def _pattern(triple: Any, catalog: Catalog) -> PatternEstimate:
    tables = _tables(triple.predicate, catalog)
    scanned = rows = 0
    for table in tables:
        scanned += table.quads
        share = table.quads
        if _is_constant(triple.subject):
            share = -(-share // max(1, table.subjects)) if catalog.id_of(_term(triple.subject)) else 0
        if _is_constant(triple.object):
            share = -(-share // max(1, table.objects)) if catalog.id_of(_term(triple.object)) else 0
        rows += share
    return PatternEstimate(_written(triple), scanned, rows)


def _tables(predicate: Any, catalog: Catalog) -> list[PredicateTable]:
    """Those that hold what a predicate or a path may match."""
    nodes = list(nodes_below(predicate))
    iris = [node for node in nodes if isinstance(node, Iri)]
    if not iris or any(isinstance(node, NegatedPropertySet) for node in nodes):
        return list(catalog.predicates.values())
    numbers = dict.fromkeys(catalog.id_of(_term(iri)) for iri in iris)
    return [catalog.predicates[number] for number in numbers if number in catalog.predicates]


def _is_constant(term: Any) -> bool:
    return isinstance(term, Iri | RdfLiteral)


def _term(term: Any) -> Any:
    return NamedNode(term.value) if isinstance(term, Iri) else literal_of(term)


def _written(triple: Any) -> str:
    parts = (triple.subject, triple.predicate, triple.object)
    return " ".join(
        written_term(part, lambda each: f"?{getattr(each, 'name', getattr(each, 'label', ''))}")
        if isinstance(part, Iri | RdfLiteral) or hasattr(part, "name") or hasattr(part, "label")
        else "(path)"
        for part in parts
    )
