"""The catalogue on disk: its file, the files of its indexes, copies of all of them."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as JsonObject
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from graphdb.errors import CorruptionError
from graphdb.log.file_system import FileSystem, RealFileSystem, replace_file, storage_error
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.index_settings import analyzers_of, in_one_shard, limits_of, routing_of
from graphdb.search.catalog.index_sort import order_of
from graphdb.search.catalog.state import CatalogState, Index, KnownNode
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping
from graphdb.search.segments.index_files import (
    IndexFiles,
    SavedCommit,
    SavePlan,
    decode_checked,
    encode_checked,
)
from graphdb.search.segments.index_shard import IndexShard, OpenAt
from graphdb.search.segments.index_shards import IndexShards
from graphdb.search.segments.segment_file import map_file

__all__ = [
    "CatalogFile",
    "CatalogFiles",
    "CatalogSave",
    "IndexRow",
    "copy_state",
    "read_catalog_file",
    "read_log_index",
    "write_catalog_file",
]

# The catalogue in one small file, which is replaced as a whole: what there is, and as of which log index.
#
# A line with the format and a CRC-32, then JSON. The documents and the mapping of an index are in its own
# directory, in the commit whose number stands here.

_NAME = "catalog"
_MARK = "graphdb-search-catalog-1"  # the last number is the format's version


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One index; generations are of the commits of its shards, by number."""

    name: str
    uuid: str
    created_ms: int
    settings: JsonObject[str, Any]
    aliases: JsonObject[str, Any]
    mapping_version: int
    cursor: int
    generations: Sequence[int]
    is_closed: bool = False

    @classmethod
    def decode(cls, values: dict[str, Any]) -> "IndexRow":
        """Before there were shards an index had one commit, whatever its settings said of shards."""
        if "generation" in values:
            values["generations"] = [values.pop("generation")]
            values["settings"] = in_one_shard(values["settings"])
        return cls(**values)

    def directories(self) -> list[str]:
        """Of its shards, by number; the first is where an index was before there were shards."""
        return [shard_directory(self.uuid, number) for number in range(len(self.generations))]


def shard_directory(uuid: str, number: int) -> str:
    """The name of the directory of a shard."""
    return f"{uuid}.{number}" if number else uuid


