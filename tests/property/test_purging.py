"""What was purged is in no state of the past, and nothing else is missing: against a naive twin."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, Triple

from graphdb.history.archive import RAW, RawFile, compress
from graphdb.history.past_log import PastLog, archived_names
from graphdb.history.places import HISTORY, LOG
from graphdb.history.purging import PurgedUpTo, PurgeScope, deletion, purge_file
from graphdb.log.file_log import FileLog, FileLogConfig
from graphdb.log.file_system import RealFileSystem
from graphdb.log.payloads import encode_change_parts, encode_changes, encode_close
from graphdb.model import Author, ChangeSet, EntryKind, Interface, LogEntry
from tests.property.strategies import GRAPHS, PREDICATES, RESOURCES
from tests.property.twin import Twin, changes, store_of, twin

NAMES = [*GRAPHS, *PREDICATES, *RESOURCES]
scopes = st.builds(
    PurgeScope, st.sampled_from(("resource", "graph")), st.sampled_from(NAMES).map(lambda name: name.value)
)


def mentions(term: object, name: NamedNode) -> bool:
    if isinstance(term, Triple):
        return any(mentions(part, name) for part in (term.subject, term.predicate, term.object))
    return term == name


def takes(scope: PurgeScope, quad: Quad) -> bool:
    name = NamedNode(scope.iri)
    if scope.kind == "graph":
        return quad.graph_name == name
    return quad.graph_name == name or mentions(quad.triple, name)


def without(state: Twin, scope: PurgeScope) -> Twin:
    quads = (quad for quad in state.quads if not takes(scope, quad))
    return Twin(frozenset(quads), state.graphs - {NamedNode(scope.iri)})


def entries(number: int, first_index: int, change: ChangeSet, *, large: bool) -> list[LogEntry]:
    request_id, author = b"%16d" % number, Author("basic:ann", Interface.GRAPHQL)
    if not large:
        payloads = [(EntryKind.CHANGES, encode_changes(change))]
    else:
        parts = encode_change_parts(change, 200)
        payloads = [(EntryKind.PART, part) for part in parts]
        payloads.append((EntryKind.CLOSE, encode_close(len(parts))))
    return [
        LogEntry(index, 0, kind, request_id, 1_000 * index, payload, author)
        for index, (kind, payload) in enumerate(payloads, first_index)
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[ChangeSet, bool]]:
    """Changes, each upon the state behind the one before, and whether it is logged in parts."""
    state, found = twin(()), []
    for _ in range(draw(st.integers(1, 12))):
        change = draw(changes(state))
        state = state.after(change)
        found.append((change, draw(st.booleans())))
    return found


def put_into_history(data_dir: Path, logged: list[LogEntry]) -> None:
    """In segments of a few entries, some of them compressed."""
    config = FileLogConfig(600, 600, str(data_dir / HISTORY))
    with closing(FileLog(RealFileSystem(), str(data_dir / LOG), config)) as log:
        for entry in logged:
            log.append([entry])
        log.end_segment(log.last_index + 1)
        log.truncate_before(log.last_index + 1)
    for number, name in enumerate(archived_names(data_dir / HISTORY)):
        path = data_dir / HISTORY / str(name)
        if number % 2 and name.suffix == RAW:
            with closing(RawFile(path)) as raw:
                compress(raw, name.last_index, path.with_suffix(".history"), lambda: None)
            path.unlink()


def states(past: PastLog, last_index: int) -> Iterator[tuple[int, Twin]]:
    """After each entry. Each change has to be exact."""
    state, index = twin(()), 0
    for change in past.changes_between(1, last_index):
        if change.log_index > index:
            yield index, state
            index = change.log_index
        part = change.change
        assert set(part.removed) <= state.quads
        assert not set(part.added) & state.quads
        assert set(part.dropped_graphs) <= state.graphs
        assert not set(part.created_graphs) & state.graphs
        state = state.after(part)
    yield index, state


@given(histories(), scopes, st.data())
@settings(deadline=None, max_examples=20)  # it waits for the disk
def test_every_past_state_is_as_if_the_purged_had_never_been(
    logged: list[tuple[ChangeSet, bool]], scope: PurgeScope, data: st.DataObject
) -> None:
    expected, written, state = {0: twin(())}, list[LogEntry](), twin(())
    for number, (change, large) in enumerate(logged):
        written += entries(number, len(written) + 1, change, large=large)
        state = state.after(change)
        expected[len(written)] = state
    # behind it the purged may be there again: that is another matter
    through = data.draw(st.sampled_from(sorted(expected)))
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory)
        put_into_history(data_dir, written)
        history = data_dir / HISTORY
        for _ in range(2):  # a second time it has no effect
            for name in archived_names(history):
                purge_file(history, name, [PurgedUpTo(scope, through)], lambda: None)
        assert not list(history.glob(f"*{RAW}"))
        with closing(PastLog(data_dir)) as past:
            for index, found in states(past, through):
                assert found == without(expected[index], scope), index


@given(st.data(), scopes)
def test_what_is_deleted_is_what_the_twin_loses(data: st.DataObject, scope: PurgeScope) -> None:
    state = data.draw(st.builds(lambda change: twin(()).after(change), changes(twin(()))))
    store, left = store_of(state), state
    for part in deletion(store, scope):
        assert set(part.removed) <= left.quads
        left = left.after(part)
    assert left == without(state, scope)
