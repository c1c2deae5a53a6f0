"""A SELECT of SPARQL, read as the live query that it is: followed near each change, or evaluated anew."""

from dataclasses import replace

from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed
from graphdb.geo.function_calls import calls_functions
from graphdb.live.patterns import Alternative, NotFlat, alternatives_of
from graphdb.live.solutions import SolutionQuery
from graphdb.live.whole import WholeQuery, predicates_of
from graphdb.sparql.algebra import Distinct, Select
from graphdb.sparql.dataset import own_dataset
from graphdb.sparql.engine_text import engine_text, engine_text_of
from graphdb.sparql.gate import check, read_query
from graphdb.sparql.patterns import Aggregate, Exists, SelectClause
from graphdb.sparql.repeatable import is_repeatable
from graphdb.sparql.syntax import Query
from graphdb.sparql.tame_expressions import may_compute_durations
from graphdb.sparql.terms import Variable
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["read_solution_query"]

_UNORDERED_AGGREGATES = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX"}
)  # any order of the rows gives the same


def read_solution_query(text: str, limits: GateLimits) -> SolutionQuery | WholeQuery:
    """Raises QuerySyntaxError, LimitExceeded; EvaluationFailed for a query that cannot be asked live."""
    query = read_query(text, None, limits)
    check(query, limits)
    if query.form != "SELECT":
        raise EvaluationFailed(f"only a SELECT can be asked live, not {query.form}")
    if query.service_hosts:
        raise EvaluationFailed("a query cannot be followed that has SERVICE")
    if not is_repeatable(query):
        raise EvaluationFailed("a query cannot be followed that has a function of the clock or of chance")
    try:
        return _followed_nearby(query)
    except NotFlat:
        return _whole(query, engine_text(query).text)


def _followed_nearby(query: Query) -> SolutionQuery:
    """Raises NotFlat."""
    assert query.select is not None
    assert query.where is not None
    modifiers = query.modifiers
    if query.dataset:
        raise NotFlat("FROM")
    if modifiers.limit is not None or modifiers.offset is not None:
        raise NotFlat("LIMIT or OFFSET")
    if any(isinstance(node, Exists) for node in nodes_below(query.select, modifiers)):
        raise NotFlat("EXISTS outside of its pattern")
    if may_compute_durations(query):  # only a process that can be killed may do that
        raise NotFlat("durations that are compared or added")
    alternatives = alternatives_of(query.where)
    is_distinct = query.select.distinct or query.select.reduced
    aggregates = [node for node in nodes_below(query) if isinstance(node, Aggregate)]
    if modifiers.group_by:
        if is_distinct or any(one.name not in _UNORDERED_AGGREGATES for one in aggregates):
            raise NotFlat("groups that depend on each other, or on the order of rows")
        columns, keys = _group_columns(query)
    elif aggregates or modifiers.having:
        raise NotFlat("an aggregate over everything")
    elif is_distinct:
        columns, keys = _shown(query), _plain(query.select, query.where.variables)
    else:
        columns, keys = _all_columns(query), None
    if keys is not None:
        keys &= _always_bound(alternatives)
        if not keys:
            raise NotFlat("groups without a key that all their triples have")
    return SolutionQuery(query.text, _whole(query, _with_columns(query, columns)), alternatives, keys)


def _with_columns(query: Query, columns: tuple[str, ...]) -> str:
    """The engine's text of a query that shows these instead."""
    asked = abstract_query(query)
    select = Select.of(asked.pattern)
    shown = replace(
        select, variables=tuple(map(Variable, columns)), modifier=Distinct if select.modifier else None
    )
    return engine_text_of(replace(asked, pattern=shown.pattern()))


def _whole(query: Query, text: str) -> WholeQuery:
    """text is what gives its rows."""
    return WholeQuery(
        query.text, text, _shown(query), predicates_of(query), own_dataset(query), calls_functions(query)
    )


def _shown(query: Query) -> tuple[str, ...]:
    assert query.select is not None
    columns = query.select.projections
    return _names(query) if columns is None else tuple(one.variable.name for one in columns)


def _names(query: Query) -> tuple[str, ...]:
    assert query.where is not None
    names = query.where.variables
    if query.values is not None:
        names |= {variable.name for variable in query.values.variables}
    return tuple(sorted(names))


def _all_columns(query: Query) -> tuple[str, ...]:
    """All variables, and what is computed."""
    assert query.select is not None
    columns = query.select.projections or ()
    return (*_names(query), *(one.variable.name for one in columns if one.expression is not None))


def _group_columns(query: Query) -> tuple[tuple[str, ...], frozenset[str]]:
    """What is asked for and the keys, so that no two groups give the same row; and those keys that are
    variables of the pattern. Raises NotFlat.
    """
    plain, columns = set(), list(_shown(query))
    for key in query.modifiers.group_by:
        name = key.variable
        if name is None and isinstance(key.expression, Variable):
            name = key.expression
            plain.add(name.name)
        if name is None:
            raise NotFlat("a group without a name")
        columns.append(name.name)
    return tuple(dict.fromkeys(columns)), frozenset(plain)


def _plain(select: SelectClause, names: frozenset[str]) -> frozenset[str]:
    """The columns that are variables of the pattern."""
    if select.projections is None:
        return names
    return frozenset(one.variable.name for one in select.projections if one.expression is None)


def _always_bound(alternatives: tuple[Alternative, ...]) -> frozenset[str]:
    """The variables that the triples of every solution have."""
    of_each = [frozenset().union(*(pattern.variables for pattern in one.required)) for one in alternatives]
    return frozenset.intersection(*of_each)
