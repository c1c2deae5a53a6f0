"""Changes to the catalogue: indexes created and deleted, settings, aliases, templates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.aliases import with_alias_actions, with_rollover
from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    BeginSnapshotWork,
    CloseIndices,
    Command,
    CreateDataStream,
    CreateIndex,
    DeleteComponentTemplates,
    DeleteDataStreams,
    DeleteIndexTemplates,
    DeleteIndices,
    DeleteLegacyTemplates,
    DeleteLifecycles,
    DeletePipelines,
    DeleteRepositories,
    DeleteScript,
    DeleteSnapshotPolicy,
    DeleteSynonyms,
    EndSnapshotWork,
    FinishFilling,
    ForgetDeletions,
    IntroduceNode,
    MigrateToDataStream,
    ModifyDataStreams,
    MoveLifecycle,
    NoteSnapshotPolicy,
    NoteSnapshotRetention,
    OpenIndices,
    PutClusterSettings,
    PutComponentTemplate,
    PutIndexTemplate,
    PutLegacyTemplate,
    PutLifecycle,
    PutMapping,
    PutPipeline,
    PutRepository,
    PutScript,
    PutSettings,
    PutSnapshotPolicy,
    PutStreamLifecycle,
    PutSynonyms,
    RefreshIndices,
    RollOver,
    SetOperationMode,
    UpdateAliases,
)
from graphdb.search.catalog.cluster_settings import with_cluster_settings
from graphdb.search.catalog.data_streams import (
    BACKING_BODY,
    backing_indexes,
    backing_name,
    check_deletion,
    check_new_stream,
    with_first_backing,
    with_next_backing,
    without_streams,
)
from graphdb.search.catalog.index_settings import (
    FILLED_BY,
    REPLACES,
    analyzers_of,
    limits_of,
    read_settings,
)
from graphdb.search.catalog.index_templates import (
    Contents,
    component_template,
    contents,
    index_template,
    legacy_template,
    without_components,
    without_legacy_templates,
    without_templates,
)
from graphdb.search.catalog.lifecycles import moved_settings, with_lifecycle, without_lifecycles
from graphdb.search.catalog.new_indexes import GraphCheck, NewIndex, with_new_index
from graphdb.search.catalog.settings_changes import (
    check_static,
    put_mapping,
    with_hidden,
    with_put_settings,
    with_settings,
)
from graphdb.search.catalog.snapshot_policies import (
    with_noted_policy,
    with_noted_retention,
    with_snapshot_policy,
    without_snapshot_policy,
)
from graphdb.search.catalog.snapshot_registry import (
    with_repository,
    with_snapshot_work,
    without_repositories,
    without_snapshot_work,
)
from graphdb.search.catalog.state import CatalogState, KnownNode
from graphdb.search.catalog.stored_definitions import (
    with_pipeline,
    with_script,
    without_pipelines,
    without_script,
)
from graphdb.search.catalog.stream_changes import with_changed_streams, with_migrated_alias
from graphdb.search.catalog.stream_lifecycles import with_stream_lifecycle
from graphdb.search.catalog.synonym_sets import users_of, with_sets, with_synonyms, without_synonyms
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping as FieldMapping

__all__ = ["Change", "planned"]

# What a command that is not about documents would change: found out first, done afterwards or not.


def _nothing() -> None:
    """For a change of the state alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """state: the catalogue afterwards; act: what is to be done to indexes that stay, it cannot fail;
    value: the command's outcome.
    """

    state: CatalogState
    act: Callable[[], None] = _nothing
    value: Any = None