_LATER = (
    "data_streams",
    "lifecycles",
    "repositories",
    "snapshot_work",
    "synonyms",
    "operation_modes",
    "snapshot_policies",
    "snapshot_retention",
)


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """log_index: every entry up to there is in. opening counts the times that a process has opened it.

    nodes: name and address by node id, as text.
    """

    log_index: int
    opening: int
    indexes: Sequence[IndexRow] = ()
    templates: JsonObject[str, Any] = field(default_factory=dict)
    components: JsonObject[str, Any] = field(default_factory=dict)
    cluster_uuid: str | None = None
    nodes: JsonObject[str, Sequence[str]] = field(default_factory=dict)
    cluster_settings: JsonObject[str, Any] = field(default_factory=dict)
    scripts: JsonObject[str, Any] = field(default_factory=dict)
    pipelines: JsonObject[str, Any] = field(default_factory=dict)
    legacy_templates: JsonObject[str, Any] = field(default_factory=dict)
    data_streams: JsonObject[str, Any] = field(default_factory=dict)
    lifecycles: JsonObject[str, Any] = field(default_factory=dict)
    repositories: JsonObject[str, Any] = field(default_factory=dict)
    snapshot_work: JsonObject[str, Any] = field(default_factory=dict)
    synonyms: JsonObject[str, Any] = field(default_factory=dict)
    operation_modes: JsonObject[str, Any] = field(default_factory=dict)
    snapshot_policies: JsonObject[str, Any] = field(default_factory=dict)
    snapshot_retention: JsonObject[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        values = asdict(self)
        for name in _LATER:
            if not values[name]:
                del values[name]  # a version without them can read the others
        return encode_checked(_MARK, values)

    @classmethod
    def decode(cls, data: bytes, where: str) -> "CatalogFile":
        """Raises CorruptionError."""
        values = decode_checked(_MARK, data, "catalogue of search indexes", where)
        values["indexes"] = tuple(map(IndexRow.decode, values["indexes"]))
        return cls(**values)


def read_catalog_file(file_system: FileSystem, directory: str) -> CatalogFile | None:
    """None where there never was one. Raises CorruptionError, OSError."""
    path = os.path.join(directory, _NAME)
    try:
        data = bytes(map_file(file_system, path))
    except FileNotFoundError:
        return None
    return CatalogFile.decode(data, path)


def write_catalog_file(file_system: FileSystem, directory: str, content: CatalogFile) -> None:
    """Durably. Raises OSError; then the next reader may find the one before, or this one."""
    replace_file(file_system, directory, _NAME, content.encode())


# `CatalogFiles`: the catalogue of a node on disk, written so that a crash leaves it as of one log index.
#
#     search/catalog      what there is (`catalog_file.py`), and which commit of each index belongs to it
#     search/<uuid>/      the documents and the mapping of an index (`graphdb.search.segments.index_files`)
#     search/<uuid>.1/    the same of its second shard, where it has more than one
#
# Shards are committed first, the file that names their commits is replaced then, older commits go last.
# All that may be done beside the thread that applies, which says what there is before, and hears of it
# afterwards.


@dataclass(frozen=True, slots=True)
class CatalogSave:
    """What is to be on disk: the file, and the shards that have changed since they were committed: of which
    index, and their number in it.
    """

    content: CatalogFile
    shards: Sequence[tuple[Index, int, SavePlan]]

    def note(self, commits: Sequence[SavedCommit], is_asked: bool = False) -> None:
        """It is on disk. To be called where the catalogue changes. is_asked: by a request."""
        for (index, number, _), commit in zip(self.shards, commits, strict=True):
            index.shards.note_saved(number, commit, is_asked)

    def give_up(self) -> None:
        """It could not be written. What was sealed for it is found all the same. To be called as `note`."""
        for index in {index.uuid: index for index, _, _ in self.shards}.values():
            index.shards.adopt_built()


class CatalogFiles:
    """One directory. Its methods are called on one thread at a time, but for `plan`."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._system, self._directory = file_system, directory
        self._opening = 1
        self._files: dict[str, IndexFiles] = {}  # of every shard that has a directory, by its name

    def load(self) -> tuple[Catalog, int] | None:
        """The catalogue and the log index that it is of; None where there never was one.

        Raises CorruptionError, UnavailableError.
        """
        with _storage("opening the search indexes"):
            content = read_catalog_file(self._system, self._directory)
            if content is None:
                return None
            content = replace(content, opening=content.opening + 1)
            write_catalog_file(self._system, self._directory, content)
            self._opening = content.opening
            self._remove_unknown({name for row in content.indexes for name in row.directories()})
        indexes = [self._open(row) for row in content.indexes]
        state = CatalogState(
            {index.uuid: index for index in indexes},
            {row.uuid: row.aliases for row in content.indexes},
            content.templates,
            content.components,
            content.cluster_uuid,
            {int(number): KnownNode(*row) for number, row in content.nodes.items()},
            content.cluster_settings,
            content.scripts,
            content.pipelines,
            content.legacy_templates,
            content.data_streams,
            content.lifecycles,
            content.repositories,
            content.snapshot_work,
            content.synonyms,
            content.operation_modes,
            content.snapshot_policies,
            content.snapshot_retention,
        )
        for index in indexes:
            index.aliases = state.aliases_of(index.uuid)
        return Catalog(state), content.log_index

    def save(self, catalog: Catalog, log_index: int) -> None:
        """Put everything on disk, here and now; log_index is the last entry that was applied.

        Raises UnavailableError: on disk is then what was saved before, or this.
        """
        for index in catalog.state.by_uuid.values():
            index.shards.refresh()
        planned = self.plan(catalog, log_index)
        planned.note(self.write(planned))

    def plan(self, catalog: Catalog, log_index: int) -> CatalogSave:
        """What there is, as of the last entry that was applied. To be called where the catalogue changes."""
        state = catalog.state
        indexes = state.by_uuid.values()
        plans = [
            (index, number, plan) for index in indexes for number, plan in index.shards.plan_save(log_index)
        ]
        generations = {(index.uuid, number): plan.generation for index, number, plan in plans}
        rows = [_row(index, state, generations) for index in indexes]
        nodes = {str(number): (node.name, node.address) for number, node in state.nodes.items()}
        content = CatalogFile(
            log_index,
            self._opening,
            rows,
            state.templates,
            state.components,
            state.cluster_uuid,
            nodes,
            state.cluster_settings,
            state.scripts,
            state.pipelines,
            state.legacy_templates,
            state.data_streams,
            state.lifecycles,
            state.repositories,
            state.snapshot_work,
            state.synonyms,
            state.operation_modes,
            state.snapshot_policies,
            state.snapshot_retention,
        )
        return CatalogSave(content, plans)

    def write(self, planned: CatalogSave) -> list[SavedCommit]:
        """Put it on disk; the commits, for `note`. Reads and writes go on meanwhile. Raises as `save`."""
        places = [shard_directory(index.uuid, number) for index, number, _ in planned.shards]
        plans = [plan for _, _, plan in planned.shards]
        commits = [plan.write(self._files_of(place)) for place, plan in zip(places, plans, strict=True)]
        with _storage("saving the catalogue"):
            self._system.make_directory(self._directory)
            write_catalog_file(self._system, self._directory, planned.content)
        for place, commit in zip(places, commits, strict=True):
            self._files_of(place).remove_all_but(commit.point)
        known = {name for row in planned.content.indexes for name in row.directories()}
        for name in self._files.keys() - known:
            del self._files[name]
            self._remove(name)
        return commits

    def directory_of(self, index: Index, shard: int) -> str:
        """Where a shard of an index is, for what others keep beside its segments."""
        return os.path.join(self._directory, shard_directory(index.uuid, shard))

    def _files_of(self, name: str) -> IndexFiles:
        if name not in self._files:
            self._files[name] = IndexFiles(self._system, os.path.join(self._directory, name))
        return self._files[name]

    def _open(self, row: IndexRow) -> Index:
        where = os.path.join(self._directory, row.uuid)
        try:
            analyzers, limits = analyzers_of(row.settings), limits_of(row.settings)
            routing = routing_of(row.name, row.settings)
            if routing.shards != len(row.generations):
                raise CorruptionError(f"the index [{row.name}] has lost shards", where)
            first = self._open_shard(row, 0, lambda mapping, _: Mapping.stored(mapping, analyzers, limits))
            others = [
                self._open_shard(row, number, lambda *_: first.mapping) for number in range(1, routing.shards)
            ]
        except SearchError as error:
            raise CorruptionError(f"the index [{row.name}] cannot be opened: {error}", where) from error
        shards = IndexShards([first, *others], routing, order_of(row.settings, first.mapping))
        index = Index(row.name, row.uuid, row.created_ms, row.settings, analyzers, shards)
        index.mapping_version, index.cursor = row.mapping_version, row.cursor
        index.is_closed = row.is_closed
        return index

    def _open_shard(
        self, row: IndexRow, number: int, mapping_of: Callable[..., Mapping]
    ) -> IndexShard[Mapping]:
        files = self._files_of(shard_directory(row.uuid, number))
        at = OpenAt(row.generations[number], self._opening)
        shard = IndexShard.open(row.name, files, mapping_of, at=at, number=number)
        assert shard is not None, "a commit was asked for"
        return shard

    def _remove_unknown(self, known: set[str]) -> None:
        """Indexes that were deleted, and those that a process began which has crashed."""
        for name in self._system.list(self._directory):
            if name not in known:
                self._remove(name)

    def _remove(self, directory_name: str) -> None:
        """What cannot be removed now is removed by the next `load`; a file is not, there is nothing in it to
        list. Readers keep what they have mapped.
        """
        directory = os.path.join(self._directory, directory_name)
        with contextlib.suppress(OSError):
            for name in self._system.list(directory):
                self._system.unlink(os.path.join(directory, name))
            self._system.remove_directory(directory)


def read_log_index(directory: str, file_system: FileSystem | None = None) -> int | None:
    """The log index that a directory of search indexes is of; None where there is none.

    Raises CorruptionError, UnavailableError.
    """
    with _storage("opening the search indexes"):
        content = read_catalog_file(file_system or RealFileSystem(), directory)
    return None if content is None else content.log_index


def _row(index: Index, state: CatalogState, planned: JsonObject[tuple[str, int], int]) -> IndexRow:
    """planned: generations of the commits to come, by index and shard."""
    return IndexRow(
        index.name,
        index.uuid,
        index.created_ms,
        index.settings,
        state.aliases.get(index.uuid, {}),
        index.mapping_version,
        index.cursor,
        [planned.get((index.uuid, shard.number), shard.generation) for shard in index.shards],
        index.is_closed,
    )


@contextlib.contextmanager
def _storage(doing: str) -> Iterator[None]:
    """The operating system's refusals as the project's errors."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error


# Copies of a node's search indexes, made while the process that owns them goes on writing.

_ATTEMPTS_MAX = 100
_PIECE_BYTES = 16 << 20
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}


