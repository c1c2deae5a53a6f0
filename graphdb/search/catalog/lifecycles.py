"""Lifecycles of indexes: what a policy makes of an index with time, as far as it means something here.

A policy rolls over what writes to an index, blocks its writes, and deletes it. What other actions would do is
done anyway (merging, moving between nodes), or a policy with them is refused.

Ages count from the rollover of an index, or from its creation where its policy has none. When an index was
rolled over is when the next one was created, so nothing needs to be remembered.

Source: Elasticsearch 8's documentation of index lifecycle management.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from graphdb.search.catalog.catalog_commands import (
    Command,
    DeleteIndices,
    PutLifecycle,
    PutSettings,
    RollOver,
)
from graphdb.search.catalog.data_streams import backing_indexes, next_backing_name
from graphdb.search.catalog.index_settings import MOVED_TO, duration_ms, flag_setting
from graphdb.search.catalog.rollover import (
    RolloverSource,
    check_conditions,
    met_conditions,
    next_name,
    suffices,
)
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.catalog.stream_lifecycles import is_kept_by_stream
from graphdb.search.errors import SearchError, illegal_argument

__all__ = [
    "LifecycleStep",
    "Standing",
    "check_move",
    "checked_policy",
    "due_command",
    "due_commands",
    "is_running",
    "moved_settings",
    "policy_name",
    "standing_of",
    "with_lifecycle",
    "without_lifecycles",
]

_PHASES = ("hot", "warm", "cold", "frozen", "delete")
_NOTHING_TO_DO = {"allocate", "forcemerge", "migrate", "set_priority", "unfollow"}
_REFUSED = {"downsample", "searchable_snapshot", "shrink", "wait_for_snapshot"}
_NAME_MAX, _POLICIES_MAX = 255, 1_000
_ONLY_IN = {"rollover": "hot", "delete": "delete"}


def checked_policy(body: Any) -> dict[str, Any]:
    """The policy in the body of `PUT _ilm/policy/{name}`. Errors: SearchError."""
    policy = body.get("policy") if isinstance(body, Mapping) else None
    if not isinstance(policy, Mapping) or not isinstance(policy.get("phases"), Mapping):
        raise illegal_argument("a lifecycle needs [policy] with [phases]")
    for name in policy:
        if name not in ("phases", "_meta", "deprecated"):
            raise SearchError("x_content_parse_exception", f"[lifecycle_policy] unknown field [{name[:100]}]")
    for name, phase in policy["phases"].items():
        if name not in _PHASES:
            raise illegal_argument(f"Timeseries lifecycle does not support phase [{name[:100]}]")
        if not isinstance(phase, Mapping) or not phase.keys() <= {"min_age", "actions"}:
            raise SearchError("x_content_parse_exception", f"[phases] failed to parse field [{name}]")
        _age_ms(phase)
        actions = phase.get("actions", {})
        if not isinstance(actions, Mapping):
            raise SearchError("x_content_parse_exception", f"[{name}] failed to parse field [actions]")
        for action, options in actions.items():
            _check_action(name, action, options)
    return dict(policy)


def _check_action(phase: str, action: str, options: Any) -> None:
    if action in _REFUSED:
        raise illegal_argument(f"lifecycle action [{action}] is not supported")
    known = action in _NOTHING_TO_DO or action in (*_ONLY_IN, "readonly")
    if not known or _ONLY_IN.get(action, phase) != phase:
        raise illegal_argument(f"invalid action [{action[:100]}] defined in phase [{phase}]")
    if not isinstance(options, Mapping):
        raise SearchError("x_content_parse_exception", f"[actions] failed to parse field [{action}]")
    if action == "rollover":
        if not any(name.startswith("max_") for name in options):
            raise illegal_argument("At least one max_* rollover condition must be set.")
        check_conditions(options)


def _age_ms(phase: Mapping[str, Any]) -> float:
    age = duration_ms(str(phase.get("min_age", "0ms")), "min_age")
    if age < 0:
        raise illegal_argument("[min_age] must not be negative")
    return age


def with_lifecycle(state: CatalogState, command: PutLifecycle, timestamp_ms: int) -> CatalogState:
    """Errors: illegal_argument_exception."""
    name, there = command.name, state.lifecycles
    if not name or len(name) > _NAME_MAX or name.startswith("_") or any(one in name for one in ", *"):
        raise illegal_argument(f"invalid policy name [{name[:100]}]")
    if name not in there and len(there) >= _POLICIES_MAX:
        raise illegal_argument(f"there cannot be more than [{_POLICIES_MAX}] lifecycle policies")
    version = there[name]["version"] + 1 if name in there else 1
    stored = {"version": version, "modified_ms": timestamp_ms, "policy": command.policy}
    return replace(state, lifecycles={**there, name: stored})


def without_lifecycles(state: CatalogState, names: Sequence[str]) -> CatalogState:
    """Errors: resource_not_found_exception; illegal_argument_exception for one that an index names."""
    for name in names:
        if name not in state.lifecycles:
            reason = f"Lifecycle policy not found: {name[:100]}"
            raise SearchError("resource_not_found_exception", reason, 404)
        users = sorted(index.name for index in state.by_uuid.values() if policy_name(index) == name)
        if users:
            raise illegal_argument(
                f"Cannot delete policy [{name}]. It is in use by one or more indices: "
                f"[{', '.join(users[:20])}]"
            )
    kept = {name: one for name, one in state.lifecycles.items() if name not in names}
    return replace(state, lifecycles=kept)


def policy_name(index: Index) -> str | None:
    """The policy that an index names."""
    name = index.settings.get("lifecycle.name")
    return str(name) if name else None


@dataclass(frozen=True, slots=True)
class LifecycleStep:
    """A place in a policy. action, name: None: the first of the phase, of the action."""

    phase: str
    action: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an index is in its lifecycle. target: the alias or data stream that a rollover is of.

    since_ms: from when its age counts; waits: for its rollover, and nothing else happens before. moved_to: a
    phase that has begun, with those before, whatever the age.
    """

    policy: str
    phases: Mapping[str, Any]
    target: str | None
    waits: bool
    since_ms: int
    moved_to: str | None = None

    def phase(self, now_ms: int) -> str:
        """The last phase that has begun."""
        if self.waits:
            return "hot"
        begun = [name for name in _PHASES if name in self.phases and self._has_begun(name, now_ms)]
        return begun[-1] if begun else "new"

    def _has_begun(self, name: str, now_ms: int) -> bool:
        if self.moved_to is not None and _PHASES.index(name) <= _PHASES.index(self.moved_to):
            return True
        return now_ms - self.since_ms >= _age_ms(self.phases[name])

    def step(self, now_ms: int) -> "LifecycleStep":
        """Where it is, in Elasticsearch's words."""
        if self.waits:
            return LifecycleStep("hot", "rollover", "check-rollover-ready")
        return LifecycleStep(self.phase(now_ms), "complete", "complete")

    def does(self, action: str, now_ms: int) -> bool:
        """Whether a phase that has begun has the action."""
        return not self.waits and any(
            action in phase.get("actions", {}) and self._has_begun(name, now_ms)
            for name, phase in self.phases.items()
        )