def planned(state: CatalogState, command: Command, check_graph: GraphCheck, timestamp_ms: int) -> Change:
    """What a command other than WriteDocuments does. No effect yet. Raises SearchError."""
    if isinstance(command, CreateIndex):
        new = NewIndex(
            command.name,
            command.uuid,
            timestamp_ms,
            command.body,
            in_one_shard=command.in_one_shard,
            from_templates=command.from_templates,
            filled_by=command.filled_by,
            replaces=command.replaces,
        )
        return Change(with_new_index(state, new, check_graph), value=command.name)
    if isinstance(command, PutLifecycle):
        return Change(with_lifecycle(state, command, timestamp_ms))
    if isinstance(command, PutSnapshotPolicy):
        return Change(with_snapshot_policy(state, command, timestamp_ms))
    if isinstance(command, CreateDataStream):
        check_new_stream(state, command.name)
        name = backing_name(command.name, 1, timestamp_ms)
        new = NewIndex(name, command.uuid, timestamp_ms, BACKING_BODY, stream=command.name)
        return _with_aliases(with_first_backing(with_new_index(state, new, check_graph), command), name)
    if isinstance(command, RollOver) and command.alias in state.data_streams:
        new = NewIndex(command.name, command.uuid, timestamp_ms, BACKING_BODY, stream=command.alias)
        return _with_aliases(
            with_next_backing(with_new_index(state, new, check_graph), command), command.name
        )
    if isinstance(command, RollOver):
        new = NewIndex(command.name, command.uuid, timestamp_ms, command.body)
        made = with_new_index(state, new, check_graph)
        return _with_aliases(with_rollover(made, command, command.uuid), command.name)
    return _planned(command, state)


def _with_aliases(after: CatalogState, value: Any = None) -> Change:
    """Indexes that know the aliases that the state says."""

    def act() -> None:
        for uuid, index in after.by_uuid.items():
            index.aliases = after.aliases_of(uuid)

    return Change(after, act, value)


@singledispatch
def _planned(command: object, state: CatalogState) -> Change:
    raise TypeError(f"no command of the catalogue: {command!r}")


@_planned.register
def _(command: DeleteIndices, state: CatalogState) -> Change:
    uuids = command.uuids
    if command.unfilled:
        there = (state.by_uuid.get(uuid) for uuid in uuids)
        uuids = tuple(one.uuid for one in there if one is not None and FILLED_BY in one.settings)
    state.indexes(uuids)
    check_deletion(state, uuids)
    return Change(state.without(uuids))


@_planned.register
def _(command: DeleteDataStreams, state: CatalogState) -> Change:
    return Change(without_streams(state, command.names))


@_planned.register
def _(command: PutStreamLifecycle, state: CatalogState) -> Change:
    return Change(with_stream_lifecycle(state, command))


@_planned.register
def _(command: ModifyDataStreams, state: CatalogState) -> Change:
    after = with_changed_streams(state, command)
    last = {uuid: kind == "add" for kind, _, uuid in command.actions}
    return _hidden(after, last.items() if command.hides else ())


@_planned.register
def _(command: MigrateToDataStream, state: CatalogState) -> Change:
    after = with_migrated_alias(state, command)
    members = backing_indexes(after, command.alias) if command.hides else ()
    return _hidden(after, [(index.uuid, True) for index in members])


def _hidden(after: CatalogState, hidden: Iterable[tuple[str, bool]]) -> Change:
    """Indexes that the state has put into data streams or taken out; see `with_hidden`."""
    aliased, hide = _with_aliases(after), with_hidden(after, hidden)

    def act() -> None:
        aliased.act()
        hide()

    return Change(after, act)


@_planned.register
def _(command: CloseIndices, state: CatalogState) -> Change:
    return _opened(state, command.uuids, is_closed=True)


@_planned.register
def _(command: OpenIndices, state: CatalogState) -> Change:
    return _opened(state, command.uuids, is_closed=False)


def _opened(state: CatalogState, uuids: Sequence[str], *, is_closed: bool) -> Change:
    indexes = state.indexes(uuids)

    def act() -> None:
        for index in indexes:
            index.is_closed = is_closed

    return Change(state, act)


