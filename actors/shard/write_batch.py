"""`Batch`: requests that are planned together: one sync of the log and one change of the store for all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Protocol

from actors.shard.write_queue import EntryPlan, Plan, WriteJob
from graphdb.access.writer_state import Planned, WholeState
from graphdb.errors import Forbidden
from graphdb.log.payloads import encode_change_parts, encode_line, encode_lines
from graphdb.model import ChangeSet, Confirmation, EntryKind, ForeseeingOutcome, GraphName, LogEntry
from graphdb.rdf.quad_lines import LineChange
from graphdb.sparql.plain_data import OneTriple
from graphdb.store.overlay import BaseNotApplied, GraphsInRemoval, Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.updates.graph_operations import change_of

__all__ = ["Attempt", "Batch", "LargeWrite", "WriteGuard", "plan_batch"]


_NO_CHANGE = ChangeSet()


class WriteGuard(Protocol):
    """Owned by a `ShardWriter`; used on its thread, by one batch after the other."""

    def begin(self, state: Overlay, index: int) -> None:
        """A batch is planned: nothing of it is laid over the state yet, which is that of this log index."""

    def check(self, state: Overlay, change: ChangeSet) -> None:
        """Return where the change, of one write on this state, may be stored.

        Raises why not, or BaseNotApplied.
        """

    def check_parts(self, state: Overlay, plan: Callable[[], Iterator[ChangeSet]]) -> None:
        """The same for a large change; each call of plan gives its parts anew."""

    def note(self, change: ChangeSet, index: int) -> None:
        """The batch is applied, and the store at this log index; nobody else has written meanwhile."""


@dataclass(slots=True, eq=False)
class Attempt:
    """A job as it was planned once."""

    job: WriteJob
    affected_triples: int = 0  # as whoever writes sees it
    payload: bytes = b""  # empty: nothing to log
    planned: ChangeSet | None = None  # that the payload encodes; None of a job that is one triple
    error: Exception | None = None  # what planning ended in
    foreseen: Confirmation | None = None  # what its job was told that it will probably be answered

    @property
    def adds(self) -> bool:
        """Whether anything is there afterwards that was not before."""
        one = self.job.plan
        if self.planned is None:
            return isinstance(one, OneTriple) and not one.deletes
        return self.planned.adds

    @property
    def change(self) -> ChangeSet:
        """What the payload encodes."""
        one = self.job.plan
        if self.planned is not None or not (self.payload and isinstance(one, OneTriple)):
            return self.planned or _NO_CHANGE
        return ChangeSet(removed=(one.quad,)) if one.deletes else ChangeSet(added=(one.quad,))


class LargeWrite:
    """A job whose change does not fit one log entry: a stream of parts, planned as it is taken.

    The stream may read from the engine, so it is made, taken and closed on one and the same thread.
    """

    def __init__(
        self,
        attempt: Attempt,
        planned: Planned,
        parts: Iterator[ChangeSet] | LineChange,
        part_bytes: int,
    ) -> None:
        """parts are as planned, not what they really change."""
        self.attempt = attempt
        self.adds = False  # as far as the parts were taken
        self.cleared_graphs: tuple[GraphName, ...] = ()  # see `LineChange`
        if isinstance(parts, LineChange):
            self.cleared_graphs = parts.cleared_graphs
            self._payloads = self._framed(parts, part_bytes)
        else:
            self._payloads = self._encode(planned, parts, part_bytes)

    def _framed(self, lines: LineChange, part_bytes: int) -> Iterator[bytes]:
        """Lines are what the log holds."""
        created, dropped = lines.created_graphs, lines.dropped_graphs
        for removed, added in lines.pieces(part_bytes):
            self.attempt.affected_triples += removed.count(b"\n") + added.count(b"\n")
            self.adds = self.adds or bool(added or created)
            yield encode_lines(removed, added, created, dropped)
            created = dropped = ()
        if created or dropped:
            self.adds = self.adds or bool(created)
            yield encode_lines(b"", b"", created, dropped)

    def _encode(self, planned: Planned, parts: Iterator[ChangeSet], part_bytes: int) -> Iterator[bytes]:
        try:
            for part in parts:
                self.attempt.affected_triples += part.affected_triples
                told = part.affected_triples
                change = planned.real_change(part)
                self.adds = self.adds or change.adds
                yield from encode_change_parts(change, part_bytes, told)
        finally:
            del parts  # on this thread, as the engine wants it: an error's traceback would keep them

    def next_payload(self) -> bytes | None:
        """The next part, encoded and counted; None at the end. Raises what planning raises."""
        return next(self._payloads, None)

    def close(self) -> None:
        """Let go of the stream."""
        self._payloads = iter(())


@dataclass(slots=True)
class Batch:
    """Attempts in order, and what the store will be after them.

    Where there is a `large` one, those before it change nothing; `deferred` are for the next batch, `parked`
    for one when nothing is being removed any more.
    """

    overlay: Overlay
    attempts: list[Attempt] = field(default_factory=list)
    logged: list[Attempt] = field(default_factory=list)  # those that change something: each has an entry
    large: LargeWrite | None = None
    deferred: list[WriteJob] = field(default_factory=list)
    parked: list[WriteJob] = field(default_factory=list)
    later_bytes: int | None = None  # of `engine_bytes`, where that is known
    _change: ChangeSet | None = None
    _is_answered: bool = False

    @property
    def change(self) -> ChangeSet:
        """The net change of all attempts, once they are planned."""
        if self._change is None:
            self._change = self.overlay.pending
        return self._change

    @property
    def jobs(self) -> list[WriteJob]:
        """Of all attempts."""
        return [attempt.job for attempt in self.attempts]

    def entries(self, timestamp_ms: int) -> list[LogEntry]:
        """The log entries of those that change something."""
        changes = EntryKind.CHANGES
        return [
            LogEntry(
                0,
                0,
                changes,
                attempt.job.request_id,
                timestamp_ms,
                attempt.payload,
                attempt.job.author,
            )
            for attempt in self.logged
        ]

    def foresee(self, index: int) -> None:
        """Have answers prepared: the entries are on their way to the log, probably right behind index.

        The writer has nothing else to do while the log syncs.
        """
        self._change = self.overlay.pending
        for attempt in self.attempts:
            if attempt.payload:
                index += 1
            if attempt.error is None:
                attempt.foreseen = Confirmation(index, attempt.affected_triples)
                attempt.job.foresee(attempt.foreseen)

    def succeed(self, index: int, *, is_applied: bool = True) -> bool:
        """Answer all that are not answered: their entries stand right behind index, and are applied. Before
        they are, only those are answered whose answers leave at once. Returns whether any was.
        """
        if self._is_answered:
            return False
        answered, self._is_answered = False, True
        for attempt in self.attempts:
            if attempt.payload:
                index += 1
            if not (is_applied or isinstance(attempt.job.answer, ForeseeingOutcome)):
                self._is_answered = False
                continue
            answered = True
            foreseen = attempt.foreseen
            if attempt.error is not None:
                attempt.job.fail(attempt.error)
            elif foreseen is not None and foreseen.snapshot_index == index:
                attempt.job.succeed(foreseen)
            else:
                attempt.job.succeed(Confirmation(index, attempt.affected_triples))
        return answered


def plan_batch(
    batch: Batch,
    jobs: list[WriteJob],
    quads: QuadStore,
    index: int,
    part_bytes: int,
    guard: WriteGuard | None,
) -> None:
    """Plan jobs upon what a batch has, and one upon the other, as far as they can be planned before the first
    of them is applied.

    quads is at this log index. guard may refuse what was planned; with one, a batch is planned at once.
    """
    if guard is not None:
        guard.begin(batch.overlay, index)
    is_plain = guard is None and not quads.is_removing
    for position, job in enumerate(jobs):
        attempt, one = Attempt(job), job.plan
        try:
            if is_plain and isinstance(one, OneTriple) and job.seeing is WholeState:
                _plan_one(attempt, one, batch.overlay)
            else:
                batch.large = _plan(attempt, batch.overlay, part_bytes, guard, quads)
        except BaseNotApplied:
            batch.deferred = jobs[position:]
            break
        except GraphsInRemoval:
            batch.parked.append(job)
            continue
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            attempt.error = error
        if batch.large is not None:
            batch.deferred = jobs[position + 1 :]
            break
        batch.attempts.append(attempt)
        if attempt.payload:
            batch.logged.append(attempt)


def _plan_one(attempt: Attempt, one: OneTriple, overlay: Overlay) -> None:
    """`_plan` for one triple, where nobody looks into what is written."""
    if overlay.contains(one.quad) is one.deletes:
        attempt.payload = encode_line(one.line, removes=one.deletes)
        attempt.affected_triples = 1
        overlay.push_quad(one.quad, removes=one.deletes)


def _change_of_one(one: OneTriple, state: Overlay) -> tuple[ChangeSet]:
    quads = (one.quad,)
    return (change_of(state, quads, ()) if one.deletes else change_of(state, (), quads),)


def _plan(
    attempt: Attempt, overlay: Overlay, part_bytes: int, guard: WriteGuard | None, quads: QuadStore
) -> LargeWrite | None:
    """Plan one request and lay its change over the state, unless it is a large one."""
    plan = attempt.job.plan
    assert not isinstance(plan, EntryPlan), "it has a turn of its own"
    if isinstance(plan, OneTriple):
        plan = partial(_change_of_one, plan)
    planned = attempt.job.seeing(overlay)
    made = plan(planned.state)
    if isinstance(made, LineChange):
        assert guard is None, "whoever looks into a change gets its quads"
        assert planned.state is overlay, "whoever does not see everything gets the quads"
        if made.is_empty:
            return None
        if quads.is_removing:
            raise GraphsInRemoval
        return LargeWrite(attempt, planned, made, part_bytes)
    parts = iter(made)
    first = next(parts, _NO_CHANGE)
    second = next(parts, None)
    if not first:
        return None
    try:
        change = planned.real_change(first)
    except Forbidden:
        parts = iter(())  # what reads from the engine must end here, and not with an error's traceback
        raise
    told = first.affected_triples
    reported = None if change is first else told
    payloads = encode_change_parts(change, part_bytes, reported) if second is None else []
    if len(payloads) > 1 or second is not None:
        if overlay.unapplied:
            raise BaseNotApplied
        if quads.is_removing:
            raise GraphsInRemoval
        if guard is None:
            rest = chain((first,), () if second is None else (second,), parts)
            return LargeWrite(attempt, planned, rest, part_bytes)
        parts = iter(())  # as above
        whole = first if second is None else None
        return _guarded_large(attempt, plan, planned, part_bytes, guard, whole)
    if quads.hides(change):
        raise GraphsInRemoval
    if guard is not None:
        guard.check(planned.state, first)
    # what changes nothing for its writer has no entry; what does has one, even if it really does not
    attempt.payload, attempt.planned, attempt.affected_triples = payloads[0], change, told
    overlay.push(change)
    return None


def _guarded_large(
    attempt: Attempt,
    again: Plan,
    planned: Planned,
    part_bytes: int,
    guard: WriteGuard,
    whole: ChangeSet | None,
) -> LargeWrite:
    """A large change that was planned once already.

    whole is one that came in one piece: that of an update, which may ask the time or draw random numbers. The
    parts of others are the same at each planning.
    """

    def plan() -> Iterator[ChangeSet]:
        made = again(planned.state) if whole is None else (whole,)
        assert not isinstance(made, LineChange), "whoever looks into a change gets its quads"
        return iter(made)

    guard.check_parts(planned.state, plan)
    return LargeWrite(attempt, planned, plan(), part_bytes)
