"""What a subscription follows: `<type>Changed`, told by the changes of the log.

A resource is a record of it while it is of the type and meets the filter. One that becomes a record is
CREATED, one that is no record any more DELETED; of one that stays a record UPDATED is told where what the
selection shows of it has become different, however far away the change was. Where it shows nothing that could
(`id` alone), each change of the resource's own triples is an UPDATED. `node` is as it is after the change, of
DELETED as it was just before.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson
from graphql import OperationType
from pyoxigraph import NamedNode

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError
from graphdb.graphql.conditions import Condition, condition_of
from graphdb.graphql.demand import TYPES, Demand, Level
from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, VALIDATION_FAILED, Refused, failure, too_large
from graphdb.graphql.model import Model
from graphdb.graphql.planning import Operation
from graphdb.graphql.schema import Schema
from graphdb.graphql.selection import Choices, IdEntry, Member, ObjectsEntry, RootEntry, TypenameEntry
from graphdb.graphql.shaping import Nulled, Shaper
from graphdb.graphql.spread import Spread
from graphdb.graphql.states import State, rows_of, weight
from graphdb.graphql.translation import translate
from graphdb.live.neighbourhood import Around, TooFar
from graphdb.live.notifications import Notification
from graphdb.sparql.gate import check, read_query

__all__ = ["ChangedNotification", "ChangedQuery", "read_subscription"]

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

    def told(self, index: int, around: Around) -> Iterator[Notification]:
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
