"""Counts that the view's statistics hold already."""

from collections.abc import Sequence

from graphdb.columns.blocks import Block
from graphdb.columns.graph_scope import Graphs, GraphScope
from graphdb.columns.groups import Groups
from graphdb.columns.term_ids import Tag
from graphdb.columns.values import Rep, Value
from graphdb.sparql.patterns import (
    Aggregate,
    GroupCondition,
    GroupGraphPattern,
    SolutionModifiers,
    TriplesBlock,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import PatternTerm, Variable

__all__ = ["counted_from_statistics", "counted_per_predicate"]

_COUNT = frozenset((Tag.INTEGER,))
_IRI = frozenset((Tag.IRI,))


def counted_from_statistics(query: Query, groups: Groups) -> Block | None:
    """The one solution of a count over `?s ?p ?o` with three variables, where all quads are in the default
    graph: COUNT of the quads or COUNT(DISTINCT) of the subjects, predicates or objects.
    """
    if query.modifiers != SolutionModifiers() or query.where is None or query.select is None:
        return None
    ends = _all_quads(query.where, groups)
    if ends is None or query.values is not None or len(query.select.projections or ()) != 1:
        return None
    catalog = groups.names.catalog
    ((projection,),) = (query.select.projections or (),)
    match projection.expression:
        case Aggregate(name="COUNT", expression=counted, distinct=False) if (
            counted is None or counted in ends
        ):
            count: int | None = sum(entry.quads for entry in catalog.predicates.values())
        case Aggregate(name="COUNT", expression=counted, distinct=True) if counted == ends[1]:
            count = sum(entry.quads > 0 for entry in catalog.predicates.values())
        case Aggregate(name="COUNT", expression=counted, distinct=True) if counted in (ends[0], ends[2]):
            count = catalog.distinct("subjects" if counted == ends[0] else "objects")
        case _:
            count = None
    if count is None:
        return None
    value = Value(str(count), Rep.INTEGER, _COUNT, nullable=False)
    return Block(groups.names, columns={projection.variable.name: value})


def counted_per_predicate(
    groups: Groups,
    where: GroupGraphPattern,
    conditions: Sequence[GroupCondition],
    aggregates: Sequence[Aggregate],
) -> tuple[Block, dict[Aggregate, Value]] | None:
    """`?s ?p ?o` grouped by ?p, where all aggregates are counts that the statistics have: as `grouped`."""
    ends = _all_quads(where, groups)
    if ends is None or len(conditions) != 1:
        return None
    subject, predicate, object_ = ends
    if conditions[0].expression != predicate or not isinstance(predicate, Variable):
        return None
    catalog = groups.names.catalog
    columns: dict[PatternTerm, str] = {predicate: "1"}
    if not any(entry.is_stale for entry in catalog.predicates.values()):
        columns |= {subject: "subjects", object_: "objects"}
    alias = groups.names.alias("q")
    found: dict[Aggregate, Value] = {}
    for aggregate in aggregates:
        counted = aggregate.expression
        if aggregate.name != "COUNT" or counted not in (None, *ends):
            return None
        if aggregate.distinct and counted not in columns:
            return None
        column = columns[counted] if aggregate.distinct and isinstance(counted, Variable) else "quads"
        sql = column if column == "1" else f"{alias}.{column}"
        found[aggregate] = Value(sql, Rep.INTEGER, _COUNT, nullable=False)
    name = (conditions[0].variable or predicate).name
    keys = {name: Value(f"{alias}.p", Rep.ID, _IRI, nullable=False)}
    return Block(groups.names, [f"(SELECT * FROM predicates WHERE quads > 0) {alias}"], [], keys), found


def _all_quads(
    where: GroupGraphPattern, groups: Groups
) -> tuple[PatternTerm, PatternTerm, PatternTerm] | None:
    """The three variables of a pattern that all quads match once, where it is nothing else."""
    if groups.names.catalog.named_graphs or groups.scope != GraphScope(Graphs()):
        return None
    match where.elements:
        case (TriplesBlock(triples=(triple,)),):
            ends = (triple.subject, triple.predicate, triple.object)
            if all(isinstance(end, Variable) for end in ends) and len(set(ends)) == 3:
                return ends  # type: ignore[return-value]
    return None
