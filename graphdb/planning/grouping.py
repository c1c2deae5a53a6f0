"""Groups where the engine accepts none, as sub-selects.

A computed column of a grouped SELECT may be used by those behind it, which the engine refuses:

    SELECT (SUM(?x) AS ?n) (?n / COUNT(?x) AS ?m) WHERE { P } GROUP BY ?k
    SELECT (?sum AS ?n) (?n / ?count AS ?m) WHERE {
      SELECT ?k (SUM(?x) AS ?sum) (COUNT(?x) AS ?count) WHERE { P } GROUP BY ?k }

Other forms than SELECT have no GROUP BY and HAVING to the engine:

    ASK WHERE { P } GROUP BY ?k HAVING (COUNT(?x) > 2)
    ASK WHERE { SELECT ?k WHERE { P } GROUP BY ?k HAVING (COUNT(?x) > 2) }
"""

from dataclasses import replace
from typing import Any

from graphdb.sparql.algebra import EMPTY, Algebra, Join, Project, Select
from graphdb.sparql.terms import Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["grouped_apart", "grouped_below", "uses_its_columns"]


def uses_its_columns(node: Any) -> bool:
    """Whether a node is the `Project` of a grouped SELECT with a column that is computed from one before."""
    if not isinstance(node, Project):
        return False
    select = Select.of(node)
    if not select.is_grouped or len(select.extends) < 2:
        return False
    before: set[Variable] = set()
    for variable, expression in select.extends:
        if before and any(each in before for each in nodes_below(expression) if isinstance(each, Variable)):
            return True
        before.add(variable)
    return False


def grouped_apart(node: Any) -> Any:
    """A node; of one that `uses_its_columns`, the columns are computed around the groups."""
    if not uses_its_columns(node):
        return node
    select = Select.of(node)
    return Select(
        _groups(select),
        extends=select.extends,
        order=select.order,
        variables=select.variables,
    ).pattern()


def grouped_below(pattern: Algebra) -> Algebra:
    """The pattern of a query that is no SELECT; of one that is grouped, the groups are a sub-select."""
    select = Select.of(pattern, has_columns=False)
    if not (select.keys or select.aggregates):  # HAVING alone groups nothing, and the engine reads that
        return pattern
    return Join(EMPTY, replace(select, variables=_names(select)).pattern())


def _groups(select: Select) -> Algebra:
    """The groups of a SELECT, each with its keys and aggregates."""
    return replace(
        select,
        extends=(),
        order=(),
        variables=_names(select),
        modifier=None,
        start=None,
        length=None,
    ).pattern()


def _names(select: Select) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys((*select.keys, *(variable for variable, _ in select.aggregates))))
