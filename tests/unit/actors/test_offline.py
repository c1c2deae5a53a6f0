"""A node that stood alone enters a cluster; its directory is then no longer changed from outside."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad

from actors import offline
from actors.offline import back_up_offline, enter_cluster, load_in_bulk, refuse_member, restore
from actors.raft.raft_directory import raft_directory
from actors.shard.store_directory import StoreDirectory
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import LogUnavailable, StorageFull, UnavailableError
from graphdb.log import request_ids
from graphdb.log.file_log import FileLog
from graphdb.log.file_system import RealFileSystem
from graphdb.model import Confirmation
from graphdb.raft.journal import Journal
from graphdb.raft.state_file import STATE_FILE
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard, stand_alone

pytestmark = pytest.mark.anyio

KEY = request_ids.keyed("key", "POST", b"/sparql", [b"2"])


def insertion(value: int) -> str:
    return f"INSERT DATA {{ <urn:s> <urn:p> {value} }}"


async def write_alone(data_dir: Path) -> None:
    """Two entries."""
    async with stand_alone(data_dir) as node:
        await node.writes(FULL_VISIBILITY).update(parse_update(insertion(1)), Dataset())
        await node.writes(FULL_VISIBILITY).update(parse_update(insertion(2)), Dataset(), KEY)


@pytest.fixture
async def data_dir(tmp_path: Path) -> Path:
    """Of node 1 of a cluster of one, which has stood alone."""
    path = tmp_path / "1"
    await write_alone(path)
    return path


async def in_cluster(data_dir: Path) -> list[str]:
    """What the node of this directory has when it has become a cluster of one."""
    async with nodes(data_dir.parent, 1) as cluster:
        await cluster.start(1)
        shard = cluster.shards[1]
        await check_key(shard)
        return sorted(quad.object.value for quad in shard.graph_quads(None))


async def check_key(shard: Shard) -> None:
    """A request that was sent when the node stood alone is known."""
    known = await shard.writes(FULL_VISIBILITY).update(parse_update(insertion(2)), Dataset(), KEY)
    assert known == Confirmation(2, 1, "applied before")


def base_of(data_dir: Path) -> tuple[int, int]:
    """The journal's: index and term, after which nothing has come yet."""
    place = raft_directory(data_dir)
    journal = Journal(RealFileSystem(), str(place), str(data_dir / "log"), 1, lambda: 99)
    try:
        assert journal.last_index == journal.base.log_index
        assert (journal.peer.node_id, journal.peer.incarnation != 99) == (1, True)
        return journal.base.log_index, journal.base.raft_term
    finally:
        journal.close()


async def test_the_journal_begins_behind_what_there_is(data_dir: Path) -> None:
    enter_cluster(data_dir, 1)
    assert base_of(data_dir) == (2, 0)
    assert (data_dir / "applied").read_text() == "2\n"
    assert await in_cluster(data_dir) == ["1", "2"]


async def test_entries_that_the_store_has_not_seen_are_taken_along(tmp_path: Path, data_dir: Path) -> None:
    """After a crash the store is behind the log."""
    (data_dir / "applied").write_text("0\n")
    shutil.rmtree(data_dir / "store")
    (data_dir / "requests").unlink()
    enter_cluster(data_dir, 1)
    assert base_of(data_dir) == (2, 0)
    assert await in_cluster(data_dir) == ["1", "2"]


async def test_once_it_has_entered_nothing_is_done_again(data_dir: Path) -> None:
    enter_cluster(data_dir, 1)
    state = (raft_directory(data_dir) / STATE_FILE).read_bytes()
    enter_cluster(data_dir, 1)
    assert (raft_directory(data_dir) / STATE_FILE).read_bytes() == state
    assert await in_cluster(data_dir) == ["1", "2"]
    enter_cluster(data_dir, 1)  # a member at work neither
    assert await in_cluster(data_dir) == ["1", "2"]


def test_a_new_directory_enters_by_itself(tmp_path: Path) -> None:
    enter_cluster(tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


def fail_with(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    return fail


@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (StoreDirectory, "write_beside"),
        (StoreDirectory, "write_applied"),
        (FileLog, "restart_at"),
        (offline, "write_state"),
    ],
    ids=["beside", "applied", "log", "state"],
)
@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, StorageFull), (errno.EIO, LogUnavailable)])
async def test_it_goes_on_where_it_was_interrupted(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, owner: object, step: str, number: int, error: type
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fail_with(number))
        with pytest.raises(error):
            enter_cluster(data_dir, 1)
    refuse_member(data_dir)  # it is none yet
    enter_cluster(data_dir, 1)
    assert base_of(data_dir) == (2, 0)
    assert await in_cluster(data_dir) == ["1", "2"]


async def test_interrupted_it_can_still_stand_alone(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(offline, "write_state", fail_with(errno.EIO))
        with pytest.raises(LogUnavailable):
            enter_cluster(data_dir, 1)
    async with stand_alone(data_dir) as node:
        known = await node.writes(FULL_VISIBILITY).update(parse_update(insertion(2)), Dataset(), KEY)
        assert known == Confirmation(2, 1, "applied before")
        assert await node.writes(FULL_VISIBILITY).update(
            parse_update(insertion(3)), Dataset()
        ) == Confirmation(3, 1)


async def test_a_members_directory_is_read_and_not_changed(tmp_path: Path, data_dir: Path) -> None:
    backup, quad = tmp_path / "backup", Quad(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    refuse_member(data_dir)
    enter_cluster(data_dir, 1)
    with pytest.raises(UnavailableError, match="belongs to a node of a cluster"):
        refuse_member(data_dir)
    with pytest.raises(UnavailableError, match="belongs to a node of a cluster"):
        load_in_bulk(data_dir, [quad])
    assert back_up_offline(data_dir, backup) == 2
    with pytest.raises(UnavailableError, match="belongs to a node of a cluster"):
        restore(backup, data_dir, replace=True)
    refuse_member(backup)  # it stands for itself
    assert load_in_bulk(backup, [quad]) == 1
    assert await in_cluster(data_dir) == ["1", "2"]


async def test_a_backup_of_a_member_at_work_has_what_it_had(tmp_path: Path, data_dir: Path) -> None:
    enter_cluster(data_dir, 1)
    async with nodes(tmp_path, 1) as cluster:
        await cluster.start(1)
        written = (
            await cluster.shards[1].writes(FULL_VISIBILITY).update(parse_update(insertion(3)), Dataset())
        )
    index = back_up_offline(data_dir, tmp_path / "backup")
    assert index >= written.snapshot_index
    async with stand_alone(tmp_path / "backup") as node:
        assert len([*node.graph_quads(None)]) == 3
        assert node.snapshot_index() == index
