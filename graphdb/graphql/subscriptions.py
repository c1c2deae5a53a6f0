"""Subscriptions: which changes concern them, and the states before and after."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson
from graphql import OperationType
from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError
from graphdb.graphql.demand import TYPES, Demand, Level, RootLevel
from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, VALIDATION_FAILED, Refused, failure, too_large
from graphdb.graphql.filters import Condition, condition_of
from graphdb.graphql.model import Model, Path, Scalar
from graphdb.graphql.planning import Operation
from graphdb.graphql.scalars import DATATYPES
from graphdb.graphql.schema import Schema
from graphdb.graphql.selection import (
    Choices,
    IdEntry,
    Member,
    ObjectEntry,
    ObjectsEntry,
    RootEntry,
    TypenameEntry,
    ValueEntry,
)
from graphdb.graphql.shaping import Cells, Nulled, Shaper, Table
from graphdb.graphql.translation import translate
from graphdb.live.neighbourhood import Around, TooFar
from graphdb.live.notifications import Notification
from graphdb.planning.gate import check, read_query

__all__ = ["ChangedQuery", "State", "read_subscription", "rows_of", "weight"]

# `Spread`: along which paths a resource shows what it shows, and so which resources a change may concern.


class _Place:
    """Where a way of paths leads. above and path: None at the beginning."""

    def __init__(self, above: "_Place | None", path: Path | None) -> None:
        self.above, self.path = above, path
        self.below: dict[Path, _Place] = {}

    def at(self, path: Path) -> "_Place":
        if path not in self.below:
            self.below[path] = _Place(self, path)
        return self.below[path]

    def take_condition(self, condition: Condition | None) -> None:
        for path, inner in condition.paths() if condition is not None else ():
            self.at(path).take_condition(inner)

    def take_level(self, level: Level, conditions: Mapping[int, Condition]) -> None:
        self.take_condition(conditions.get(level.branch))
        for path in level.values:
            self.at(path)
        for path, below in level.below.values():
            self.at(path).take_level(below, conditions)


class Spread:
    """All paths of a level, of the levels below it, and of their filters."""

    def __init__(self, level: Level, types: Path, conditions: Mapping[int, Condition]) -> None:
        """conditions: the filters of levels, by their branch. types: the path of rdf:type."""
        root = _Place(None, None)
        root.at(types)
        root.take_level(level, conditions)
        self._starts: dict[str, list[tuple[_Place, Path]]] = {}  # by predicate: where one looks along it
        waiting = [root]
        while waiting:
            place = waiting.pop()
            for path, below in place.below.items():
                self._starts.setdefault(path.iri, []).append((place, path))
                waiting.append(below)

    @property
    def predicates(self) -> frozenset[str]:
        """The IRIs of all predicates on the way."""
        return frozenset(self._starts)

    def concerned(self, around: Around) -> list[NamedNode]:
        """The resources from which a changed triple is visible, before the change or after it, and perhaps
        others; in the order of their IRIs. Raises TooFar.
        """
        found: dict[str, NamedNode] = {}
        seen: set[tuple[_Place, Any]] = set()
        for triple in (*around.removed, *around.added):
            for place, path in self._starts.get(triple[1].value, ()):
                waiting = [(place, triple[2] if path.inverse else triple[0])]
                while waiting:
                    here = waiting.pop()
                    if here in seen or not isinstance(here[1], NamedNode | BlankNode):
                        continue
                    seen.add(here)
                    if here[0].above is not None:
                        waiting += _back(here[0], here[1], around)
                    elif isinstance(here[1], NamedNode):
                        found[here[1].value] = here[1]
        return [found[iri] for iri in sorted(found)]


def _back(place: _Place, resource: Any, around: Around) -> Iterator[tuple[_Place, Any]]:
    """One step towards the beginning, as it is after the change.

    A way that was there before and is not any more has lost triples. Of these the one nearest to the
    beginning is a changed triple too, and all that stands between them is there.
    """
    assert place.above is not None
    assert place.path is not None
    inverse, predicate = place.path.inverse, place.path.predicate
    subject, object_ = (resource, None) if inverse else (None, resource)
    for triple in around.triples(subject, predicate, object_, after=True):
        yield place.above, triple[2 if inverse else 0]


# `State`: the graph before or after a change, as far as somebody looks; and what of it a selection shows.
#
# An operation that is asked once is one query of SPARQL. What a subscription shows is looked up triple by
# triple instead: nothing interrupts the engine, while each look is counted, and what is read once is known
# for all that the same change concerns.

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


# What a subscription follows: `<type>Changed`, told by the changes of the log.
#
# A resource is a record of it while it is of the type and meets the filter. One that becomes a record is
# CREATED, one that is no record any more DELETED; of one that stays a record UPDATED is told where what the
# selection shows of it has become different, however far away the change was. Where it shows nothing that
# could (`id` alone), each change of the resource's own triples is an UPDATED. `node` is as it is after the
# change, of DELETED as it was just before.

_SOME_RESOURCE = "urn:graphdb:changed"


class ChangedNotification(Notification):
    """result is a result of GraphQL; its `extensions` name the log index."""

    @cached_property
    def tail(self) -> bytes:
        """The payload, and the end of the message."""
        return b'"payload":' + orjson.dumps(self.result, option=orjson.OPT_NON_STR_KEYS) + b"}"


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """Equal where the same text was asked with the same variables, of the same schema: an `AroundQuery`."""

    schema: Schema
    text: str
    name: str | None
    variables: str  # as JSON
    _followed: "_Followed" = field(compare=False, repr=False)

    @property
    def graph(self) -> NamedNode | None:
        """See `AroundQuery`."""
        graph = self._followed.level.graph
        return None if graph is None else NamedNode(graph)

    @property
    def predicates(self) -> frozenset[str] | None:
        """See `AroundQuery`."""
        return None if self._followed.tells_any_change else self._followed.spread.predicates

    @property
    def whole(self) -> None:
        """See `AroundQuery`."""

    def notifications(self, index: int, around: Around) -> Iterator[Notification]:
        """See `AroundQuery`."""
        try:
            for kind, result in self._followed.events(around):
                yield ChangedNotification(index, kind, {**result, "extensions": {"index": index}})
        except RecursionError:
            raise TooFar from None


def read_subscription(operation: Operation, text: str, name: str | None, limits: GateLimits) -> ChangedQuery:
    """What an operation of type subscription follows. Raises Refused.

    text and name are what the operation was read from. It may be as large as a query of the same resource,
    whose SPARQL the limits let through.
    """
    assert operation.type is OperationType.SUBSCRIPTION
    demand = Demand()
    try:
        (entry,) = operation.selector(demand).roots(operation.definition) or (None,)
        if entry is None or not isinstance(entry.shown, ObjectsEntry):
            raise Refused([failure(VALIDATION_FAILED, "A subscription has one field that is followed.")])
        _check_size(operation.schema.model, demand, limits)
        followed = _Followed(operation.schema, demand, entry, entry.shown)
    except RecursionError:
        raise Refused([failure(COMPLEXITY_EXCEEDED, "A filter is nested too deeply.")]) from None
    variables = json.dumps(operation.variables, sort_keys=True)
    return ChangedQuery(operation.schema, text, name, variables, followed)


def _check_size(model: Model, demand: Demand, limits: GateLimits) -> None:
    """The filters are checked on the way. Raises Refused."""
    for level in demand.roots.values():
        level.iri = _SOME_RESOURCE
    query = translate(model, demand, 1)
    assert query is not None
    try:
        check(read_query(query, None, limits), limits)
    except LimitExceeded as error:
        raise Refused([too_large(error)]) from None
    except QuerySyntaxError:  # what we wrote can be wrong in one thing alone
        raise Refused([failure(COMPLEXITY_EXCEEDED, "A filter is nested too deeply.")]) from None


class _Followed:
    """One subscription, ready to look at changes."""

    def __init__(self, schema: Schema, demand: Demand, entry: RootEntry, shown: ObjectsEntry) -> None:
        self._schema, self._branches, self._key = schema, demand.branches, entry.key
        self._members, self.level = shown.members, shown.level
        self._conditions = dict(_conditions(schema.model, shown.level))
        self.spread = Spread(self.level, TYPES, self._conditions)
        assert self.level.type is not None
        self._classes = {one.class_iri for one in schema.model.below(self.level.type.name)}
        self.tells_any_change = not any(
            _shows_values(one.choices) for one in self._members if one.choices is not None
        )

    def events(self, around: Around) -> Iterator[tuple[str, dict[str, Any]]]:
        """What became of each record: how, and the result. Raises TooFar."""
        before, after = State(around, after=False), State(around, after=True)
        changed: set[Any] = set()
        if self.tells_any_change:
            changed = {triple[0] for triple in (*around.removed, *around.added)}
        found = dict.fromkeys(self.spread.concerned(around))
        own = sorted((one for one in changed if isinstance(one, NamedNode)), key=str)
        for resource in (*found, *(one for one in own if one not in found)):
            was, is_now = self._is_record(resource, before), self._is_record(resource, after)
            if was and is_now:
                result = self._result("UPDATED", resource, after, around)
                if resource in changed or result != self._result("UPDATED", resource, before, around):
                    yield "UPDATED", result
            elif is_now:
                yield "CREATED", self._result("CREATED", resource, after, around)
            elif was:
                yield "DELETED", self._result("DELETED", resource, before, around)

    def _is_record(self, resource: NamedNode, state: State) -> bool:
        if self._classes.isdisjoint(state.values(resource, TYPES)):
            return False
        condition = self._conditions.get(self.level.branch)
        return condition is None or state.meets(condition, resource)

    def _result(self, kind: str, resource: NamedNode, state: State, around: Around) -> dict[str, Any]:
        tables = rows_of(state, self.level, resource, self._conditions, self._branches)
        shaper = Shaper(self._schema, tables)
        event: dict[str, Any] = {}
        for one in self._members:
            if one.name == "mutationType":
                event[one.key] = kind
            elif one.choices is not None:
                weight(one.choices, str(resource), tables, around.look)
                event[one.key] = self._node(shaper, one)
            else:
                event[one.key] = one.type_name
        result: dict[str, Any] = {"data": {self._key: event}}
        if shaper.errors:
            result["errors"] = [error.formatted for error in shaper.errors]
        return result

    def _node(self, shaper: Shaper, member: Member) -> dict[str, Any] | None:
        try:
            return shaper.resource(ObjectsEntry(self.level, choices=member.choices), (self._key, member.key))
        except Nulled:
            return None


def _conditions(model: Model, level: Level) -> Iterator[tuple[int, Condition]]:
    """The filters of a level and of those below it, by branch."""
    if level.filter and level.type is not None:
        yield level.branch, condition_of(model, level.type, level.filter)
    for _, below in level.below.values():
        yield from _conditions(model, below)


def _shows_values(choices: Choices) -> bool:
    return any(
        not isinstance(entry, IdEntry | TypenameEntry) for entries in choices.values() for entry in entries
    )
