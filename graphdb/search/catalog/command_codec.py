"""The bytes of a command, as they stand in the payload of a log entry.

    version u8 (2) | length of the head u32 | head: JSON | bodies of documents, one after the other

All numbers are little-endian. The head is `{"command": name, ...members}`; a document's write is there a row
`[index, action, _id, bytes of the body, others]`, and the body itself follows as it came.

Version 1 is of the time when every index was in one shard, and is the same but for that.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from graphdb.errors import CorruptionError
from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    BeginSnapshotWork,
    CloseIndices,
    Command,
    CreateDataStream,
    CreateIndex,
    CursorMove,
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
    DocumentWrite,
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
    WriteDocuments,
)
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segments.operations import Action, Operation

__all__ = ["decode_command", "encode_command"]

_VERSION, _IN_ONE_SHARD = 2, 1
_HEADER = struct.Struct("<BI")
_WHERE = "a search entry of the log"
_PLAIN: dict[str, type[Any]] = {
    "create_index": CreateIndex,
    "create_data_stream": CreateDataStream,
    "delete_data_streams": DeleteDataStreams,
    "put_stream_lifecycle": PutStreamLifecycle,
    "modify_data_streams": ModifyDataStreams,
    "migrate_to_data_stream": MigrateToDataStream,
    "delete_indices": DeleteIndices,
    "close_indices": CloseIndices,
    "open_indices": OpenIndices,
    "put_mapping": PutMapping,
    "put_settings": PutSettings,
    "put_cluster_settings": PutClusterSettings,
    "put_index_template": PutIndexTemplate,
    "put_component_template": PutComponentTemplate,
    "delete_index_templates": DeleteIndexTemplates,
    "delete_component_templates": DeleteComponentTemplates,
    "put_legacy_template": PutLegacyTemplate,
    "delete_legacy_templates": DeleteLegacyTemplates,
    "put_script": PutScript,
    "delete_script": DeleteScript,
    "put_synonyms": PutSynonyms,
    "delete_synonyms": DeleteSynonyms,
    "put_pipeline": PutPipeline,
    "put_lifecycle": PutLifecycle,
    "delete_lifecycles": DeleteLifecycles,
    "move_lifecycle": MoveLifecycle,
    "set_operation_mode": SetOperationMode,
    "put_snapshot_policy": PutSnapshotPolicy,
    "delete_snapshot_policy": DeleteSnapshotPolicy,
    "note_snapshot_policy": NoteSnapshotPolicy,
    "note_snapshot_retention": NoteSnapshotRetention,
    "delete_pipelines": DeletePipelines,
    "put_repository": PutRepository,
    "delete_repositories": DeleteRepositories,
    "begin_snapshot_work": BeginSnapshotWork,
    "end_snapshot_work": EndSnapshotWork,
    "finish_filling": FinishFilling,
    "refresh_indices": RefreshIndices,
    "forget_deletions": ForgetDeletions,
    "roll_over": RollOver,
    "introduce_node": IntroduceNode,
}
_USUAL = {
    "from_templates": True,
    "filled_by": None,
    "filled": False,
    "reopen": False,
    "hides": False,
    "replaces": None,
    "if_version": None,
    "unfilled": False,
    "wrote": None,
    "whole_templates": False,
}
_NAMES = {kind: name for name, kind in _PLAIN.items()}
_TUPLES = {"uuids", "names"}
_ACTIONS = {action: action.value for action in Action}  # quicker than the property of an Enum
_OPERATION = ("routing", "if_seq_no", "if_primary_term", "version", "version_type")
_NOTHING = Operation(Action.INDEX, "")[3:8]  # what most say of them


def encode_command(command: Command) -> bytes:
    """Errors: illegal_argument_exception for what JSON cannot say: too deep, lone surrogates."""
    bodies: Sequence[bytes] = ()
    if isinstance(command, WriteDocuments):
        head: dict[str, Any] = _written(command)
        bodies = [write.operation.body for write in command.writes]
    elif isinstance(command, UpdateAliases):
        rows = [[action.kind, action.uuid, action.alias, action.options] for action in command.actions]
        head = {"command": "update_aliases", "actions": rows}
    else:
        members = {name: getattr(command, name) for name in command.__dataclass_fields__}
        members.pop("in_one_shard", None)  # what is logged now is not
        for name, usual in _USUAL.items():  # only what differs, which an older version refuses
            if members.get(name, ...) is usual:
                del members[name]
        head = {"command": _NAMES[type(command)], **members}
    try:
        raw = orjson.dumps(head)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise illegal_argument(f"the request cannot be stored: {error}") from None
    return b"".join((_HEADER.pack(_VERSION, len(raw)), raw, *bodies))


def _written(command: WriteDocuments) -> dict[str, Any]:
    head: dict[str, Any] = {"command": "write_documents", "writes": [_row(one) for one in command.writes]}
    if command.refresh:
        head["refresh"] = True
    if command.cursor is not None:
        move = command.cursor
        head["cursor"] = [move.uuid, move.before, move.after, move.unfinished]
    return head


def _row(write: DocumentWrite) -> list[Any]:
    operation = write.operation
    row = [write.index, _ACTIONS[operation.action], operation.doc_id, len(operation.body)]
    if (
        operation[3:8] == _NOTHING
        and operation.sids is None
        and write.tried is None
        and write.error is None
        and not write.require_alias
        and not write.require_data_stream
        and operation.dynamic_templates is None
    ):
        return row
    others = {name: value for name in _OPERATION if (value := getattr(operation, name)) is not None}
    if others["version_type"] == "internal":
        del others["version_type"]
    if operation.sids is not None:
        others["sids"] = sorted(operation.sids)
    if operation.dynamic_templates is not None:
        others["dynamic_templates"] = dict(operation.dynamic_templates)
    if write.require_alias:
        others["require_alias"] = True
    if write.require_data_stream:
        others["require_data_stream"] = True
    if write.tried is not None:
        others["tried"] = write.tried
    if write.error is not None:
        others["error"] = _error_row(write.error)
    return [*row, others] if others else row


def _error_row(error: SearchError) -> list[Any]:
    cause = None if error.cause is None else _error_row(error.cause)
    return [error.kind, error.reason, error.status, dict(error.metadata), cause]


def decode_command(payload: bytes) -> Command:
    """Raises CorruptionError."""
    try:
        version, length = _HEADER.unpack_from(payload)
        if version not in (_VERSION, _IN_ONE_SHARD):
            raise CorruptionError(f"a command of format {version}, not {_VERSION}", _WHERE)
        head = orjson.loads(memoryview(payload)[_HEADER.size : _HEADER.size + length])
        command = _decoded(head, payload, _HEADER.size + length)
    except (struct.error, ValueError, TypeError, KeyError, IndexError) as error:
        raise CorruptionError(f"no command: {error!r}", _WHERE) from error
    if version == _IN_ONE_SHARD and isinstance(command, CreateIndex | WriteDocuments):
        return replace(command, in_one_shard=True)
    return command


def _decoded(head: dict[str, Any], payload: bytes, bodies_at: int) -> Command:
    name = head.pop("command")
    if name == "write_documents":
        cursor = head.get("cursor")
        return WriteDocuments(
            tuple(_writes(head["writes"], payload, bodies_at)),
            head.get("refresh", False),
            None if cursor is None else CursorMove(*cursor),
        )
    if bodies_at != len(payload):
        raise CorruptionError(f"{len(payload) - bodies_at} bytes after a command", _WHERE)
    if name == "modify_data_streams":
        actions = tuple((kind, stream, uuid) for kind, stream, uuid in head["actions"])
        return ModifyDataStreams(actions, head.get("hides", False))
    if name == "update_aliases":
        return UpdateAliases(tuple(AliasAction(*row) for row in head["actions"]))
    members = {key: tuple(value) if key in _TUPLES else value for key, value in head.items()}
    make: Callable[..., Command] = _PLAIN[name]
    return make(**members)


def _writes(rows: Sequence[Sequence[Any]], payload: bytes, at: int) -> Iterator[DocumentWrite]:
    for index, action, doc_id, length, *rest in rows:
        others: Mapping[str, Any] = rest[0] if rest else {}
        body = payload[at : at + length]
        at += length
        given = {name: others[name] for name in _OPERATION if name in others}
        if "sids" in others:
            given["sids"] = frozenset(others["sids"])
        if "dynamic_templates" in others:
            given["dynamic_templates"] = others["dynamic_templates"]
        operation = Operation(Action(action), doc_id, body, **given)
        if not rest:
            yield DocumentWrite(index, operation)
            continue
        tried, error = others.get("tried"), others.get("error")
        yield DocumentWrite(
            index,
            operation,
            others.get("require_alias", False),
            None if tried is None else tuple(tried),
            None if error is None else _error(error),
            others.get("require_data_stream", False),
        )
    if at != len(payload):
        raise CorruptionError(f"{len(payload)} bytes instead of {at}", _WHERE)


def _error(row: Sequence[Any]) -> SearchError:
    kind, reason, status, metadata, cause = row
    return SearchError(kind, reason, status, metadata, None if cause is None else _error(cause))
