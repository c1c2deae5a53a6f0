"""`Catalog`: all indexes of a node. Commands change it, in the order of the log."""

import hashlib
import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdb.errors import CorruptionError, UnavailableError
from graphdb.search.analysis.parameters import time_limit
from graphdb.search.catalog.catalog_commands import (
    Command,
    CreateDataStream,
    DocumentWrite,
    Outcome,
    WriteDocuments,
    WriteResult,
)
from graphdb.search.catalog.data_streams import creates_stream
from graphdb.search.catalog.document_writes import (
    is_unfinished,
    makes_index,
    prepared,
    write_documents,
)
from graphdb.search.catalog.index_blocks import check_changes, check_writes
from graphdb.search.catalog.index_names import (
    DEFAULT_OPTIONS,
    Resolved,
    ResolveOptions,
    resolve,
    write_target,
)
from graphdb.search.catalog.metadata_changes import Change, planned
from graphdb.search.catalog.new_indexes import GraphCheck, NewIndex, check_automatic, with_new_index
from graphdb.search.catalog.state import AliasOptions, CatalogState, Index
from graphdb.search.errors import SearchError, illegal_argument, unexpected

__all__ = ["Catalog"]

logger = logging.getLogger(__name__)


class Catalog:
    """One thread at a time applies; any thread reads. What is read is of one moment: maps are replaced, never
    changed. check_graph says whether the settings of an index that follows the graph can be; set it before
    the first command.
    """

    def __init__(self, state: CatalogState | None = None) -> None:
        self._state = state or CatalogState()
        self.check_graph: GraphCheck = _no_graph

    @property
    def state(self) -> CatalogState:
        """All of it, as of now."""
        return self._state

    def indexes(self) -> list[Index]:
        """All, by name."""
        return sorted(self._state.by_uuid.values(), key=lambda index: index.name)

    @property
    def has_patterns(self) -> bool:
        """Whether any index has (`state.has_patterns`)."""
        return any(index.has_patterns for index in self._state.by_uuid.values())

    def find(self, name: str) -> Index | None:
        """By the name of an index."""
        return self._state.by_name.get(name)

    @property
    def aliases(self) -> Mapping[str, Mapping[str, AliasOptions]]:
        """By alias, then by the name of an index: what was said of it."""
        state = self._state
        return {
            alias: {state.by_uuid[uuid].name: options for uuid, options in members.items()}
            for alias, members in sorted(state.by_alias.items())
        }

    @property
    def templates(self) -> Mapping[str, Mapping[str, Any]]:
        """Index templates by name, as they are shown."""
        return self._state.templates

    @property
    def components(self) -> Mapping[str, Mapping[str, Any]]:
        """Component templates by name, as they are shown."""
        return self._state.components

    @property
    def legacy_templates(self) -> Mapping[str, Mapping[str, Any]]:
        """Templates of the old kind by name, as they are shown."""
        return self._state.legacy_templates

    @property
    def data_streams(self) -> Mapping[str, Mapping[str, Any]]:
        """By name: template, generation, hidden; those of which an index can be seen."""
        state = self._state
        return {name: one for name, one in sorted(state.data_streams.items()) if name in state.by_alias}

    @property
    def lifecycles(self) -> Mapping[str, Mapping[str, Any]]:
        """Policies of index lifecycles by name: version, modified_ms, policy."""
        return self._state.lifecycles

    @property
    def scripts(self) -> Mapping[str, Mapping[str, Any]]:
        """Stored scripts by id, as they are shown."""
        return self._state.scripts

    @property
    def synonyms(self) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """Sets of synonyms by name: rules with `id` and `synonyms`, by id."""
        return self._state.synonyms

    @property
    def pipelines(self) -> Mapping[str, Mapping[str, Any]]:
        """Ingest pipelines by id, as they are shown."""
        return self._state.pipelines

    @property
    def cluster_settings(self) -> Mapping[str, Mapping[str, str]]:
        """By `persistent` and `transient`, then by dotted name: what was set."""
        return self._state.cluster_settings

    def resolve(
        self, expression: str | Iterable[str], options: ResolveOptions = DEFAULT_OPTIONS, now_ms: int = 0
    ) -> list[Resolved]:
        """The indexes that an expression names, by name, each once, and how they were named.

        Errors: index_not_found_exception, illegal_argument_exception, parse_exception,
        invalid_index_name_exception.
        """
        return resolve(self._state, expression, options, now_ms)

    def write_index(self, name: str) -> Index:
        """The index that a document goes to which is sent to that name, of an index or an alias.

        Errors: index_not_found_exception, illegal_argument_exception.
        """
        return write_target(self._state, name)[0]

    def check(self, command: Command) -> None:
        """Raise what applying it now would, without effect. Documents are not checked. On any thread."""
        if not isinstance(command, WriteDocuments):
            check_changes(self._state, command)
            planned(self._state, command, self.check_graph, 0)

    def prepare(self, writes: Sequence[DocumentWrite]) -> list[DocumentWrite]:
        """Try the documents of indexes that analyse with patterns of their users; to be called before they
        are logged, on any thread. Those that do not fit are marked, and fail when they are applied.
        """
        return prepared(self._state, writes)

    def apply(self, command: Command, log_index: int, timestamp_ms: int) -> Outcome:
        """What fails is an outcome, the same on every node. Raises CorruptionError, UnavailableError."""
        try:
            with time_limit(None):  # `prepare` has kept it
                if isinstance(command, WriteDocuments):
                    return Outcome(self._write(command, log_index, timestamp_ms))
                return Outcome(self._commit(planned(self._state, command, self.check_graph, timestamp_ms)))
        except SearchError as error:
            return Outcome(error=error)
        except (CorruptionError, UnavailableError, MemoryError):
            raise
        except Exception as error:
            logger.exception("the command of entry %d could not be applied", log_index)
            return Outcome(error=unexpected(error))

    def _commit(self, change: Change) -> Any:
        change.act()
        self._state = change.state
        return change.value

    def _write(self, command: WriteDocuments, log_index: int, timestamp_ms: int) -> list[WriteResult]:
        following, move = None, command.cursor
        if move is not None:
            following = self._state.index(move.uuid)
            check_writes(following)
            if following.cursor != move.before:
                return []

        def target(write: DocumentWrite) -> tuple[Index, AliasOptions]:
            index, options = self._target(write, log_index, timestamp_ms, command.in_one_shard)
            if index.follows_graph and index is not following:
                raise illegal_argument(f"index [{index.name}] follows the graph: change the graph instead")
            return index, options

        results, written = write_documents(command.writes, target)
        if following is not None and move is not None:
            following.cursor = move.unfinished if is_unfinished(following, results) else move.after
        for index in written if command.refresh else ():
            index.shards.refresh()
        return results

    def _target(
        self, write: DocumentWrite, log_index: int, timestamp_ms: int, in_one_shard: bool
    ) -> tuple[Index, AliasOptions]:
        state, name = self._state, write.index
        if write.require_alias and name not in state.by_alias:
            raise _no_alias(name)
        is_there = name in state.by_name or name in state.by_alias
        if write.require_data_stream and name not in state.data_streams:
            _check_stream(state, name, is_there)
        if not is_there and makes_index(write) and creates_stream(state, name):
            check_automatic(state, name)
            made = CreateDataStream(name, _uuid(name, log_index))
            self._commit(planned(state, made, self.check_graph, timestamp_ms))
        elif not is_there and makes_index(write):
            new = NewIndex(name, _uuid(name, log_index), timestamp_ms, {}, True, in_one_shard)
            self._state = with_new_index(state, new, self.check_graph)
        return write_target(self._state, name)


def _uuid(name: str, log_index: int) -> str:
    """Of an index that a document has made: the same on every node, and never again."""
    digest = hashlib.sha256(f"{log_index} {name}".encode("utf-8", "surrogatepass")).digest()
    return urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def _no_alias(name: str) -> SearchError:
    about = f"no such index [{name}] and [require_alias] request flag is [true] and [{name}] is not an alias"
    return SearchError("index_not_found_exception", about, 404, {"index_uuid": "_na_", "index": name})


def _check_stream(state: CatalogState, name: str, is_there: bool) -> None:
    """Raise where the name, which is no data stream, does not make one."""
    if is_there:
        reason = f"[require_data_stream] request flag is [true] and [{name}] is not a data stream"
        raise SearchError("resource_not_found_exception", reason, 404)
    if not creates_stream(state, name):
        reason = (
            f"no such index [{name}] and the index creation request requires a data stream, but no matching "
            "index template with data stream template was found for it"
        )
        raise SearchError("index_not_found_exception", reason, 404, {"index_uuid": "_na_", "index": name})


def _no_graph(settings: Mapping[str, Any]) -> None:
    raise illegal_argument("this node has no graph for an index to follow: [index.graph] cannot be set")
