"""Entries of another writer anywhere between those of quads change nothing of what these do."""

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, Store

from graphdb.log.payloads import encode_changes, encode_close
from graphdb.log.recent_requests import RecentRequests, Remembered
from graphdb.log.replay import Replayer
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.store.quad_store import QuadStore

NAMES = st.sampled_from("xy")
SCRIPTS = st.lists(st.tuples(st.sampled_from(["changes", "part", "close", "nothing"]), NAMES), max_size=14)


def quad(number: int) -> Quad:
    return Quad(NamedNode(f"urn:{number}"), NamedNode("urn:p"), NamedNode("urn:o"))


def written(script: list[tuple[str, str]]) -> list[LogEntry]:
    """By writers of quads; each adds a quad and removes one before it. Nobody closes what is not open."""
    entries: list[LogEntry] = []
    opened: tuple[str, int] = ("", 0)
    for number, (what, name) in enumerate(script):
        request_id = (name * 15 + str(number % 7)).encode() if what == "changes" else name.encode() * 16
        change = encode_changes(ChangeSet((quad(number // 2),), (quad(number),)))
        if what == "close" and opened[0] == name:
            kind, payload = EntryKind.CLOSE, encode_close(opened[1])
        elif what == "part":
            kind, payload = EntryKind.PART, change
        else:
            kind, payload = (EntryKind.CHANGES, change) if what == "changes" else (EntryKind.NOTHING, b"")
        count = opened[1] + 1 if opened[0] == name else 1
        opened = (name, count) if kind is EntryKind.PART else ("", 0)
        entries.append(LogEntry(0, 0, kind, request_id, 0, payload))
    return entries


def placed(entries: list[LogEntry]) -> list[LogEntry]:
    return [
        LogEntry(index, 0, entry.kind, entry.request_id, 0, entry.payload)
        for index, entry in enumerate(entries, 1)
    ]


def mixed(entries: list[LogEntry], documents: list[int]) -> tuple[list[LogEntry], dict[int, int]]:
    """With so many documents in front of each; where each of the former stands now, by where it stood."""
    document = LogEntry(0, 0, EntryKind.SEARCH, b"s" * 16, 0, b"any")
    all_entries: list[LogEntry] = []
    places: dict[int, int] = {}
    for number, entry in enumerate(entries):
        all_entries += [document] * documents[number % len(documents)]
        all_entries.append(entry)
        places[number + 1] = len(all_entries)
    return placed(all_entries), places


def replayed(entries: list[LogEntry], stops: list[int], kept: RecentRequests) -> tuple[set[Quad], Replayer]:
    """Fed in pieces; after each the process is started anew, with the store as it is."""
    store = QuadStore(Store())
    replayer = Replayer(store.apply_many, 0, requests=kept)
    for stop in sorted(stop % (len(entries) + 1) for stop in stops):
        replayer.replay(entries[replayer.applied_index : stop])
        replayer.close()
        replayer = Replayer(store.apply_many, replayer.resume_index, requests=replayer.requests)
    replayer.replay(entries[replayer.applied_index :])
    return set(store.dataset_quads()), replayer


@given(SCRIPTS, st.lists(st.integers(0, 3), min_size=1), st.lists(st.integers(0, 60), max_size=4))
def test_quads_and_requests_are_what_they_are_without(
    script: list[tuple[str, str]], documents: list[int], stops: list[int]
) -> None:
    alone = placed(written(script))
    both, places = mixed(alone, documents)
    quads, plain = replayed(alone, [], RecentRequests())
    found, replayer = replayed(both, stops, RecentRequests())
    assert found == quads
    assert (replayer.applied_index, replayer.requests.through) == (len(both), len(both))
    assert replayer.resume_index >= (places[plain.resume_index] if plain.resume_index else 0)
    assert replayer.has_open_parts == plain.has_open_parts
    for entry in alone:
        known = plain.requests.find(entry.request_id)
        expected = known and Remembered(known.request_id, places[known.log_index], known.affected_triples)
        assert replayer.requests.find(entry.request_id) == expected
    for each in (plain, replayer):
        each.close()
