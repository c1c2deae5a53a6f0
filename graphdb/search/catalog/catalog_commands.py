"""What a log entry asks of the catalogue, and what comes of it.

A command says all that its effect depends on: names are resolved, generated ids and uuids are chosen,
patterns of users are tried, before it is logged. So every node that applies the same commands in the same
order has the same indexes and the same documents, with the same versions and sequence numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from graphdb.search.errors import SearchError
from graphdb.search.segments.operations import Operation, OperationResult

__all__ = [
    "AliasAction",
    "BeginSnapshotWork",
    "CloseIndices",
    "Command",
    "CreateDataStream",
    "CreateIndex",
    "CursorMove",
    "DeleteComponentTemplates",
    "DeleteDataStreams",
    "DeleteIndexTemplates",
    "DeleteIndices",
    "DeleteLegacyTemplates",
    "DeleteLifecycles",
    "DeletePipelines",
    "DeleteRepositories",
    "DeleteScript",
    "DeleteSnapshotPolicy",
    "DeleteSynonyms",
    "DocumentWrite",
    "EndSnapshotWork",
    "FinishFilling",
    "ForgetDeletions",
    "IntroduceNode",
    "MigrateToDataStream",
    "ModifyDataStreams",
    "MoveLifecycle",
    "NoteSnapshotPolicy",
    "NoteSnapshotRetention",
    "OpenIndices",
    "Outcome",
    "PutClusterSettings",
    "PutComponentTemplate",
    "PutIndexTemplate",
    "PutLegacyTemplate",
    "PutLifecycle",
    "PutMapping",
    "PutPipeline",
    "PutRepository",
    "PutScript",
    "PutSettings",
    "PutSnapshotPolicy",
    "PutStreamLifecycle",
    "PutSynonyms",
    "RefreshIndices",
    "RollOver",
    "SetOperationMode",
    "ShownSources",
    "UpdateAliases",
    "WriteDocuments",
    "WriteResult",
]


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """body: settings, mappings, aliases, as PUT /{index} takes them. Its outcome: the index's name.

    in_one_shard: it was logged when `number_of_shards` was only shown, and the index is as it was made then.
    from_templates: False for one that is all that the body says. filled_by: the number of the node that is to
    fill it, until PutSettings or FinishFilling says that it is filled. replaces: the uuid of a closed index
    of the name, which FinishFilling deletes; until then the name means that one.
    """

    name: str
    uuid: str
    body: Mapping[str, Any] = field(default_factory=dict)
    in_one_shard: bool = False
    from_templates: bool = True
    filled_by: int | None = None
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class CreateDataStream:
    """With its first index, which gets the uuid. Its outcome: the name of that index."""

    name: str
    uuid: str


@dataclass(frozen=True, slots=True)
class DeleteDataStreams:
    """By name, without wildcards: all of them with their indexes, or none."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutStreamLifecycle:
    """How long data streams keep their documents, in the form that is shown; None: for ever."""

    names: tuple[str, ...]
    lifecycle: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ModifyDataStreams:
    """Actions in their order, each `add` or `remove`, a data stream, the uuid of an index: all, or none.

    hides: what comes in is hidden from there on, and what leaves is not. Entries of before have a PutSettings
    after them.
    """

    actions: tuple[tuple[str, str, str], ...]
    hides: bool = False


@dataclass(frozen=True, slots=True)
class MigrateToDataStream:
    """The alias becomes a data stream of its indexes. hides: see `ModifyDataStreams`."""

    alias: str
    hides: bool = False


@dataclass(frozen=True, slots=True)
class DeleteIndices:
    """By uuid, as all that follow, so that an index made meanwhile under the name is not meant.

    unfilled: only those that are there and are being filled.
    """

    uuids: tuple[str, ...]
    unfilled: bool = False


@dataclass(frozen=True, slots=True)
class CloseIndices:
    """All of them; those that are closed stay so."""

    uuids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenIndices:
    """All of them; those that are open stay so."""

    uuids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutMapping:
    """body as of PUT /{index}/_mapping: all of the indexes take it, or none does.

    whole_templates: its dynamic templates take the place of all that there are, not only of those of the same
    names.
    """

    uuids: tuple[str, ...]
    body: Mapping[str, Any]
    whole_templates: bool = False


@dataclass(frozen=True, slots=True)
class PutSettings:
    """settings as of PUT /{index}/_settings; null resets one. preserve: those that are set already stay.
    filled: no node fills the indexes any more. reopen: settings that only closed indexes take are taken, as
    if the indexes were closed and opened again.
    """

    uuids: tuple[str, ...]
    settings: Mapping[str, Any]
    preserve: bool = False
    filled: bool = False
    reopen: bool = False