def copy_state(
    directory: str, target: str, log_index: int | None = None, file_system: FileSystem | None = None
) -> int | None:
    """Put the state that is on disk into a new directory, durably; the log index that it is of, None where
    there is no state, and then no target.

    Files are linked where that is possible: none is ever changed. log_index: what the copy says it is of,
    in place of what the state says. Raises CorruptionError, UnavailableError.
    """
    system = file_system or RealFileSystem()
    try:
        for _ in range(_ATTEMPTS_MAX):
            content = read_catalog_file(system, directory)
            if content is None:
                return None
            if _copied(system, directory, target, content):
                named = content if log_index is None else replace(content, log_index=log_index)
                write_catalog_file(system, target, named)
                return named.log_index
            if read_catalog_file(system, directory) == content:
                raise CorruptionError("the catalogue names a commit that is not whole", directory)
    except OSError as error:
        raise storage_error(error, "copying the search indexes") from error
    raise storage_error(OSError(errno.EBUSY, "they change too fast"), "copying the search indexes")


def _copied(system: FileSystem, directory: str, target: str, content: CatalogFile) -> bool:
    """Whether all was still there. What an attempt before has copied stays: names are never given twice."""
    system.make_directory(target)
    shards = [
        shard for row in content.indexes for shard in zip(row.directories(), row.generations, strict=True)
    ]
    for shard_name, generation in shards:
        source, place = os.path.join(directory, shard_name), os.path.join(target, shard_name)
        try:
            names, beside = _names(system, source, generation)
            system.make_directory(place)
            present = set(system.list(place))
            for name in sorted(names - present):
                _copy(system, os.path.join(source, name), os.path.join(place, name))
            for name in sorted(beside - present):
                with contextlib.suppress(FileNotFoundError):  # it can be made again
                    _copy(system, os.path.join(source, name), os.path.join(place, name))
        except FileNotFoundError:
            return False
        for name in present - names - beside:
            system.unlink(os.path.join(place, name))
        system.sync_directory(place)
    return True


def _names(system: FileSystem, directory: str, generation: int) -> tuple[set[str], set[str]]:
    """The files of one commit, with itself; and the vectors' graphs beside its segments. Raises
    FileNotFoundError.
    """
    listed = system.list(directory)
    try:
        point = IndexFiles(system, directory).committed(generation)
    except CorruptionError as error:
        raise FileNotFoundError(errno.ENOENT, "the commit is gone", directory) from error
    assert point is not None, "a commit was asked for"
    segments = {segment.name for segment in point.segments}
    graphs = {name for name in listed if name.endswith(".hnsw") and name.partition(".")[0] in segments}
    return point.files() | {f"commit-{generation}"}, graphs


def _copy(system: FileSystem, source: str, target: str) -> None:
    try:
        system.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        _copy_bytes(system, source, target)


def _copy_bytes(system: FileSystem, source: str, target: str) -> None:
    with contextlib.closing(system.open(source)) as old, contextlib.closing(system.create(target)) as new:
        at = 0
        while data := old.read(_PIECE_BYTES, at):
            new.write(data, at)
            at += len(data)
        new.sync()
