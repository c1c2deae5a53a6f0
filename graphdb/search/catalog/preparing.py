"""Trying documents before they are logged, where how long that takes is not the same on every node."""

from collections.abc import Sequence
from dataclasses import replace

from graphdb.search.analysis.patterns import time_limit
from graphdb.search.catalog.commands import DocumentWrite
from graphdb.search.catalog.index import Index
from graphdb.search.catalog.resolution import write_target
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.segments.updates import read_object, updated_source
from graphdb.search.segments.versioning import MISSING, Current
from graphdb.search.segments.writer_sight import sees_current

__all__ = ["prepared"]

_MATCH_S = 0.25  # one match of a pattern; texts of thousands of words need thousands of them


def prepared(state: CatalogState, writes: Sequence[DocumentWrite]) -> list[DocumentWrite]:
    """The same, with `tried` or `error` set where an index analyses with patterns of its users."""
    if not any(index.has_patterns for index in state.by_uuid.values()):
        return list(writes)
    trials: dict[str, _Trial] = {}
    return [_prepared(state, write, trials) for write in writes]


class _Trial:
    """The mapping of an index as it will be after the documents so far, if nobody else writes."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._mapping: Mapping = index.mapping
        self._version = index.mapping_version

    def try_out(self, operation: Operation) -> tuple[int, int]:
        """What to note as tried. Raises SearchError where the document does not fit."""
        source, seq_no = self._source(operation)
        tried = self._version, seq_no
        if source is not None:
            with time_limit(_MATCH_S):
                _, mapping = self._mapping.parse(read_object(source), operation.doc_id)
            if mapping is not self._mapping:
                self._mapping, self._version = mapping, self._version + 1
        return tried

    def _source(self, operation: Operation) -> tuple[bytes | None, int]:
        """The document as it would be stored, and the sequence number of the one that it is made of."""
        if operation.action is not Action.UPDATE:
            return operation.body, -1
        there = self._index.shard.get(operation.doc_id)
        if there is None:
            return updated_source(self._index.name, operation, MISSING), -1
        found = Current(True, there.version, there.seq_no, there.source, there.routing)
        seen = found if sees_current(operation, found) else MISSING
        return updated_source(self._index.name, operation, seen), there.seq_no


def _prepared(state: CatalogState, write: DocumentWrite, trials: dict[str, _Trial]) -> DocumentWrite:
    try:
        index, _ = write_target(state, write.index)
    except SearchError:
        return write  # applying it says what is wrong, or makes the index
    if not index.has_patterns or write.operation.action is Action.DELETE:
        return write
    trial = trials.setdefault(index.uuid, _Trial(index))
    try:
        return replace(write, tried=trial.try_out(write.operation), error=None)
    except SearchError as error:
        return replace(write, tried=None, error=error)
