"""Aggregations by scripts: the values that a script returns, in place of those of a field; `scripted_metric`.

Source: Elasticsearch's reference, "Scripted metric aggregation", and `script` of the aggregations of values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphdb.search.aggregations.aggregation import Aggregation, Answer, Definition, Rows, Scope
from graphdb.search.answer_room import take_room
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Floats, Leaf, Longs
from graphdb.search.scripts.documents import FieldValues
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.moments import Moment
from graphdb.search.scripts.results import json_value
from graphdb.search.scripts.script import (
    AGGREGATION,
    METRIC_COMBINE,
    METRIC_INIT,
    METRIC_MAP,
    METRIC_REDUCE,
    LeafScript,
    Script,
    parse_script,
)
from graphdb.search.scripts.values import Budget, check_extent, text_of

__all__ = ["ScriptedMetric", "ScriptedValues", "leaf_scripts", "parse_scripted_metric"]

_ENTRY_BYTES = 64  # of a value that a script has returned, beside its text
_COUNTED_BYTES = 1 << 20  # between two looks at the room of the request
_GROWN = 1_000_000  # characters and entries that scripts make between two looks at the size of states


def leaf_scripts(
    scope: Scope, script: Script, docs: Longs
) -> Iterator[tuple[slice, LeafScript, Leaf, Longs]]:
    """By leaf: which of the documents, the script there, the leaf, their numbers there."""
    for _, number, part in scope.columns.parts(docs):
        leaf = scope.columns.leaves[number]
        index, _, searcher = scope.searcher.part(leaf)
        context = scope.context.parts[index] if scope.context.parts else scope.context
        running = script.on(leaf, searcher.mapping, context.index_name)
        yield part, running, leaf, docs[part] - leaf.base


def _scores(scope: Scope, script: Script, leaf: Leaf) -> Floats | None:
    """Of all documents of a leaf, where a script reads them; 0 where nothing was scored."""
    if not script.needs_scores:
        return None
    size, scores = leaf.segment.size, scope.scores
    return np.zeros(size, np.float32) if scores is None else scores[leaf.base : leaf.base + size]


@dataclass(frozen=True, slots=True)
class ScriptedValues:
    """What a script returns for each document. storage: TERMS, INTS or FLOATS, what its values become."""

    script: Script
    storage: Storage

    @staticmethod
    def parse(body: Any, storage: Storage) -> "ScriptedValues":
        """Raises SearchError."""
        return ScriptedValues(parse_script(body, AGGREGATION), storage)

    def of(
        self, scope: Scope, docs: Longs, given: tuple[Longs, Sequence[Any]] | None = None
    ) -> tuple[Longs, list[Any]]:
        """(rows, values): the values of these documents, ascending within a document. Of a list that the
        script returns each is a value, and null is none.

        given: (rows, values) of a field; then the script runs for each of these, as `_value`. Raises
        SearchError.
        """
        rows = np.arange(len(docs)) if given is None else given[0]
        found: list[tuple[int, Any]] = []
        size_bytes = 0  # that are not counted yet
        for part, running, leaf, local in leaf_scripts(scope, self.script, docs[rows]):
            scores = _scores(scope, self.script, leaf)
            own = None if given is None else {"_value": given[1][part]}
            for row, returned in zip(rows[part].tolist(), running.values(local, scores, own), strict=True):
                for value in self._read(returned):
                    found.append((row, value))
                    size_bytes += _ENTRY_BYTES + (len(value) if isinstance(value, str) else 0)
                if size_bytes > _COUNTED_BYTES:
                    take_room(size_bytes)
                    size_bytes = 0
        found.sort()
        return np.array([row for row, _ in found], np.int64), [value for _, value in found]

    def _read(self, returned: Any) -> list[Any]:
        if isinstance(returned, FieldValues):
            returned = returned.values
        listed = returned if isinstance(returned, (list, tuple)) else (returned,)
        return [self._stored(value) for value in listed if value is not None]

    def _stored(self, value: Any) -> Any:
        if self.storage is Storage.TERMS:
            try:
                return text_of(value, Budget())
            except ScriptFault as fault:
                raise self.script.error(fault) from None
        if isinstance(value, Moment):
            value = value.ms
        if not isinstance(value, (bool, int, float)):
            raise SearchError(
                "aggregation_execution_exception",
                f"Unsupported script value [{str(value)[:100]}], expected a number, date, or boolean",
            )
        if self.storage is Storage.FLOATS:
            return float(value)
        return max(-(2**63), min(2**63 - 1, int(value))) if value == value else 0  # as Java casts


# `scripted_metric`: a state for each bucket, which scripts begin, fill and finish.


@dataclass(frozen=True)
class ScriptedMetric(Aggregation):
    """begin: None where a state begins as an empty map. fill runs for each document. finish makes of a state
    what a shard tells, and reduce of what all shards tell (`states`) the value.
    """

    begin: Script | None
    fill: Script
    finish: Script
    reduce: Script
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "scripted_metric"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        states: list[dict[str, Any]] = [{} for _ in range(rows.count)]
        if self.begin is not None:
            for state in states:
                checkpoint()
                self.begin.run({"state": state})
        self._fill(scope, rows, states)
        told = scope.gathered("states", [self._told(state) for state in states])
        return [{"value": self._value(list(own))} for own in zip(*told, strict=True)]

    def _fill(self, scope: Scope, rows: Rows, states: list[dict[str, Any]]) -> None:
        """Raises SearchError, also where the states are too large together."""
        grown = 0
        try:
            check_extent(states)
            for part, running, leaf, local in leaf_scripts(scope, self.fill, rows.docs):
                scores = _scores(scope, self.fill, leaf)
                of_rows = [states[owner] for owner in rows.owners[part].tolist()]
                for run in running.runs(local, scores, {"state": of_rows}):
                    checkpoint()
                    budget = Budget()
                    run(budget)
                    grown += budget.allocated + 1
                    if grown > _GROWN:
                        check_extent(states)
                        grown = 0
            check_extent(states)
        except ScriptFault as fault:
            raise self.fill.error(fault) from None

    def _told(self, state: dict[str, Any]) -> Any:
        checkpoint()
        try:
            return json_value(self.finish.run({"state": state}))
        except ScriptFault as fault:
            raise self.finish.error(fault) from None

    def _value(self, states: list[Any]) -> Any:
        checkpoint()
        try:
            return json_value(self.reduce.run({"states": states}))
        except ScriptFault as fault:
            raise self.reduce.error(fault) from None


def parse_scripted_metric(definition: Definition) -> Aggregation:
    """`init_script`, `map_script`, `combine_script`, `reduce_script`; `params` of all of them. Raises
    SearchError.
    """
    options = definition.options
    params = options.take("params", {})
    if not isinstance(params, Mapping):
        raise illegal_argument(f"[params] of [{definition.name}] must be an object")
    bodies = {name: options.take(name) for name in _SCRIPTS}
    options.done()
    for name, shown in _REQUIRED.items():
        if bodies[name] is None:
            raise illegal_argument(f"[{shown}] must not be null: [{definition.name}]")
    made = {}
    for name, body in bodies.items():
        if body is not None:
            script = parse_script(body, _SCRIPTS[name])
            made[name] = Script(script.source, script.lang, {**params, **script.params}, script.purpose)
    return ScriptedMetric(
        definition.common,
        made.get("init_script"),
        made["map_script"],
        made["combine_script"],
        made["reduce_script"],
    )


_SCRIPTS = {
    "init_script": METRIC_INIT,
    "map_script": METRIC_MAP,
    "combine_script": METRIC_COMBINE,
    "reduce_script": METRIC_REDUCE,
}
_REQUIRED = {"map_script": "mapScript", "combine_script": "combineScript", "reduce_script": "reduceScript"}