@_planned.register
def _(command: PutMapping, state: CatalogState) -> Change:
    merged = [
        (index, index.mapping.merged(command.body, command.whole_templates))
        for index in state.indexes(command.uuids)
    ]

    def act() -> None:
        for index, mapping in merged:
            put_mapping(index, mapping)

    return Change(state, act)


@_planned.register
def _(command: PutSettings, state: CatalogState) -> Change:
    return Change(state, with_put_settings(state, command))


@_planned.register
def _(command: FinishFilling, state: CatalogState) -> Change:
    indexes = state.indexes(command.indexes)
    replaced, actions, made = list[str](), list[AliasAction](), list[tuple[Any, Analyzers, FieldMapping]]()
    for index, finish in zip(indexes, command.indexes.values(), strict=True):
        old = state.by_uuid.get(index.settings.get(REPLACES, ""))
        if old is not None:
            if not old.is_closed:
                reason = f"index [{old.name}] was opened while it was being replaced"
                raise SearchError("illegal_state_exception", reason, 409)
            replaced.append(old.uuid)
        actions.append(AliasAction("remove", index.uuid, finish["handle"]))
        actions += [AliasAction("add", index.uuid, *alias) for alias in finish["aliases"].items()]
        update = read_settings(finish["settings"])
        settings, analyzers, mapping = with_settings(index, update, False, state)
        check_static(update, [index], preserve=False)
        kept = {name: value for name, value in settings.items() if name not in (FILLED_BY, REPLACES)}
        made.append((kept, analyzers, mapping))
    check_deletion(state, replaced)
    aliased = _with_aliases(with_alias_actions(state.without(replaced), actions))

    def act() -> None:
        for index, (settings, analyzers, mapping) in zip(indexes, made, strict=True):
            index.put_settings(settings, analyzers)
            put_mapping(index, mapping)
        aliased.act()

    return Change(aliased.state, act)


@_planned.register
def _(command: UpdateAliases, state: CatalogState) -> Change:
    return _with_aliases(with_alias_actions(state, command.actions))


@_planned.register
def _(command: RefreshIndices, state: CatalogState) -> Change:
    present = [state.by_uuid[uuid] for uuid in command.uuids if uuid in state.by_uuid]

    def act() -> None:
        for index in present:
            index.shards.refresh()

    return Change(state, act)


@_planned.register
def _(command: ForgetDeletions, state: CatalogState) -> Change:
    present = [state.by_uuid[uuid] for uuid in command.uuids if uuid in state.by_uuid]

    def act() -> None:
        for index in present:
            index.shards.forget_deletions()

    return Change(state, act)


@_planned.register
def _(command: IntroduceNode, state: CatalogState) -> Change:
    nodes = {**state.nodes, command.node_id: KnownNode(command.name, command.address)}
    return Change(replace(state, nodes=nodes, cluster_uuid=state.cluster_uuid or command.cluster_uuid))


@_planned.register
def _(command: PutClusterSettings, state: CatalogState) -> Change:
    return Change(with_cluster_settings(state, command))


@_planned.register
def _(command: PutIndexTemplate, state: CatalogState) -> Change:
    after = index_template(state, command)
    _check_composed(after, command.name)
    return Change(after)


@_planned.register
def _(command: PutComponentTemplate, state: CatalogState) -> Change:
    after = component_template(state, command)
    for name, template in after.templates.items():
        if command.name in template["composed_of"]:
            _check_composed(after, name)
    return Change(after)


@_planned.register
def _(command: DeleteIndexTemplates, state: CatalogState) -> Change:
    return Change(without_templates(state, command.names))


@_planned.register
def _(command: DeleteComponentTemplates, state: CatalogState) -> Change:
    return Change(without_components(state, command.names))


@_planned.register
def _(command: PutLegacyTemplate, state: CatalogState) -> Change:
    after = legacy_template(state, command)
    _check_made(Contents.of(after.legacy_templates[command.name]), command.name, state)
    return Change(after)


