"""A catalogue as plain dictionaries, and random commands for both."""

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    Command,
    CreateIndex,
    DeleteIndices,
    DocumentWrite,
    ForgetDeletions,
    Outcome,
    PutMapping,
    PutSettings,
    RefreshIndices,
    UpdateAliases,
    WriteDocuments,
)
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.segments.shard_routing import ShardRouting

__all__ = ["CatalogTwin", "TwinIndex", "contents_of", "outcome_of", "random_command"]

NAMES = ["a", "b", "c", "Bad"]
ALIASES = ["x", "y", "a"]
FIELDS = ["t", "n"]
TYPES = ["keyword", "long", "text"]


@dataclass
class TwinIndex:
    """types: of the fields that are mapped; a number makes an unmapped field long, a text makes it text."""

    name: str
    uuid: str
    types: dict[str, str] = field(default_factory=dict)
    replicas: str | None = None
    aliases: dict[str, dict[str, Any]] = field(default_factory=dict)
    documents: dict[str, tuple[dict[str, Any], int, int]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    routing: ShardRouting = field(default_factory=ShardRouting)
    seq_nos: Counter[int] = field(default_factory=Counter)  # the next one of each shard


class CatalogTwin:
    """The promises of `Catalog` for the commands that `random_command` makes, one dictionary at a time."""

    def __init__(self) -> None:
        self.indexes: dict[str, TwinIndex] = {}  # by uuid

    def by_name(self, name: str) -> TwinIndex | None:
        return next((index for index in self.indexes.values() if index.name == name), None)

    def apply(self, command: Command, made_uuid: Any) -> Any:
        """The outcome in the form of `outcome_of`; made_uuid tells the uuid of an index that a write made."""
        if isinstance(command, CreateIndex):
            shards = command.body.get("settings", {}).get("number_of_shards", 1)
            return self._create(command.name, command.uuid, shards)
        if isinstance(command, WriteDocuments):
            return [self._write(write, made_uuid) for write in command.writes]
        if isinstance(command, RefreshIndices | ForgetDeletions):
            return None
        uuids = [action.uuid for action in command.actions] if isinstance(command, UpdateAliases) else None
        for uuid in uuids if uuids is not None else getattr(command, "uuids", ()):
            if uuid not in self.indexes:
                return "index_not_found_exception"
        if isinstance(command, DeleteIndices):
            for uuid in set(command.uuids):
                del self.indexes[uuid]
            return None
        if isinstance(command, PutSettings):
            for uuid in command.uuids:
                self.indexes[uuid].replicas = command.settings["number_of_replicas"]
            return None
        return self._map(command) if isinstance(command, PutMapping) else self._alias(command)

    def _create(self, name: str, uuid: str, shards: int = 1) -> Any:
        if name != name.lower():
            return "invalid_index_name_exception"
        if self.by_name(name):
            return "resource_already_exists_exception"
        if any(name in index.aliases for index in self.indexes.values()):
            return "invalid_index_name_exception"
        routing = ShardRouting.checked(name, shards, None, 1)
        self.indexes[uuid] = TwinIndex(name, uuid, routing=routing)
        return name

    def _map(self, command: PutMapping) -> Any:
        given = {name: node["type"] for name, node in command.body["properties"].items()}
        for uuid in command.uuids:
            there = self.indexes[uuid].types
            if any(there.get(name, kind) != kind for name, kind in given.items()):
                return "illegal_argument_exception"
        for uuid in command.uuids:
            self.indexes[uuid].types.update(given)
        return None

    def _alias(self, command: Any) -> Any:
        after = {uuid: dict(index.aliases) for uuid, index in self.indexes.items()}
        for action in command.actions:
            if action.kind == "add":
                after[action.uuid][action.alias] = dict(action.options)
            else:
                after[action.uuid].pop(action.alias, None)
        for alias in sorted({action.alias for action in command.actions}):
            members = [aliases[alias] for aliases in after.values() if alias in aliases]
            if members and self.by_name(alias):
                return "invalid_alias_name_exception"
            if sum(options.get("is_write_index", False) for options in members) > 1:
                return "illegal_state_exception"
        for uuid, aliases in after.items():
            self.indexes[uuid].aliases = aliases
        return None

    def _target(self, write: DocumentWrite, made_uuid: Any) -> "TwinIndex | str":
        index = self.by_name(write.index)
        if index is not None:
            return index
        members = [one for one in self.indexes.values() if write.index in one.aliases]
        if not members:
            if write.operation.action is Action.DELETE:
                return "index_not_found_exception"
            made = self._create(write.index, made_uuid(write.index))
            return self.by_name(write.index) or str(made)
        chosen = [one for one in members if one.aliases[write.index].get("is_write_index")]
        if not chosen and len(members) == 1 and "is_write_index" not in members[0].aliases[write.index]:
            chosen = members
        return chosen[0] if len(chosen) == 1 else "illegal_argument_exception"

    def _write(self, write: DocumentWrite, made_uuid: Any) -> Any:
        index, operation = self._target(write, made_uuid), write.operation
        if isinstance(index, str):
            return index
        doc_id = operation.doc_id
        there = index.documents.get(doc_id)
        if operation.action is Action.CREATE and there:
            return "version_conflict_engine_exception"
        if operation.action is Action.DELETE:
            index.documents.pop(doc_id, None)
            return self._done(index, doc_id, "deleted" if there else "not_found")
        source = json.loads(operation.body)
        types = dict(index.types)
        for name, value in source.items():
            kind = types.setdefault(name, "text" if isinstance(value, str) else "long")
            if kind == "long" and isinstance(value, str):
                return "document_parsing_exception"
        index.types = types
        done = self._done(index, doc_id, "updated" if there else "created")
        index.documents[doc_id] = (source, done[2], done[3])
        return done

    def _done(self, index: TwinIndex, doc_id: str, outcome: str) -> tuple[str, str, int, int]:
        index.versions[doc_id] = index.versions.get(doc_id, 0) + 1
        shard = index.routing.shard_of(doc_id, None)
        index.seq_nos[shard] += 1
        return index.name, outcome, index.versions[doc_id], index.seq_nos[shard] - 1


def outcome_of(outcome: Outcome) -> Any:
    """What the twin would say."""
    if outcome.error is not None:
        return outcome.error.kind
    if not isinstance(outcome.value, list):
        return outcome.value
    return [
        one.result.error.kind
        if one.result.error
        else (one.index, one.result.outcome.value, one.result.version, one.result.seq_no)
        for one in outcome.value
    ]


def contents_of(catalog: Catalog) -> dict[str, TwinIndex]:
    """The catalogue in the form of the twin. It is refreshed."""
    found = {}
    for index in catalog.indexes():
        index.shards.refresh()
        documents = {}
        for leaf in index.shards.leaves():
            segment = leaf.segment
            for doc in np.flatnonzero(leaf.roots).tolist():
                versions = int(segment.versions[doc]), int(segment.seq_nos[doc])
                documents[segment.doc_id(doc)] = (json.loads(segment.source(doc)), *versions)
        properties = index.mapping.as_json().get("properties", {})
        found[index.uuid] = TwinIndex(
            index.name,
            index.uuid,
            {name: node["type"] for name, node in properties.items()},
            index.settings.get("number_of_replicas"),
            {alias: dict(options) for alias, options in index.aliases.items()},
            documents,
        )
    return found


def random_command(random: Random, uuids: list[str], number: int) -> Command:
    """uuids: those that there are, or have been; most of the time some of them are meant."""
    kind = random.randrange(12)
    chosen = tuple(dict.fromkeys(random.choices(uuids, k=2))) if uuids else ()
    if kind == 0 or not chosen:
        body: dict[str, Any] = random.choice([{}, {"settings": {"number_of_shards": 3}}])
        return CreateIndex(random.choice(NAMES), f"uuid{number}", body)
    if kind == 1 and random.random() < 0.4:
        return DeleteIndices(chosen[:1])
    if kind == 2:
        body = {"properties": {random.choice(FIELDS): {"type": random.choice(TYPES)}}}
        return PutMapping(chosen, body)
    if kind == 3:
        return PutSettings(chosen, {"number_of_replicas": str(random.randrange(3))})
    if kind <= 5:
        return UpdateAliases(tuple(_action(random, uuid) for uuid in chosen))
    if kind == 6:
        return RefreshIndices(chosen)
    writes = tuple(_write(random) for _ in range(random.randrange(1, 5)))
    return WriteDocuments(writes, random.random() < 0.3)


def _action(random: Random, uuid: str) -> AliasAction:
    alias = random.choice(ALIASES)
    if random.random() < 0.3:
        return AliasAction("remove", uuid, alias)
    options: dict[str, Any] = random.choice([{}, {"is_write_index": True}, {"is_write_index": False}])
    return AliasAction("add", uuid, alias, options)


def _write(random: Random) -> DocumentWrite:
    doc_id = f"doc{random.randrange(5)}"
    name = random.choice(["a", "b", "x", "y", "Bad"])
    if random.random() < 0.2:
        return DocumentWrite(name, Operation(Action.DELETE, doc_id))
    values = [random.choice([random.randrange(9), "w"]) for _ in FIELDS]
    body = json.dumps(dict(zip(random.sample(FIELDS, random.randrange(1, 3)), values, strict=False)))
    action = random.choice([Action.INDEX, Action.INDEX, Action.CREATE])
    return DocumentWrite(name, Operation(action, doc_id, body.encode()))
