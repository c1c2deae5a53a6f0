"""`Journal`: the segmented file log and the state file as one Raft peer's memory.

Changes are made in memory and put on disk by `sync`, in an order that leaves a valid peer wherever a crash
falls: first term, vote and members; then what is taken back; then what is added, all with one sync.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile

from graphdb.errors import CorruptionError
from graphdb.log.codec import encode_entry, entries_bytes, entry_bytes
from graphdb.log.file_log import FileLog, FileLogConfig
from graphdb.log.file_system import FileSystem, storage_error
from graphdb.log.log_end import LogEnd
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import Members, PeerId, decode_members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.state_file import DurableState, read_state, write_state

__all__ = ["Journal", "JournalConfig"]


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """How the journal lies on disk and in memory."""

    log: FileLogConfig = field(default_factory=FileLogConfig)
    # newest entries kept in memory, twice: for followers, and encoded for views; others are read from disk
    recent_bytes_max: int = 8 << 20
    keep_bytes: int = 64 << 20  # of the newest entries in a snapshot, for peers that lag a little


class Journal:
    """What a peer remembers: term, vote, members and entries. One thread at a time, one process at a time.

    Everything in it counts, synced or not, until `roll_back`. Indices up to base are in the snapshot. Entries
    after synced_index are in memory only.
    """

    def __init__(
        self,
        file_system: FileSystem,
        state_directory: str,
        log_directory: str,
        node_id: int,
        fresh_incarnation: Callable[[], int],
        config: JournalConfig | None = None,
    ) -> None:
        """Open the journal, or make one, with a fresh incarnation, where there is no state.

        Raises LogUnavailable, StorageFull, CorruptionError.
        """
        self._file_system = file_system
        self._directory = state_directory
        self._config = config or JournalConfig()
        self._log = FileLog(file_system, log_directory, self._config.log)
        try:
            self._saved = self._read_or_make_state(node_id, fresh_incarnation)
            self._load()
        except BaseException:
            self._log.close()
            raise

    def _read_or_make_state(self, node_id: int, fresh_incarnation: Callable[[], int]) -> DurableState:
        try:
            state = read_state(self._file_system, self._directory)
            # a process that was killed may have given the file its name only in memory; others rely on it now
            self._file_system.sync_directory(self._directory)
        except OSError as error:
            raise storage_error(error, "reading the term and the vote") from error
        if state is None:
            if self._log.last_index:
                raise CorruptionError("the log has entries and the state file is gone", self._directory)
            state = DurableState(PeerId(node_id, fresh_incarnation()))
            write_state(self._file_system, self._directory, state)
        if state.peer.node_id != node_id:
            raise CorruptionError(f"belongs to node {state.peer.node_id}, not {node_id}", self._directory)
        return state

    def _load(self) -> None:
        """Take over what is on disk."""
        self._state = self._saved
        self._connect()
        self._recent: list[LogEntry] = []
        self._encoded: list[bytes] = []  # those of _recent that are on disk, as they were written
        self._recent_first = self._log.last_index + 1
        self._recent_bytes = 0
        self.end = LogEnd.of_opened(self._log.last_index)
        self._kept = self._log.last_index  # up to here the file log's entries count
        self._runs = list(self._find_runs(self.base.log_index + 1, self._log.last_index))
        self._changes = [change for change in self._saved.changes if self._stands(*change)]

    def _connect(self) -> None:
        """Where a crash came between a snapshot and the log that follows it, begin that log."""
        base = self._state.base
        if self._log.first_index > base.log_index + 1:
            raise CorruptionError(
                f"the log begins at {self._log.first_index}, the snapshot is at {base.log_index}",
                self._directory,
            )
        behind = self._log.last_index < base.log_index
        if behind or (
            self._log.first_index <= base.log_index
            and self._read_entry(base.log_index).raft_term != base.raft_term
        ):
            self._log.restart_at(base.log_index + 1)

    def _find_runs(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """(first index, term) of each run of entries of one term in [first, last]: terms never fall."""
        while first <= last:
            term = self._read_entry(first).raft_term
            yield first, term
            low, high = first + 1, last + 1  # the next run begins in here
            while low < high:
                middle = (low + high) // 2
                if self._read_entry(middle).raft_term > term:
                    high = middle
                else:
                    low = middle + 1
            first = low

    def _stands(self, index: int, members: Members) -> bool:
        """Whether that change of members is really in the log."""
        if not self.base.log_index < index <= self._log.last_index:
            return False
        entry = self._read_entry(index)
        return entry.kind is EntryKind.MEMBERS and decode_members(entry.payload) == members

    def _read_entry(self, index: int) -> LogEntry:
        return self._log.read(index, 1)[0]

    @property
    def peer(self) -> PeerId:
        return self._state.peer

    @property
    def cluster_id(self) -> int:
        return self._state.cluster_id

    @property
    def term(self) -> int:
        return self._state.term

    @property
    def vote(self) -> PeerId | None:
        return self._state.vote

    @property
    def base(self) -> SnapshotMark:
        """The snapshot that the entries follow; at 0 where all entries are there."""
        return self._state.base

    @property
    def last_index(self) -> int:
        return self._recent_first + len(self._recent) - 1

    @property
    def last_term(self) -> int:
        return self._runs[-1][1] if self._runs else self.base.raft_term

    @property
    def held_bytes(self) -> int:
        """How much the entries on disk take."""
        return self._log.held_bytes

    @property
    def synced_index(self) -> int:
        """The last entry that is on disk."""
        return self._kept

    @property
    def is_synced(self) -> bool:
        """Whether nothing is waiting for `sync`."""
        return self._kept == self.last_index and self.state_is_synced

    @property
    def state_is_synced(self) -> bool:
        """Whether term, vote and members are on disk."""
        return self._state is self._saved

    @property
    def members(self) -> Members:
        """The newest configuration in the journal, committed or not: that is the one that holds."""
        return self._changes[-1][1] if self._changes else self.base.members

    @property
    def members_index(self) -> int:
        """The index of the entry that members come from."""
        return self._changes[-1][0] if self._changes else self.base.log_index

    def members_at(self, index: int) -> Members:
        """The configuration as of the entry at index, at least base."""
        position = bisect_right(self._changes, index, key=lambda change: change[0])
        return self._changes[position - 1][1] if position else self.base.members

    def term_at(self, index: int) -> int | None:
        """The term of the entry at index; None where it is unknown: before base, after the end."""
        if self._runs and index >= self._runs[-1][0]:
            return self._runs[-1][1] if index <= self.last_index else None
        if index == self.base.log_index:
            return self.base.raft_term
        position = bisect_right(self._runs, index, key=lambda run: run[0])
        return self._runs[position - 1][1] if position and index > self.base.log_index else None

    def last_index_within(self, index: int, term: int) -> int:
        """The largest index up to index, at least base, whose entry's term is at most term."""
        index = min(index, self.last_index)
        for first, run_term in reversed(self._runs):
            if run_term <= term and first <= index:
                return index
            index = min(index, first - 1)
        return max(index, self.base.log_index)

    def read(self, from_index: int, bytes_max: int) -> list[LogEntry]:
        """Entries from from_index on, in order: as many as fit bytes_max, at least one; none at the end.

        Fewer may come than fit. Raises CorruptionError where from_index is not after base, LogUnavailable.
        """
        self._check_kept(from_index)
        if from_index < self._recent_first:
            stored = self._log.read(from_index, bytes_max)
            return stored[: self._recent_first - from_index]
        start = stop = from_index - self._recent_first
        size = 0
        while stop < len(self._recent):
            size += entry_bytes(len(self._recent[stop].payload))
            if size > bytes_max and stop > start:
                break
            stop += 1
        return self._recent[start:stop]

    def read_encoded(self, from_index: int, last_index: int, bytes_max: int) -> bytes:
        """Entries from from_index to last_index, which are on disk, as `encode_entry` gives them: as many as
        fit bytes_max, at least one.

        Fewer may come than fit. Raises as `read`.
        """
        self._check_kept(from_index)
        if from_index < self._recent_first:
            return b"".join(
                map(encode_entry, self.read(from_index, bytes_max)[: last_index + 1 - from_index])
            )
        encoded = self._encoded[from_index - self._recent_first : last_index + 1 - self._recent_first]
        ends = accumulate(map(len, encoded))
        fitting = sum(1 for _ in takewhile(bytes_max.__ge__, ends))
        return b"".join(encoded[: max(fitting, 1)])

    def _check_kept(self, index: int) -> None:
        if index <= self.base.log_index:
            raise CorruptionError(f"entry {index} is in the snapshot", self._directory)

    def set_term(self, term: int, vote: PeerId | None) -> None:
        """Enter a term, or vote in this one."""
        assert (term, vote) == (self.term, self.vote) or term > self.term or self.vote is None
        self._state = replace(self._state, term=term, vote=vote)

    def join_cluster(self, cluster_id: int) -> None:
        """Belong to this cluster from now on."""
        assert self.cluster_id == 0
        self._state = replace(self._state, cluster_id=cluster_id)

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Add entries after the last."""
        index, term = self.last_index, self.last_term
        for entry in entries:
            index += 1
            assert entry.log_index == index
            assert entry.raft_term >= term
            if entry.raft_term > term or not self._runs:
                term = entry.raft_term
                self._runs.append((index, term))
            self._recent_bytes += entry_bytes(len(entry.payload))
            if entry.kind is EntryKind.MEMBERS:
                self._changes.append((index, decode_members(entry.payload)))
                self._state = replace(self._state, changes=tuple(self._changes))
        self._recent += entries
        self.end = self.end.extended(entries)

    def truncate_after(self, index: int) -> None:
        """Take back the entries after index, which is at least base."""
        assert self.base.log_index <= index <= self.last_index
        if index < self._recent_first:
            self._recent, self._recent_first, self._recent_bytes = [], index + 1, 0
            self._encoded = []
        else:
            dropped = self._recent[index + 1 - self._recent_first :]
            self._recent_bytes -= entries_bytes(dropped)
            del self._recent[index + 1 - self._recent_first :]
            del self._encoded[index + 1 - self._recent_first :]
        self._kept = min(self._kept, index)
        self.end = self.end.cut(index)
        while self._runs and self._runs[-1][0] > index:
            self._runs.pop()
        while self._changes and self._changes[-1][0] > index:
            self._changes.pop()

    def sync(self) -> None:
        """Put everything on disk.

        Raises StorageFull, LogUnavailable, OutcomeUnknown; then `roll_back`, as a restart would.
        """
        if not self.state_is_synced:
            write_state(self._file_system, self._directory, self._state)
            self._saved = self._state
        if self._kept < self._log.last_index:
            self._log.truncate_after(self._kept)
        if self._kept < self.last_index:
            self._encoded += self._log.append(self._recent[self._kept + 1 - self._recent_first :])
            self._kept = self.last_index
        self._forget_recent()

    def _forget_recent(self) -> None:
        """Keep in memory no more of what is on disk than is allowed."""
        count = 0
        while self._recent_bytes > self._config.recent_bytes_max and count < len(self._recent):
            self._recent_bytes -= entry_bytes(len(self._recent[count].payload))
            count += 1
        del self._recent[:count], self._encoded[:count]
        self._recent_first += count

    def roll_back(self) -> None:
        """Forget all that is not on disk. Raises LogUnavailable, CorruptionError."""
        self._load()

    def compactable_index(self, index: int, keep_bytes: int | None = None) -> int:
        """How far the log may be compacted once there is a snapshot at index: at least keep_bytes
        (`JournalConfig`) of the entries before it stay, where there are so many.

        A peer that lags by less is given entries, not a snapshot.
        """
        size = self._config.keep_bytes if keep_bytes is None else keep_bytes
        return max(self._log.index_before(index, size), self.base.log_index)

    def compact(self, index: int) -> None:
        """Let a snapshot stand for the entries up to index, which must be on disk, as the snapshot is.

        Raises StorageFull, LogUnavailable; then it may be done or not, and the journal can be used on.
        """
        assert index <= self.synced_index
        if index <= self.base.log_index:
            return
        term = self.term_at(index)
        assert term is not None
        self._rebase(SnapshotMark(index, term, self.members_at(index)))
        self._log.truncate_before(index + 1)

    def end_segment(self, index: int) -> int:
        """See `FileLog.end_segment`, of what is on disk."""
        return self._log.end_segment(index)

    def drop_compacted(self) -> int:
        """Drop the segments of which nothing counts any more; the first entry that the others have: it may
        be one that the snapshot stands for. Raises StorageFull, LogUnavailable.
        """
        self._log.truncate_before(self.base.log_index + 1)
        return self._log.first_index

    def install(self, mark: SnapshotMark) -> None:
        """Begin again after a snapshot of another peer's, which must be on disk.

        Entries that follow it stay where the entry at mark is known to be the same. Raises StorageFull,
        LogUnavailable; then it may be done or not: `roll_back`.
        """
        assert self.is_synced
        if mark.log_index <= self.base.log_index:
            return
        if self.term_at(mark.log_index) == mark.raft_term:
            self.compact(mark.log_index)
            return
        self._rebase(mark)
        self._load()

    def _rebase(self, mark: SnapshotMark) -> None:
        changes = tuple(change for change in self._changes if change[0] > mark.log_index)
        state = replace(self._state, base=mark, changes=changes)
        write_state(self._file_system, self._directory, state)
        self._state = self._saved = state
        self._changes = list(changes)
        self._drop_runs(mark.log_index)

    def _drop_runs(self, index: int) -> None:
        """Forget the runs up to index, but keep the one that goes on after it."""
        # of several that now begin at index + 1, the last one is the one that holds there
        starts = {max(first, index + 1): term for first, term in self._runs}
        self._runs = list(starts.items()) if self.last_index > index else []

    def close(self) -> None:
        """Let go of the files. What is not synced is lost."""
        self._log.close()
