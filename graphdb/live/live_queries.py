"""A statement as the live query that it asks for.

A SELECT of SPARQL is followed near each change where its algebra permits this, and else evaluated again.
"""

from dataclasses import replace

from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed
from graphdb.geo.entailment import is_derived
from graphdb.geo.function_calls import calls_functions
from graphdb.live.change_patterns import Alternative, NotFlat, alternatives_of
from graphdb.live.matcher import LiveQuery
from graphdb.live.sparql_queries import SolutionQuery, WholeQuery
from graphdb.live.statement import SparqlText, read_statement
from graphdb.planning.bounded_expressions import may_compute_durations
from graphdb.planning.decisions import is_repeatable
from graphdb.planning.engine_text import engine_text, engine_text_of
from graphdb.planning.gate import check, check_present, read_query
from graphdb.sparql.algebra import AbstractQuery, Algebra, Distinct, Exists, Select, variables_in_scope
from graphdb.sparql.dataset import own_dataset
from graphdb.sparql.dependencies import predicates_read, triple_patterns
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Variable
from graphdb.sparql.translation import abstract_query, searches_of
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["read_live_query"]

_UNORDERED_AGGREGATES = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX"}
)  # any order of the rows gives the same


def read_live_query(text: str, limits: GateLimits) -> LiveQuery:
    """Raises QuerySyntaxError, LimitExceeded; EvaluationFailed for a query that cannot be asked live."""
    statement = read_statement(text)
    if isinstance(statement, SparqlText):
        return _read_sparql(statement.text, limits)
    return statement


def _read_sparql(text: str, limits: GateLimits) -> SolutionQuery | WholeQuery:
    query = read_query(text, None, limits)
    check(query, limits)
    check_present(query)
    if query.form != "SELECT":
        raise EvaluationFailed(f"only a SELECT can be asked live, not {query.form}")
    if query.service_hosts:
        raise EvaluationFailed("a query cannot be followed that has SERVICE")
    if searches_of(query):
        raise EvaluationFailed(
            "a query cannot be followed that has a search: any literal may change its hits"
        )
    if not is_repeatable(query):
        raise EvaluationFailed("a query cannot be followed that has a function of the clock or of chance")
    asked = abstract_query(query)
    try:
        return _followed_nearby(query, asked)
    except NotFlat:
        return _whole(query, asked, engine_text(query).text)


def _followed_nearby(query: Query, asked: AbstractQuery) -> SolutionQuery:
    """Raises NotFlat."""
    select = asked.select
    if asked.dataset:
        raise NotFlat("FROM")
    if select.start is not None or select.length is not None:
        raise NotFlat("LIMIT or OFFSET")
    if may_compute_durations(asked.pattern):  # only a process that can be killed may do that
        raise NotFlat("durations that are compared or added")
    pattern = _solutions(select)
    _check_no_exists_behind(select)
    alternatives = alternatives_of(pattern)
    columns, keys = _columns_and_keys(select, pattern)
    if keys is not None:
        keys &= _always_bound(alternatives)
        if not keys:
            raise NotFlat("groups without a key that all their triples have")
    return SolutionQuery(query.text, _whole(query, asked, _with_columns(asked, columns)), alternatives, keys)


def _solutions(select: Select) -> Algebra:
    """What has the solutions that are shown or grouped."""
    return select.where if select.is_grouped else Select(select.where, extends=select.extends).pattern()


def _check_no_exists_behind(select: Select) -> None:
    """Raises NotFlat for an EXISTS about groups or in the order: it belongs to no solution."""
    expressions = [*select.order, *(aggregate for _, aggregate in select.aggregates)]
    if select.having is not None:
        expressions.append(select.having)
    if select.is_grouped:
        expressions += [expression for _, expression in select.extends]
    if any(isinstance(node, Exists) for node in nodes_below(*expressions)):
        raise NotFlat("EXISTS outside of its pattern")


def _columns_and_keys(select: Select, pattern: Algebra) -> tuple[tuple[str, ...], frozenset[str] | None]:
    """The columns that identify a record, and what all solutions of a record have in common; None where a
    record is one solution. Raises NotFlat.
    """
    shown = _names(select.variables)
    if select.keys:
        if select.modifier or any(one.name not in _UNORDERED_AGGREGATES for _, one in select.aggregates):
            raise NotFlat("groups that depend on each other, or on the order of rows")
        keys = _names(select.keys)
        return tuple(dict.fromkeys((*shown, *keys))), frozenset(keys)
    if select.is_grouped:
        raise NotFlat("an aggregate over everything")
    if select.modifier:
        return shown, frozenset(shown)
    return tuple(sorted(variables_in_scope(pattern))), None


def _with_columns(asked: AbstractQuery, columns: tuple[str, ...]) -> str:
    """The engine's text of a query that shows these instead."""
    select = asked.select
    modifier = Distinct if select.modifier else None
    shown = replace(select, variables=tuple(map(Variable, columns)), modifier=modifier)
    return engine_text_of(replace(asked, pattern=shown.pattern()))


def _whole(query: Query, asked: AbstractQuery, text: str) -> WholeQuery:
    """text is what gives its rows."""
    # what is derived depends on the geometries of both ends
    is_any = any(map(is_derived, triple_patterns(asked.pattern)))
    predicates = None if is_any else predicates_read(asked.pattern)
    shown = _names(asked.select.variables)
    return WholeQuery(query.text, text, shown, predicates, own_dataset(query), calls_functions(query))


def _names(variables: tuple[Variable, ...] | None) -> tuple[str, ...]:
    return tuple(variable.name for variable in variables or ())


def _always_bound(alternatives: tuple[Alternative, ...]) -> frozenset[str]:
    """The variables that the triples of every solution have."""
    of_each = [frozenset().union(*(pattern.variables for pattern in one.required)) for one in alternatives]
    return frozenset.intersection(*of_each)
