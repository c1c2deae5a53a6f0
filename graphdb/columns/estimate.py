"""What there is to do for a query, from the statistics alone; whether only a reader may be asked."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from pyoxigraph import NamedNode

from graphdb.columns.catalog import Catalog, PredicateTable
from graphdb.columns.expressions import conjuncts, literal_of
from graphdb.planning.costs import Work
from graphdb.sparql.algebra import (
    SELECT_NODES,
    AbstractQuery,
    Algebra,
    Bgp,
    Distinct,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Path,
    Select,
    Service,
    Union,
    Values,
    operands_of,
    spine_of,
)
from graphdb.sparql.patterns import NegatedPropertySet, TriplePattern
from graphdb.sparql.printing import written_term
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = [
    "LISTING_ROWS_MAX",
    "Estimate",
    "PatternEstimate",
    "constant_term",
    "estimate",
    "is_constant",
    "limited",
    "scanned_quads",
    "solutions",
    "work_of",
]

# Listing the matches of one pattern is only writing. The columns do that in a third of a reader's time, but a
# slow client holds one of their places, of which there are few: so one query at a time lists more.
LISTING_ROWS_MAX = 1_000_000
# The same of the triples of a CONSTRUCT in a format that is written line by line. For any other format the
# columns collect the triples before the first is sent; a reader sends them as it finds them.
COLLECTED_MAX = 50_000
_FILTERED = 0.1  # of the solutions, a filter leaves so many
_GROUPS = 1000.0  # of a GROUP BY, where nothing better is known
_MANY = 1e60  # more are not told apart


@dataclass(frozen=True, slots=True)
class PatternEstimate:
    """One triple pattern: the quads of the tables that it is looked for in, and how many may fit it."""

    triple: TriplePattern | Path
    scanned: int
    rows: int

    @property
    def pattern(self) -> str:
        return " ".join(map(_written, (self.triple.subject, self.triple.predicate, self.triple.object)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What stands in a query's patterns; reader_because is None where the columns are to answer. lists_many:
    it only lists the matches of one pattern, and they are many.
    """

    patterns: tuple[PatternEstimate, ...]
    reader_because: str | None
    lists_many: bool = False

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


def _patterns(pattern: Algebra, catalog: Catalog) -> tuple[PatternEstimate, ...]:
    nodes = reversed(list(nodes_below(pattern)))  # in the order of the text
    triples = [triple for node in nodes if isinstance(node, Bgp | Path) for triple in _triples(node)]
    return tuple([_pattern(triple, catalog) for triple in triples])


def scanned_quads(pattern: Algebra, catalog: Catalog) -> int:
    """The quads of the tables that the patterns are looked for in."""
    return sum(each.scanned for each in _patterns(pattern, catalog))


def estimate(query: AbstractQuery, catalog: Catalog, *, by_lines: bool = True) -> Estimate:
    """Evaluates nothing: exact counts per predicate, and of distinct subjects and objects the mean.

    by_lines: whether the triples of a CONSTRUCT are written line by line.
    """
    patterns, select = _patterns(query.pattern, catalog), query.select
    listed = patterns[0].rows if len(patterns) == 1 and _is_listing(query.form, select) else 0
    if select.length is not None:
        listed = min(listed, limited(select))
    because = None
    if query.form == "CONSTRUCT":
        constructed = _Solutions(catalog).of_select(select) * len(query.template)
        if constructed > (LISTING_ROWS_MAX if by_lines else COLLECTED_MAX):
            because = f"it makes about {constructed:.0f} triples, which a reader sends as it finds them"
    return Estimate(patterns, because, listed > LISTING_ROWS_MAX)


def solutions(pattern: Algebra, catalog: Catalog) -> float:
    """How many solutions a pattern has, on average."""
    return _Solutions(catalog).of(pattern, set(), 1.0)


