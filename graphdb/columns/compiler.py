"""From a query's tree to SQL over the column view: `compile_query`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyoxigraph import NamedNode

from graphdb.columns.aggregates import grouped
from graphdb.columns.blocks import Block, Names, joined
from graphdb.columns.catalog import Catalog
from graphdb.columns.expressions import Expressions, literal_of
from graphdb.columns.graph_scope import Graphs, GraphScope
from graphdb.columns.groups import Groups, inline_data
from graphdb.columns.ordering import sort_keys, tie_keys
from graphdb.columns.rendering import rendered
from graphdb.columns.statistics_answers import counted_from_statistics, counted_per_predicate
from graphdb.columns.values import DICTIONARY, SQL_LENGTH_MAX, NotExact, Rep, Value
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.patterns import (
    Aggregate,
    Bind,
    Expression,
    GraphPattern,
    GroupCondition,
    GroupGraphPattern,
    InlineData,
    Projection,
    SelectClause,
    SolutionModifiers,
    SubSelect,
    TriplesBlock,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, TripleTerm, Variable
from graphdb.sparql.translation import columns_of
from graphdb.sparql.tree_walk import has_aggregate, nodes_below

__all__ = ["CompiledQuery", "NotCompiled", "Template", "compile_query"]

Template: TypeAlias = tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """SQL that answers a query, in the transaction that the catalog was read in.

    form is SELECT, ASK or CONSTRUCT. The rows have a column for each of variables, as `results` reads them;
    those of ASK say only that there is one. unseen are the numbers that stand in them for terms that the view
    does not hold, and the terms in N-Triples. template is CONSTRUCT's. The SQL may fail with what the
    engine would have to compute: any error but an interrupt sends the query to a reader.
    """

    form: str
    variables: tuple[str, ...]
    sql: str
    unseen: Mapping[int, str] = field(default_factory=dict)
    template: Template = ()


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """construct is what has no exact meaning in SQL, in words for `explain`."""

    construct: str


def compile_query(query: Query, dataset: Dataset, catalog: Catalog) -> CompiledQuery | NotCompiled:
    """The query over the columns, or why a reader has to answer it.

    dataset is the protocol's, which overrides the query's own.
    """
    try:
        compiled = _compiled(query, dataset or own_dataset(query), catalog)
    except NotExact as reason:
        return NotCompiled(str(reason))
    if len(compiled.sql) > SQL_LENGTH_MAX:
        return NotCompiled("a query that is too long in SQL")
    return compiled


def _compiled(query: Query, dataset: Dataset, catalog: Catalog) -> CompiledQuery:
    names = Names(catalog, _loose(query))
    groups = Groups(names, GraphScope(_graphs(names, dataset)), _sub_select)
    if query.where is None or query.form == "DESCRIBE":
        raise NotExact("DESCRIBE")
    if query.form == "SELECT":
        assert query.select is not None
        answered = counted_from_statistics(query, groups)
        if answered is not None:
            sql = rendered(names, answered, tuple(answered.columns))
            return CompiledQuery("SELECT", tuple(answered.columns), sql, names.unseen())
        solved = _solved(groups, query.select, query.where, query.modifiers, query.values)
        columns = tuple(columns_of(query))
        sql = rendered(names, solved.block, columns, solved.keys, solved.suffix)
        return CompiledQuery("SELECT", columns, sql, names.unseen())
    if query.modifiers.group_by or _aggregates(*query.modifiers.having, *_ordered_by(query.modifiers)):
        raise NotExact(f"an aggregate or GROUP BY in {query.form}")
    star = SelectClause(None, distinct=False, reduced=False, span=query.where.span)
    solved = _solved(groups, star, query.where, query.modifiers, query.values)
    if query.form == "ASK":
        sql = f"{names.with_clause()}SELECT 1{solved.block.rest()}{_asked(solved)}"
        return CompiledQuery("ASK", (), sql)
    template = tuple((each.subject, each.predicate, each.object) for each in query.template or ())
    columns = tuple(dict.fromkeys(name for triple in template for term in triple for name in _names(term)))
    block = solved.block
    block.columns = {name: value for name, value in block.columns.items() if name in columns}
    columns = tuple(name for name in columns if name in block.columns)
    sql = rendered(names, block, columns, solved.keys, solved.suffix)
    return CompiledQuery("CONSTRUCT", columns, sql, names.unseen(), template)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Solved:
    """Solutions, the conditions of ORDER BY over them, and LIMIT and OFFSET."""

    block: Block
    keys: list[str]
    suffix: str


def _asked(solved: _Solved) -> str:
    return solved.suffix or " LIMIT 1"


def _sub_select(groups: Groups, query: SubSelect) -> Block:
    solved = _solved(groups, query.select, query.where, query.modifiers, query.values)
    block = solved.block
    if not solved.suffix:
        return block
    order = f" ORDER BY {', '.join(solved.keys)}" if solved.keys else ""
    return block.wrapped(suffix=order + solved.suffix)


def _solved(
    groups: Groups,
    select: SelectClause,
    where: GroupGraphPattern,
    modifiers: SolutionModifiers,
    values: InlineData | None,
) -> _Solved:
    """The solutions with the columns that are selected. Raises NotExact."""
    solved = block = groups.group(where)
    if values is not None:
        solved = block = joined(block, inline_data(groups.names, values))
    projections = select.projections
    if len({each.variable for each in projections or ()}) < len(projections or ()):
        raise NotExact("a column that is selected twice")
    expressions = [each.expression for each in projections or () if each.expression is not None]
    conditions = _ordered_by(modifiers)
    aggregates = _aggregates(*expressions, *modifiers.having, *conditions)
    if aggregates or modifiers.group_by:
        counted = (
            counted_per_predicate(groups, where, modifiers.group_by, aggregates) if values is None else None
        )
        block, found = counted or grouped(Expressions(block, groups.exists), modifiers.group_by, aggregates)
        evaluate = Expressions(block, groups.exists, aggregates=found)
    else:
        evaluate = Expressions(block, groups.exists)
    for having in modifiers.having:
        block.conditions.append(evaluate.condition(having))
    made: set[str] = set()
    for projection in projections or ():
        if projection.expression is not None:
            used = {node.name for node in nodes_below(projection.expression) if isinstance(node, Variable)}
            if block is not solved and not made.isdisjoint(used):
                raise NotExact("a grouped SELECT that uses a column before it")
            made.add(projection.variable.name)
            value = evaluate.value(projection.expression)
            if value.lang is not None:
                raise NotExact("a column of computed strings with a language")
            block.columns[projection.variable.name] = value
    if projections is None:
        shown = {name for name in block.columns if not name.startswith("_:")}
    else:
        shown = {each.variable.name for each in projections}
    suffix = "" if modifiers.limit is None else f" LIMIT {modifiers.limit}"
    suffix += f" OFFSET {modifiers.offset}" if modifiers.offset else ""
    if select.distinct or select.reduced:
        if any(
            isinstance(node, Variable) and node.name not in shown for node in nodes_below(*conditions)
        ) or has_aggregate(*conditions):
            raise NotExact("ORDER BY what SELECT DISTINCT does not show")
        block.columns = {name: value for name, value in block.columns.items() if name in shown}
        block = block.wrapped(distinct=True)
        evaluate = Expressions(block, groups.exists)
    leading = _leading(block, modifiers)
    if leading is not None:
        block = leading
        evaluate = Expressions(block, groups.exists)
    keys = _keys(evaluate, modifiers)
    block.columns = {name: value for name, value in block.columns.items() if name in shown}
    return _Solved(block, keys, suffix)


def _leading(block: Block, modifiers: SolutionModifiers) -> Block | None:
    """The rows that the first condition of ORDER BY leaves for LIMIT, so that the terms of no others are
    looked up for the next conditions; None where that saves nothing.
    """
    values = []
    for condition in modifiers.order_by:
        variable = condition.expression
        if not isinstance(variable, Variable) or variable.name not in block.columns:
            return None
        values.append(block.columns[variable.name])
    if modifiers.limit is None or not values or _is_looked_up(values[0]):
        return None
    if not any(map(_is_looked_up, values[1:])):
        return None
    keys = ", ".join(sort_keys(block, values[0], modifiers.order_by[0].descending))
    count = modifiers.limit + (modifiers.offset or 0)
    return block.wrapped(suffix=f" QUALIFY rank() OVER (ORDER BY {keys}) <= {count}") if keys else None


def _is_looked_up(value: Value) -> bool:
    return value.rep is Rep.ID and not value.tags.isdisjoint(DICTIONARY)


def _ordered_by(modifiers: SolutionModifiers) -> list[Expression]:
    return [each.expression for each in modifiers.order_by]


def _aggregates(*roots: Expression) -> list[Aggregate]:
    return list(dict.fromkeys(node for node in nodes_below(*roots) if isinstance(node, Aggregate)))


def _loose(query: Query) -> frozenset[str]:
    """The variables that stand at one place of the whole query that can bind them."""
    places: Counter[str] = Counter()
    for node in nodes_below(query):
        match node:
            case TriplesBlock(triples=triples):
                ends = (end for each in triples for end in (each.subject, each.predicate, each.object))
                places.update(_end(end) for end in ends if isinstance(end, Variable | BlankNodeLabel))
            case GraphPattern(name=Variable(name=name)) | Bind(variable=Variable(name=name)):
                places[name] += 1
            case Projection(variable=Variable(name=name), expression=made) if made is not None:
                places[name] += 1
            case GroupCondition(variable=Variable(name=name)):
                places[name] += 1
            case InlineData(variables=variables):
                places.update(variable.name for variable in variables)
    return frozenset(name for name, count in places.items() if count == 1)


def _end(end: Variable | BlankNodeLabel) -> str:
    return end.name if isinstance(end, Variable) else f"_:{end.label}"


def _keys(expressions: Expressions, modifiers: SolutionModifiers) -> list[str]:
    keys: list[str] = []
    ties: list[str] = []
    for condition in modifiers.order_by:
        value = expressions.value(condition.expression)
        if value.lang is not None:
            raise NotExact("an order of computed strings with a language")
        keys += sort_keys(expressions.block, value, condition.descending)
        ties += tie_keys(value, condition.descending)
    return keys + ties


def _graphs(names: Names, dataset: Dataset) -> Graphs:
    if not dataset:
        return Graphs()
    default = _numbers(names, dataset.default_graphs)
    if len(set(default)) < len(default):
        raise NotExact("a graph that is in the default graph twice")
    return Graphs(default, _numbers(names, dataset.named_graphs))


def _numbers(names: Names, graphs: Sequence[NamedNode]) -> tuple[int, ...]:
    numbers = [names.constant(graph).constant for graph in graphs]
    return tuple(number for number in numbers if number is not None)


def _names(term: object) -> list[str]:
    match term:
        case Variable(name=name):
            return [name]
        case TripleTerm():
            raise NotExact("a triple term in a template")
        case RdfLiteral():
            # an answer's triples go through a store, which writes numbers and dates in its own way
            if literal_of(term).value != term.value:
                raise NotExact("a literal in a template that is not in the form of its value")
            return []
        case Iri() | BlankNodeLabel():
            return []
    raise NotExact("a path in a template")