@_planned.register
def _(command: DeleteLegacyTemplates, state: CatalogState) -> Change:
    return Change(without_legacy_templates(state, command.names))


@_planned.register
def _(command: PutScript, state: CatalogState) -> Change:
    return Change(with_script(state, command))


@_planned.register
def _(command: PutSynonyms, state: CatalogState) -> Change:
    is_there = command.name in state.synonyms
    if command.only:  # what is told is of the one rule
        ids = {rule["id"] for rule in state.synonyms.get(command.name, ())}
        is_there = all(rule["id"] in ids for rule in command.rules)
    after = with_synonyms(state, command)
    return _with_changed_set(after, command.name, "updated" if is_there else "created")


@_planned.register
def _(command: DeleteSynonyms, state: CatalogState) -> Change:
    return _with_changed_set(without_synonyms(state, command), command.name, "deleted")


def _with_changed_set(after: CatalogState, name: str, result: str) -> Change:
    """The indexes that name the set get its rules. Errors: what analyzers of these may have."""
    made = []
    for index in users_of(after, name):
        settings = with_sets(index.settings, after)
        analyzers = analyzers_of(settings)
        made.append((index, settings, analyzers, index.mapping.analyzed(analyzers, limits_of(settings))))

    def act() -> None:
        for index, settings, analyzers, mapping in made:
            index.put_settings(settings, analyzers)
            index.shards.put_mapping(mapping)  # no new version: it is shown as before

    return Change(after, act, result)


@_planned.register
def _(command: DeleteScript, state: CatalogState) -> Change:
    return Change(without_script(state, command))


@_planned.register
def _(command: DeleteLifecycles, state: CatalogState) -> Change:
    return Change(without_lifecycles(state, command.names))


@_planned.register
def _(command: MoveLifecycle, state: CatalogState) -> Change:
    index = state.index(command.uuid)
    settings = moved_settings(state, index, command.phase)
    return Change(state, lambda: index.put_settings(settings, index.analyzers))


@_planned.register
def _(command: DeleteSnapshotPolicy, state: CatalogState) -> Change:
    return Change(without_snapshot_policy(state, command))


@_planned.register
def _(command: NoteSnapshotPolicy, state: CatalogState) -> Change:
    return Change(with_noted_policy(state, command))


@_planned.register
def _(command: NoteSnapshotRetention, state: CatalogState) -> Change:
    return Change(with_noted_retention(state, command))


@_planned.register
def _(command: SetOperationMode, state: CatalogState) -> Change:
    return Change(replace(state, operation_modes={**state.operation_modes, command.part: command.mode}))


@_planned.register
def _(command: PutPipeline, state: CatalogState) -> Change:
    return Change(with_pipeline(state, command))


@_planned.register
def _(command: DeletePipelines, state: CatalogState) -> Change:
    return Change(without_pipelines(state, command))


@_planned.register
def _(command: PutRepository, state: CatalogState) -> Change:
    return Change(with_repository(state, command))


@_planned.register
def _(command: DeleteRepositories, state: CatalogState) -> Change:
    return Change(without_repositories(state, command.names))


@_planned.register
def _(command: BeginSnapshotWork, state: CatalogState) -> Change:
    return Change(with_snapshot_work(state, command))


@_planned.register
def _(command: EndSnapshotWork, state: CatalogState) -> Change:
    return Change(without_snapshot_work(state, command))


def _check_composed(state: CatalogState, name: str) -> None:
    """An index could be made of the template, as far as that can be decided now."""
    _check_made(contents(state, state.templates[name]), name, state)


def _check_made(made: Contents, name: str, state: CatalogState) -> None:
    settings = {key: value for key, value in made.settings.items() if value is not None}
    try:
        settings = with_sets(settings, state)
        FieldMapping.of(made.mappings, analyzers_of(settings), limits_of(settings))
    except SearchError as error:
        reason = f"composable template [{name}] template after composition is invalid"
        raise SearchError("illegal_argument_exception", reason, 400, None, error) from None
