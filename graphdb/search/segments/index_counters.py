"""`IndexCounters`: what has been done with one index, as `_stats` shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphdb.search.segments.operations import Action, OperationResult, Outcome

__all__ = ["IndexCounters"]

_GROUPS_MAX = 100  # of an index; searches of more are not counted by group


@dataclass(slots=True)
class IndexCounters:
    """Since this process opened the index, and of this process: each node of a cluster counts for itself.

    Documents, refreshes, merges and periodic commits are counted by the thread that writes, the others by
    the event loop. groups: searches by the `stats` that they say they belong to.
    """

    indexed: int = 0
    failed: int = 0
    deleted: int = 0
    unchanged: int = 0  # updates that were none
    uncommitted: int = 0  # operations since the last commit
    refreshes: int = 0
    merges: int = 0
    flushes: int = 0  # of shards, that requests have asked for, whether or not there was something to commit
    periodic: int = 0  # commits of shards that no request has asked for
    read: int = 0  # documents, by id
    not_found: int = 0
    searches: int = 0
    search_ms: float = 0.0
    suggestions: int = 0
    scrolls: int = 0
    cache_hits: int = 0  # answers that were kept
    cache_misses: int = 0
    groups: dict[str, int] = field(default_factory=dict)

    def note_results(self, results: Sequence[OperationResult]) -> None:
        """Of operations on documents."""
        self.uncommitted += len(results)
        for result in results:
            if result.error is not None:
                self.failed += 1
            elif result.action is Action.DELETE:
                self.deleted += 1
            elif result.outcome is Outcome.NOOP:
                self.unchanged += 1
            else:
                self.indexed += 1

    def note_read(self, is_found: bool) -> None:
        """Of one document by its id."""
        if is_found:
            self.read += 1
        else:
            self.not_found += 1

    def note_searches(self, count: int, taken_ms: float) -> None:
        """Of so many requests together, which belong to no groups."""
        self.searches += count
        self.search_ms += taken_ms

    def note_search(self, taken_ms: float, groups: Iterable[str]) -> None:
        """Of one request."""
        self.searches += 1
        self.search_ms += taken_ms
        for group in groups:
            if group in self.groups or len(self.groups) < _GROUPS_MAX:
                self.groups[group] = self.groups.get(group, 0) + 1

    def note_flush(self, shards: int) -> None:
        """Of one request."""
        self.flushes += shards

    def note_commit(self, is_asked: bool) -> None:
        """Of what a shard has in memory, to the disk. is_asked: by a request, which counts as a flush."""
        self.periodic += not is_asked
        self.uncommitted = 0