def _triples(node: Any) -> Sequence[Any]:
    """Triple patterns, among which a path counts as one."""
    if isinstance(node, Path):
        return (node,)
    return node.triples if isinstance(node, Bgp) else ()


def limited(select: Select) -> int:
    """The rows that LIMIT and OFFSET read."""
    assert select.length is not None
    return select.length + (select.start or 0)


def work_of(query: AbstractQuery, found: Estimate, catalog: Catalog) -> Work:
    """What there is to do, however it is done."""
    select, walk = query.select, _Solutions(catalog)
    rows = walk.of(select.where, set(), 1.0)
    if select.is_grouped:
        rows = min(rows, _GROUPS) if select.keys else 1.0
    steps, needed = walk.steps, 1 if query.form == "ASK" else None
    if select.length is not None:
        needed = limited(select)
    if needed is not None and rows > needed:
        if not (select.is_grouped or select.order):  # else all are found first
            steps *= needed / rows
        rows = float(needed)
    scanned = sum(each.scanned for each in found.patterns)
    return Work(_kind(query, found), scanned, steps, rows * max(1, len(query.template)))


def _kind(query: AbstractQuery, found: Estimate) -> str:
    """What the time mostly goes into."""
    select = query.select
    if any(isinstance(each.triple, Path) for each in found.patterns):
        return "path"
    if query.form == "CONSTRUCT":
        return "triples"
    if select.is_grouped or select.modifier is Distinct:
        return "group"
    if select.order:
        return "order"
    return "list" if len(found.patterns) == 1 else "join"