@dataclass(frozen=True, slots=True)
class FinishFilling:
    """Indexes have all their documents; each takes the place of the one that it replaces. All, or none.

    indexes: by uuid, each with `settings` as of PutSettings, `aliases` as of CreateIndex, both added, and
    `handle`, an alias that goes.
    """

    indexes: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PutClusterSettings:
    """Settings of the whole cluster by their dotted names; null resets one. All of them, or none."""

    persistent: Mapping[str, Any] = field(default_factory=dict)
    transient: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PutIndexTemplate:
    """body as of PUT /_index_template/{name}. create: not in the place of one that is there."""

    name: str
    body: Mapping[str, Any]
    create: bool = False


@dataclass(frozen=True, slots=True)
class PutComponentTemplate:
    """body as of PUT /_component_template/{name}. create: not in the place of one that is there."""

    name: str
    body: Mapping[str, Any]
    create: bool = False


@dataclass(frozen=True, slots=True)
class DeleteIndexTemplates:
    """By name, without wildcards: all of them, or none."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteComponentTemplates:
    """By name, without wildcards: all of them, or none."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutLegacyTemplate:
    """body as of PUT /_template/{name}. create: not in the place of one that is there."""

    name: str
    body: Mapping[str, Any]
    create: bool = False


@dataclass(frozen=True, slots=True)
class DeleteLegacyTemplates:
    """By name, without wildcards: all of them, or none."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutScript:
    """A stored script in the form that is shown. It has been compiled before."""

    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteScript:
    """By its id."""

    name: str


@dataclass(frozen=True, slots=True)
class PutSynonyms:
    """A set of synonyms: rules with `id` and `synonyms`, which have been checked before. only: these rules of
    a set that is there, the others stay.
    """

    name: str
    rules: Sequence[Mapping[str, str]]
    only: bool = False


@dataclass(frozen=True, slots=True)
class DeleteSynonyms:
    """A set, or one rule of it by its id."""

    name: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class PutPipeline:
    """An ingest pipeline in the form that is shown. It has been read before. if_version: what the one has to
    say that is there; the next version follows, unless the body says one.
    """

    name: str
    body: Mapping[str, Any]
    if_version: int | None = None


@dataclass(frozen=True, slots=True)
class DeletePipelines:
    """By id, without wildcards: all of them, or none."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutLifecycle:
    """A policy of index lifecycles. It has been read before."""

    name: str
    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteLifecycles:
    """By name, without wildcards: all of them, or none."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MoveLifecycle:
    """A phase of an index's policy begins now, and with it those before, whatever the age of the index."""

    uuid: str
    phase: str


@dataclass(frozen=True, slots=True)
class PutSnapshotPolicy:
    """A policy that makes snapshots. It has been read before."""

    name: str
    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteSnapshotPolicy:
    """By name. Its snapshots stay."""

    name: str


@dataclass(frozen=True, slots=True)
class NoteSnapshotPolicy:
    """What came of a policy. kind: `begun` (body: start_ms); `taken`, `failed` (snapshot_name, start_ms,
    end_ms, and of a failure details); `deleted`, `deletion_failed` (count).
    """

    name: str
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NoteSnapshotRetention:
    """Old snapshots have been looked for, at last_ms. counts: what is added to runs, failed and time_ms."""

    last_ms: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SetOperationMode:
    """What acts by itself in the cluster (`ilm`, `slm`) goes on or rests: mode is RUNNING or STOPPED."""

    part: str
    mode: str