def standing_of(state: CatalogState, index: Index) -> Standing | None:
    """None for an index without a policy that exists."""
    name = policy_name(index)
    stored = None if name is None else state.lifecycles.get(name)
    if name is None or stored is None:
        return None
    phases = stored["policy"]["phases"]
    target = state.stream_of(index.uuid) or index.settings.get("lifecycle.rollover_alias")
    rolls = "rollover" in phases.get("hot", {}).get("actions", {})
    is_complete = flag_setting(index.settings, "lifecycle.indexing_complete")
    moved_to = index.settings.get(MOVED_TO)
    if moved_to not in phases:
        moved_to = None
    waits = rolls and not is_complete and moved_to in (None, "hot") and _is_written(state, index, target)
    since_ms = _rolled_over_ms(state, index, target) if rolls else index.created_ms
    given = index.settings.get("lifecycle.origination_date")
    if given not in (None, "-1"):
        since_ms = int(given)
    return Standing(name, phases, target, waits, since_ms, moved_to)


def _is_written(state: CatalogState, index: Index, target: str | None) -> bool:
    """Whether the target writes to it: only then it can be rolled over."""
    members = state.by_alias.get(target or "", {})
    options = members.get(index.uuid)
    if options is None:
        return False
    return bool(options.get("is_write_index", len(members) == 1))


