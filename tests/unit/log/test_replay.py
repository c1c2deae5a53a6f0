"""Replaying entries: which parts a CLOSE closes, where to go on, whose requests they were."""

from collections.abc import Iterable

import pytest
from pyoxigraph import NamedNode, Quad, Store

from graphdb.errors import CorruptionError, StorageFull
from graphdb.log.payloads import encode_changes, encode_close
from graphdb.log.recent_requests import RecentRequests, Remembered
from graphdb.log.replay import Replayer
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.store.quad_store import QuadStore

X, Y = b"x" * 16, b"y" * 16
KINDS = {"c": EntryKind.CHANGES, "p": EntryKind.PART, "n": EntryKind.NOTHING, "m": EntryKind.MEMBERS}
KINDS["s"] = EntryKind.SEARCH


def quad(number: int) -> Quad:
    return Quad(NamedNode(f"urn:{number}"), NamedNode("urn:p"), NamedNode("urn:o"))


def entries(story: str) -> list[LogEntry]:
    """`cx` changes, `px` is a part, each adds the quad of its index; `2x` closes two parts; `nx`, `mx`."""
    made = []
    for index, word in enumerate(story.split(), 1):
        what, who = word[0], word[1]
        if what.isdigit():
            kind, payload = EntryKind.CLOSE, encode_close(int(what))
        else:
            kind, payload = KINDS[what], encode_changes(ChangeSet((), (quad(index),)))
        made.append(LogEntry(index, 0, kind, X if who == "x" else Y, 0, payload))
    return made


@pytest.mark.parametrize(
    ("story", "there", "resume"),
    [
        ("cx px py", {1}, 2),
        ("px px 2x", {1, 2}, 3),
        ("px px", set(), 0),
        ("px nx", set(), 2),
        ("px mx cy", {3}, 3),
        ("px px px 2x", {2, 3}, 4),
        ("px cy px 1x", {2, 3}, 4),
        ("px py 1y px", {2}, 3),
        ("s- px s- px s- s- 2x s-", {2, 4}, 8),
        ("cx s- cx s- s- cy s-", {1, 3, 6}, 7),
        ("cx px s- s-", {1}, 1),
        ("px s- nx s-", set(), 4),
        ("px cy s- px s- 1x", {2, 4}, 6),
    ],
)
def test_stories(story: str, there: set[int], resume: int) -> None:
    for at_once in (1, 100):
        store = QuadStore(Store())
        replayer = Replayer(store.apply_many, 0)
        told = entries(story)
        for start in range(0, len(told), at_once):
            replayer.replay(told[start : start + at_once])
        assert {*store.dataset_quads()} == {quad(number) for number in there}
        assert (replayer.applied_index, replayer.resume_index) == (len(told), resume)
        replayer.close()
        assert replayer.resume_index == resume, "another node may close what this one has read"
        again = Replayer(store.apply_many, resume)
        again.replay(told[resume:])
        assert {*store.dataset_quads()} == {quad(number) for number in there}
        again.close()


def test_a_change_that_is_not_settled_is_to_be_replayed() -> None:
    """Also behind later entries, and once more where another such change follows."""
    unsettled: set[str] = set()
    store = QuadStore(Store())

    def apply(changes: Iterable[ChangeSet]) -> None:
        store.apply_many(changes)
        if not isinstance(changes, tuple):  # a large one
            unsettled.add("something")

    replayer = Replayer(apply, 0, is_settled=lambda: not unsettled)
    told = entries("cx px px 2x cy py py 2y cy")
    replayer.replay(told[:3])
    assert replayer.resume_index == 1
    replayer.replay(told[3:7])
    assert (replayer.applied_index, replayer.resume_index) == (7, 1)
    unsettled.clear()
    assert replayer.resume_index == 5, "parts of the second one are open"
    replayer.replay(told[7:])
    assert (replayer.applied_index, replayer.resume_index) == (9, 5)
    unsettled.clear()
    assert replayer.resume_index == 9


@pytest.mark.parametrize(
    "story", ["1x", "px 2x", "px 1y", "px cy 1x", "px nx 1x", "px mx 1x", "px py px 2x", "px s- nx 1x"]
)
def test_a_close_without_its_parts_is_damage(story: str) -> None:
    replayer = Replayer(QuadStore(Store()).apply_many, 0)
    with pytest.raises(CorruptionError, match="parts that are not there"):
        replayer.replay(entries(story))
    assert replayer.applied_index == len(story.split()) - 1
    replayer.close()


def test_a_close_that_could_not_be_applied_is_fed_again() -> None:
    store, refused = QuadStore(Store()), [True]

    def apply(changes: object) -> None:
        if refused.pop() if refused else False:
            raise StorageFull("full")
        store.apply_many(changes)  # type: ignore[arg-type]

    replayer, told = Replayer(apply, 0), entries("px px 2x cy")
    with pytest.raises(StorageFull):
        replayer.replay(told)
    assert (replayer.applied_index, replayer.requests.through) == (2, 2)
    replayer.replay(told[2:])
    assert {*store.dataset_quads()} == {quad(1), quad(2), quad(4)}
    assert replayer.requests.find(X) == Remembered(X, 3, 2)


def test_requests_count_once() -> None:
    store, told = QuadStore(Store()), entries("cx py py 2y nx cy")
    first = Replayer(store.apply_many, 0)
    first.replay(told[:5])
    kept = RecentRequests.from_bytes(first.requests.to_bytes(), kept=1)
    for entry in told[5:]:
        first.replay([entry])
    second = Replayer(store.apply_many, 1, requests=kept)
    second.replay(told[1:])
    for replayer in (first, second):
        assert replayer.requests.through == 6
        assert replayer.requests.find(X) == (Remembered(X, 1, 1) if replayer is first else None)
        assert replayer.requests.find(Y) == Remembered(Y, 6, 1)
    assert second.requests.complete_since(X) == 5