class _Solutions:
    """How many solutions patterns have on average. steps counts all on the way."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.steps = 0.0

    def of_select(self, select: Select) -> float:
        """Of a query or sub-select, which is evaluated once."""
        found = self.of(select.where, set(), 1.0)
        if select.is_grouped:
            return 1.0  # at least one group; how many more is not known here
        return found if select.length is None else min(found, limited(select))

    def of(self, where: Algebra, bound: set[Any], times: float) -> float:
        """Of a group, for each solution before it, of which there are so many, where these variables have a
        value; what gets one here is added to them.
        """
        operands = operands_of(where)
        rows = self._joined([triple for each in operands for triple in _triples(each)], bound, times)
        first, steps = spine_of(where)
        rows = _product(rows, self._of_operand(first, bound, _product(times, rows)))
        for step in steps:
            match step:
                case Filter(expression=expression):
                    rows *= _FILTERED ** len(list(conjuncts(expression)))
                case LeftJoin(right=right, condition=condition):
                    found = self.of(right, bound, _product(times, rows))
                    rows = _product(rows, max(1.0, found * _FILTERED ** len(list(conjuncts(condition)))))
                case Join(right=right):
                    rows = _product(rows, self._of_operand(right, bound, _product(times, rows)))
        return rows

    def _of_operand(self, node: Algebra, bound: set[Any], times: float) -> float:
        """As `of`, of one operand; triple patterns are counted already."""
        match node:
            case Bgp() | Path():
                return 1.0
            case Values(variables=variables, rows=given):
                rows = _FILTERED if bound.intersection(variables) else float(len(given))
                bound.update(variables)
                return rows
            case Union(branches=branches):
                ways = [(self.of(each, known := set(bound), times), known) for each in branches]
                bound.update(*(known for _, known in ways))
                return sum(found for found, _ in ways)
            case Graph(pattern=pattern):
                return self.of(pattern, bound, times)
            case _ if isinstance(node, SELECT_NODES):
                select = Select.of(node)
                bound.update(select.variables or ())
                return self.of_select(select)
            case Service():
                return 1.0
        return self.of(node, bound, times)

    def _joined(self, triples: Sequence[Any], bound: set[Any], times: float) -> float:
        """As `of`, of triple patterns: each time the one that has the fewest matches is joined, of those that
        have a variable in common with what there is, where some have.
        """
        catalog = self._catalog
        left = [
            (each, [*map(_counted, _tables(each.predicate, catalog))], _pattern(each, catalog).rows)
            for each in triples
        ]
        rows = 1.0
        while left:
            places = [at for at, each in enumerate(left) if bound & _variables(each[0])] or range(len(left))
            matches, at = min((_matches(left[at][0], left[at][1], left[at][2], bound), at) for at in places)
            rows = _product(rows, matches)
            self.steps += _product(times, rows)
            bound |= _variables(left.pop(at)[0])
        return rows


def _product(one: float, other: float) -> float:
    return min(one * other, _MANY)


def _counted(table: PredicateTable) -> PredicateTable:
    """With as many subjects and objects as quads, where they were never counted: each has one."""
    known = table.subjects and table.objects
    return table if known else replace(table, subjects=table.quads, objects=table.quads)


def _variables(triple: Any) -> Set[Any]:
    """Those of a triple pattern; blank nodes are such here."""
    predicate = {triple.predicate} if isinstance(triple.predicate, Variable) else set()
    return _ends(triple) | predicate


def _matches(triple: Any, tables: Sequence[PredicateTable], rows: int, bound: Set[Any]) -> float:
    """How many matches a pattern has on average, where some variables have a value."""
    matches = float(rows)
    if triple.subject in bound:
        matches /= max(1, sum(table.subjects for table in tables))
    if triple.object in bound:
        matches /= max(1, sum(table.objects for table in tables))
    if triple.predicate in bound:
        matches /= max(1, len(tables))
    return matches


def _ends(triple: Any) -> Set[Any]:
    """The subject and the object, where they are no constants."""
    return {end for end in (triple.subject, triple.object) if not is_constant(end)}


def _is_listing(form: str, select: Select) -> bool:
    """Whether each match of the one pattern is a row: nothing filtered, grouped, sorted or made distinct."""
    return (
        form != "ASK"
        and isinstance(select.where, Bgp | Path)
        and select.modifier is not Distinct
        and not (select.is_grouped or select.extends or select.order)
    )


def _pattern(triple: Any, catalog: Catalog) -> PatternEstimate:
    tables = _tables(triple.predicate, catalog)
    scanned = rows = 0
    for table in tables:
        scanned += table.quads
        share = table.quads
        if is_constant(triple.subject):
            share = -(-share // max(1, table.subjects)) if catalog.id_of(constant_term(triple.subject)) else 0
        if is_constant(triple.object):
            share = -(-share // max(1, table.objects)) if catalog.id_of(constant_term(triple.object)) else 0
        rows += share
    return PatternEstimate(triple, scanned, rows)


def _tables(predicate: Any, catalog: Catalog) -> list[PredicateTable]:
    """Those that hold what a predicate or a path may match."""
    if isinstance(predicate, Iri):
        table = catalog.predicates.get(catalog.id_of(NamedNode(predicate.value)) or 0)
        return [] if table is None else [table]
    nodes = list(nodes_below(predicate))
    iris = [node for node in nodes if isinstance(node, Iri)]
    if not iris or any(isinstance(node, NegatedPropertySet) for node in nodes):
        return list(catalog.predicates.values())
    numbers = dict.fromkeys(catalog.id_of(constant_term(iri)) for iri in iris)
    return [catalog.predicates[number] for number in numbers if number in catalog.predicates]


def is_constant(term: Any) -> bool:
    """Whether a term of a pattern is an IRI or a literal."""
    return isinstance(term, Iri | RdfLiteral)


def constant_term(term: Any) -> Any:
    """A constant of a query in the engine's form."""
    return NamedNode(term.value) if isinstance(term, Iri) else literal_of(term)


def _written(part: Any) -> str:
    match part:
        case BlankNodeLabel(label=label):
            return f"?{label}"
        case RdfLiteral(language=None):
            return str(literal_of(part))
        case Iri() | RdfLiteral() | Variable():
            return written_term(part)
    return "(path)"
