"""`State`: the graph before or after a change, as far as somebody looks; and what of it a selection shows.

An operation that is asked once is one query of SPARQL. What a subscription shows is looked up triple by
triple instead: nothing interrupts the engine, while each look is counted, and what is read once is known for
all that the same change concerns.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.graphql.conditions import Condition
from graphdb.graphql.demand import TYPES, Level, RootLevel
from graphdb.graphql.model import Path, Scalar
from graphdb.graphql.rows import Cells, Table
from graphdb.graphql.scalars import DATATYPES
from graphdb.graphql.selection import Choices, ObjectEntry, ValueEntry
from graphdb.live.neighbourhood import Around

__all__ = ["State", "rows_of", "weight"]

_STRING = DATATYPES[Scalar.STRING]
Conditions = Mapping[int, Condition]  # of levels, by their branch


class State:
    """For one change and one query. All methods raise TooFar."""

    def __init__(self, around: Around, *, after: bool) -> None:
        self._around, self._after = around, after
        self._values: dict[tuple[Any, Path], Sequence[Any]] = {}
        self._meets: dict[tuple[int, Any], bool] = {}

    def values(self, resource: Any, path: Path) -> Sequence[Any]:
        """The terms that a path leads to."""
        key = resource, path
        found = self._values.get(key)
        if found is None:
            if path.inverse:
                triples = self._around.triples(None, path.predicate, resource, after=self._after)
                found = [triple[0] for triple in triples]
            else:
                triples = self._around.triples(resource, path.predicate, None, after=self._after)
                found = [triple[2] for triple in triples]
            self._values[key] = found
        return found

    def resources(self, resource: Any, path: Path) -> Sequence[Any]:
        """Those of them that are IRIs or blank nodes."""
        return [one for one in self.values(resource, path) if isinstance(one, NamedNode | BlankNode)]

    def meets(self, condition: Condition, resource: Any) -> bool:
        """Whether a condition holds of a resource; found out once, however many ways lead there."""
        key = id(condition), resource
        found = self._meets.get(key)
        if found is None:
            found = self._meets[key] = condition.holds(resource, self)
        return found


def rows_of(
    state: State, level: RootLevel, resource: NamedNode, conditions: Conditions, branches: int
) -> list[Table]:
    """What a query of SPARQL would answer of one resource: see `rows.tables`."""
    tables: list[Table] = [{} for _ in range(branches)]
    tables[level.branch][_cell(resource)] = _cells(state.values(resource, TYPES))
    waiting: list[tuple[Level, Any]] = [(level, resource)]
    while waiting:
        here, subject = waiting.pop()
        cell = _cell(subject)
        for path, branch in here.values.items():
            if path == TYPES and here is level:
                continue
            if cell in tables[branch]:
                break  # this resource was here before
            tables[branch][cell] = _cells(state.values(subject, path))
        for path, below in here.below.values():
            table = tables[below.branch]
            if cell in table:
                continue
            condition = conditions.get(below.branch)
            reached = [
                one
                for one in state.resources(subject, path)
                if condition is None or state.meets(condition, one)
            ]
            table[cell] = _cells(reached)
            waiting += [(below, one) for one in reached]
    return tables


def weight(choices: Choices, resource: str, tables: Sequence[Table], spend: Callable[[int], None]) -> None:
    """Spend as much as an answer has values, at most: what is reached several ways is shown as often."""
    known: dict[tuple[int, str], int] = {}

    def weighed(choices: Choices, cell: str) -> int:
        key = id(choices), cell
        if key not in known:
            known[key] = max(sum(of_entry(one, cell) for one in entries) for entries in choices.values())
        return known[key]

    def of_entry(entry: Any, cell: str) -> int:
        if isinstance(entry, ValueEntry):
            return 1 + len(tables[entry.branch].get(cell, ()))
        if not isinstance(entry, ObjectEntry):
            return 1
        found = [weighed(entry.choices, one) for one in tables[entry.level.branch].get(cell, ())]
        if entry.first is not None or not entry.field.is_list:
            found = sorted(found, reverse=True)[: entry.first if entry.field.is_list else 1]
        return 1 + sum(found)

    spend(weighed(choices, resource))


def _cells(terms: Sequence[Any]) -> Cells:
    return dict.fromkeys(sorted(map(_cell, terms)))  # the same order before and after


def _cell(term: Any) -> str:
    """As `terms.read_value` reads it; equal for equal terms alone."""
    if not isinstance(term, Literal):
        return str(term)
    text = term.value.replace("\\", "\\\\").replace('"', '\\"')
    if term.language:
        tag = str(term).rpartition("@")[2]  # with the direction
        return f'"{text}"@{tag}'
    if term.datatype.value == _STRING:
        return f'"{text}"'
    return f'"{text}"^^<{term.datatype.value}>'