def _rolled_over_ms(state: CatalogState, index: Index, target: str | None) -> int:
    """When the index that came after it was created."""
    if target is not None and target in state.data_streams:
        indexes = backing_indexes(state, target)
        place = next((number for number, one in enumerate(indexes) if one.uuid == index.uuid), len(indexes))
        return indexes[place + 1].created_ms if place + 1 < len(indexes) else index.created_ms
    try:
        following = state.by_name.get(next_name(index.name))
    except SearchError:
        following = None
    return index.created_ms if following is None else following.created_ms


def due_commands(state: CatalogState, now_ms: int, new_uuid: Callable[[], str]) -> Iterator[Command]:
    """What is to be done now, at most one command for each index."""
    if not is_running(state):
        return
    for index in sorted(state.by_uuid.values(), key=lambda one: one.name):
        try:
            command = due_command(state, index, now_ms, new_uuid)
        except SearchError:
            continue  # its name has no number to count on
        if command is not None:
            yield command


def due_command(
    state: CatalogState, index: Index, now_ms: int, new_uuid: Callable[[], str]
) -> Command | None:
    """What is to be done with one index now. Errors: illegal_argument_exception for one that cannot be rolled
    over, because its name has no number to count on.
    """
    standing = None if is_kept_by_stream(state, index) else standing_of(state, index)
    return None if standing is None else _due(state, index, standing, now_ms, new_uuid)


def is_running(state: CatalogState) -> bool:
    """Whether lifecycles of indexes are acted on at all."""
    return state.operation_modes.get("ilm", "RUNNING") == "RUNNING"


def check_move(state: CatalogState, index: Index, now: LifecycleStep, to: LifecycleStep, now_ms: int) -> None:
    """Whether an index is where a client takes it to be, and its policy has what it is to be moved to. Names
    of steps are those of Elasticsearch, which has more of them, and are not looked at.

    Errors: illegal_argument_exception.
    """
    standing = standing_of(state, index)
    if standing is None:
        raise illegal_argument(f"index [{index.name}] is not associated with an Index Lifecycle Policy")
    there = standing.step(now_ms)
    if now != there:
        reason = f"is not on current step [{_shown(now)}], currently: [{_shown(there)}]"
        raise illegal_argument(f"index [{index.name}] {reason}")
    actions = standing.phases.get(to.phase, {}).get("actions", {})
    if to.phase not in standing.phases or to.action not in (None, "complete", *actions):
        raise illegal_argument(
            f"step [{_shown(to)}] for index [{index.name}] with policy [{standing.policy}] does not exist"
        )


def _shown(step: LifecycleStep) -> str:
    members = {"phase": step.phase, "action": step.action, "name": step.name}
    return orjson.dumps({name: text for name, text in members.items() if text is not None}).decode()


def moved_settings(state: CatalogState, index: Index, phase: str) -> dict[str, Any]:
    """The settings of an index that is moved to a phase. Errors: illegal_argument_exception."""
    standing = standing_of(state, index)
    if standing is None or phase not in standing.phases:
        raise illegal_argument(f"index [{index.name}] has no phase [{phase[:100]}] in its policy")
    return {**index.settings, MOVED_TO: phase}


def _due(
    state: CatalogState, index: Index, standing: Standing, now_ms: int, new_uuid: Callable[[], str]
) -> Command | None:
    if standing.waits:
        conditions = {"min_docs": 1, **standing.phases["hot"]["actions"]["rollover"]}
        assert standing.target is not None, "it is what writes to the index"
        if not suffices(met_conditions(conditions, RolloverSource.of(index, now_ms))):
            return None
        is_stream = standing.target in state.data_streams
        name = next_backing_name(state, standing.target, now_ms) if is_stream else next_name(index.name)
        return RollOver(name, new_uuid(), {}, standing.target, index.uuid)
    if standing.does("delete", now_ms):
        is_written = state.stream_of(index.uuid) is not None and _is_written(state, index, standing.target)
        return None if is_written else DeleteIndices((index.uuid,))
    if standing.does("readonly", now_ms) and not flag_setting(index.settings, "blocks.write"):
        return PutSettings((index.uuid,), {"index.blocks.write": True})
    return None