@dataclass(frozen=True, slots=True)
class PutRepository:
    """A snapshot repository: body has its type, uuid and settings, which have been read before."""

    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteRepositories:
    """By name, without wildcards: all of them, or none. Their files stay."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginSnapshotWork:
    """A node begins to write to a repository; nobody else does until it ends.

    body: see `graphdb.search.catalog.snapshot_registry`.
    """

    uuid: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EndSnapshotWork:
    """abort: the work is only to end; the node that does it says so when it has. Nothing, where it has.

    wrote: whether it has changed the repository, None: unknown.
    """

    uuid: str
    abort: bool = False
    wrote: bool | None = None


@dataclass(frozen=True, slots=True)
class AliasAction:
    """One alias of one index. kind: add, remove, remove_index; options of an add: filter, routing,
    is_write_index and so on; of a remove: must_exist. Kinds add_to_stream, remove_from_stream: the same of a
    data stream, whose name stands for the uuid.
    """

    kind: str
    uuid: str
    alias: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateAliases:
    """All of the actions, or none."""

    actions: tuple[AliasAction, ...]


@dataclass(frozen=True, slots=True)
class RollOver:
    """An index is made, as by CreateIndex, and the alias or data stream that wrote to an old one writes to it
    from here on. Its outcome: the new index's name.
    """

    name: str
    uuid: str
    body: Mapping[str, Any]
    alias: str
    old_uuid: str


@dataclass(frozen=True, slots=True)
class RefreshIndices:
    """On every node: what was written before is found from here on."""

    uuids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetDeletions:
    """The versions of documents that were deleted are not kept any more: one that comes back begins anew."""

    uuids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IntroduceNode:
    """Who a node is to clients; it counts until the node says otherwise.

    address: host:port where they reach its search port. cluster_uuid: the cluster's from here on, where it
    has none yet: the first decides.
    """

    node_id: int
    name: str
    address: str
    cluster_uuid: str


# Not frozen, as the results below: one is made for each document, and that would take four times as long.
@dataclass(slots=True)
class DocumentWrite:
    """index: the name that the client gave, of an index or of an alias that can be written to.

    An index that is not there is made, unless require_alias; with require_data_stream only a data stream is.
    tried and error are `Catalog.prepare`'s, of an index
    that analyses with patterns of users. tried: under which version of the mapping, and for which sequence
    number of the document that is updated (else -1), it was found to fit; error: why it does not.
    """

    index: str
    operation: Operation
    require_alias: bool = False
    tried: tuple[int, int] | None = None
    error: SearchError | None = None
    require_data_stream: bool = False


@dataclass(frozen=True, slots=True)
class CursorMove:
    """Of an index that follows the graph: where its cursor has to stand, and where it stands then.

    unfinished: in place of `after` where a document is to be tried again, or an older form of one that the
    index refuses is still there; 0 is where a new index stands.
    """

    uuid: str
    before: int
    after: int
    unfinished: int = 0


@dataclass(frozen=True, slots=True)
class WriteDocuments:
    """Each takes effect or fails by itself. Its outcome: a list of WriteResult, one for each.

    refresh: find them from here on. cursor: where the index's does not stand where it has to, nothing is
    written, and the outcome is an empty list. in_one_shard: as of `CreateIndex`, for indexes that it makes.
    """

    writes: tuple[DocumentWrite, ...]
    refresh: bool = False
    cursor: CursorMove | None = None
    in_one_shard: bool = False


@dataclass(slots=True)
class WriteResult:
    """What became of one document; index is the name of the index that it is in.

    again: it was tried (`Catalog.prepare`) in another state than it met. It failed, but is to be prepared and
    logged once more.
    """

    index: str
    result: OperationResult
    again: bool = False


Command: TypeAlias = (
    CreateIndex
    | CreateDataStream
    | DeleteDataStreams
    | PutStreamLifecycle
    | ModifyDataStreams
    | MigrateToDataStream
    | DeleteIndices
    | CloseIndices
    | OpenIndices
    | PutMapping
    | PutSettings
    | PutClusterSettings
    | PutIndexTemplate
    | PutComponentTemplate
    | DeleteIndexTemplates
    | DeleteComponentTemplates
    | PutLegacyTemplate
    | DeleteLegacyTemplates
    | PutScript
    | PutSynonyms
    | DeleteSynonyms
    | DeleteScript
    | PutLifecycle
    | DeleteLifecycles
    | MoveLifecycle
    | SetOperationMode
    | PutSnapshotPolicy
    | DeleteSnapshotPolicy
    | NoteSnapshotPolicy
    | NoteSnapshotRetention
    | PutPipeline
    | DeletePipelines
    | PutRepository
    | DeleteRepositories
    | BeginSnapshotWork
    | EndSnapshotWork
    | FinishFilling
    | UpdateAliases
    | RollOver
    | RefreshIndices
    | ForgetDeletions
    | IntroduceNode
    | WriteDocuments
)


class ShownSources:
    """The documents that results of one request have, until they are much: the further ones go."""

    def __init__(self, bytes_max: int) -> None:
        self._left_bytes = bytes_max

    def bounded(self, result: WriteResult) -> WriteResult:
        """The same, without its document where there was no room for it."""
        source = result.result.source
        if source is None:
            return result
        self._left_bytes -= len(source)
        return result if self._left_bytes > 0 else replace(result, result=result.result._replace(source=None))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a command: a value, as the command says, or the error for its sender."""

    value: Any = None
    error: SearchError | None = None

    def get(self) -> Any:
        """The value. Raises the error."""
        if self.error is not None:
            raise self.error
        return self.value
