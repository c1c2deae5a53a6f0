"""The list of recent requests on disk, and the swap by which a received snapshot becomes the store."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

from actors.shard.store_directory import KeptBeside, StoreDirectory
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Create, encode_command
from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.history.named_states import (
    NamedState,
    NamedStateBook,
    NameState,
    encode_named_state_command,
)
from graphdb.history.purges import Purge, PurgeBook, encode_purge_command
from graphdb.log.recent_requests import RecentRequests, Remembered
from graphdb.model import ChangeSet
from graphdb.namespaces import NamespaceBook, SetNamespace, encode_namespace_command
from graphdb.saved_queries import (
    CreateQuery,
    QueryDraft,
    QueryWriter,
    SavedQueryBook,
    encode_query_command,
)
from tests.support.alerts import NOON_MS, definition

ID = bytes(range(16))
ADA = QueryWriter("ada", "basic", False)


def quad(number: int) -> Quad:
    return Quad(NamedNode(f"urn:{number}"), NamedNode("urn:p"), NamedNode("urn:o"))


def requests_up_to(index: int) -> bytes:
    return kept_at(index).requests.to_bytes()


def kept_at(index: int) -> KeptBeside:
    """A request; an alert whose entry is the one before, a saved query whose is the one before that, and a
    namespace whose is the one before that; a named state of the state before it; a purge.
    """
    kept = KeptBeside(
        RecentRequests(), AlertBook(), SavedQueryBook(), NamespaceBook(), NamedStateBook(), PurgeBook()
    )
    kept.requests.remember(ID, index, 3)
    created = Create("a", definition(f"made before {index}"), NOON_MS)
    kept.alerts.apply(index - 1, encode_command(created))
    draft = QueryDraft(f"made before {index}", "", "ASK {}", None, False)
    kept.saved_queries.apply(index - 2, encode_query_command(CreateQuery("q", draft, ADA, NOON_MS)))
    namespace = SetNamespace("p", f"urn:made-before-{index}:")
    kept.namespaces.apply(index - 3, encode_namespace_command(namespace))
    named = NamedState("n", index - 4, index - 3, "", NOON_MS)
    kept.named_states.apply(index - 3, encode_named_state_command(NameState(named)))
    purge = Purge("graph", "urn:g", "salt", "", NOON_MS, (1,))
    kept.purges.apply(index - 2, encode_purge_command(purge))
    return kept


def fill(path: Path, number: int, index: int) -> StoreDirectory:
    """A data directory whose store holds one quad."""
    directory = StoreDirectory(path)
    store = directory.open_store(0, union_default_graph=False)
    store.apply(ChangeSet((), (quad(number),)))
    store.flush()
    directory.write_beside(kept_at(index))
    directory.write_applied(index)
    return directory


def holds(path: Path) -> tuple[set[Quad], int, int]:
    """The store's quads, where replay begins, and how far the requests go; the alerts fit to these."""
    directory = StoreDirectory(path)
    applied = directory.read_applied()
    store = directory.open_store(applied, union_default_graph=False)
    kept = directory.read_beside(applied)
    assert kept.alerts.find("a").definition.name == f"made before {kept.requests.through}"
    assert kept.saved_queries.find("q", ADA).name == f"made before {kept.requests.through}"
    assert kept.namespaces.namespaces == {"p": f"urn:made-before-{kept.requests.through}:"}
    assert kept.named_states.index_of("n") == kept.requests.through - 4
    assert kept.purges.last_index == kept.requests.through - 2
    return {*store.dataset_quads()}, applied, kept.requests.through


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A snapshot of another node: quad 2, at index 9."""
    other, tree = fill(tmp_path / "other", 2, 9), tmp_path / "tree"
    store = other.open_store(9, union_default_graph=False)
    other.make_snapshot(store, kept_at(9), tree)
    assert {path.name for path in tree.iterdir()} == {
        *("store", "requests", "alerts", "saved-queries", "namespaces", "named-states"),
        *("purges", "store-purged"),
    }
    return tree


def test_requests_are_kept(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    assert directory.read_requests(7).complete_since(ID) == 8
    directory.write_beside(kept_at(9))
    for applied in (7, 9):
        assert directory.read_requests(applied).find(ID) == Remembered(ID, 9, 3)


@pytest.mark.parametrize("content", [b"", b"nonsense" * 20, requests_up_to(9)[:-1], requests_up_to(6)])
def test_a_list_that_cannot_be_relied_on_begins_anew(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    directory = StoreDirectory(tmp_path)
    (tmp_path / "requests").write_bytes(content)
    found = directory.read_requests(7)
    assert (found.find(ID), found.through, found.complete_since(ID)) == (None, 7, 8)
    assert "list of recent requests" in caplog.text


@pytest.mark.parametrize("name", ["alerts", "saved-queries", "namespaces", "named-states", "purges"])
def test_books_are_kept_and_not_guessed(tmp_path: Path, name: str) -> None:
    directory = StoreDirectory(tmp_path)
    empty = directory.read_beside(0)
    assert not empty.alerts.alerts
    assert not empty.saved_queries.visible(ADA)
    assert not empty.namespaces.namespaces
    assert not empty.named_states.states
    assert not empty.purges.purges
    directory.write_beside(kept_at(9))
    found = directory.read_beside(0)
    assert [*found.alerts.alerts] == ["a"]
    assert [one.id for one in found.saved_queries.visible(ADA)] == ["q"]
    assert [*found.namespaces.namespaces] == ["p"]
    assert [*found.named_states.states] == ["n"]
    assert found.purges.last_index == 7
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(CorruptionError, match=name):
        directory.read_beside(0)


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe", b"12x", "\u0663".encode()], ids=["empty", "bytes", "text", "digit"]
)
def test_an_index_that_is_damaged_is_named(tmp_path: Path, text: bytes) -> None:
    directory = StoreDirectory(tmp_path)
    directory.write_applied(7)
    assert directory.read_applied() == 7
    (tmp_path / "applied").write_bytes(text)
    with pytest.raises(CorruptionError, match="applied: not a log index"):
        directory.read_applied()


def test_a_snapshot_becomes_the_store(tmp_path: Path, tree: Path) -> None:
    mine = fill(tmp_path / "mine", 1, 4)
    (mine.log / "kept").parent.mkdir()
    (mine.log / "kept").touch()
    mine.adopt_snapshot(tree, 9)
    assert holds(mine.path) == ({quad(2)}, 9, 9)
    assert (mine.log / "kept").exists()
    mine.adopt_snapshot(tree, 9)
    assert holds(mine.path) == ({quad(2)}, 9, 9), "the source stays as it was while the store is used"


def test_nothing_takes_the_place_of_a_store_that_somebody_reads(tmp_path: Path, tree: Path) -> None:
    """The engine tidies up its directory when the last reader lets go, whatever lies there by then."""
    mine = fill(tmp_path / "mine", 1, 4)
    quads = mine.open_store(4, union_default_graph=False)
    reading = quads.dataset_quads()
    del quads
    with pytest.raises(LogUnavailable, match="in use"):
        mine.adopt_snapshot(tree, 9)
    assert list(reading) == [quad(1)]
    del reading
    mine.adopt_snapshot(tree, 9)
    assert holds(mine.path) == ({quad(2)}, 9, 9)


def test_a_store_that_is_being_let_go_is_waited_for(tmp_path: Path) -> None:
    directory = fill(tmp_path, 1, 4)
    held = [directory.open_store(4, union_default_graph=False)]
    timer = threading.Timer(0.3, held.clear)
    timer.start()
    assert holds(tmp_path) == ({quad(1)}, 4, 4)
    timer.join()


def test_a_crash_at_any_step_leaves_the_old_state_or_the_new(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, trial = fill(tmp_path / "mine", 1, 4).path, tmp_path / "trial"
    old, new, seen = ({quad(1)}, 4, 4), ({quad(2)}, 9, 9), set[str]()
    for step in range(500):
        shutil.rmtree(trial, ignore_errors=True)
        shutil.copytree(mine, trial)
        left = [step]
        with monkeypatch.context() as patch:
            for name in ("rename", "link", "rmdir", "replace", "mkdir"):
                patch.setattr(os, name, failing(getattr(os, name), left))
            try:
                StoreDirectory(trial).adopt_snapshot(tree, 9)
            except LogUnavailable:
                pass
            else:
                seen.add("done")
        found = holds(trial)
        assert found in (old, new)
        seen.add("new" if found == new else "old")
        if "done" in seen:
            break
        StoreDirectory(trial).adopt_snapshot(tree, 9)
        assert holds(trial) == new
    assert seen == {"old", "new", "done"}


def failing(operation: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """The operation; when none is left, nothing works any more."""

    def perform(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(5, "no")
        return operation(*arguments, **options)

    return perform
