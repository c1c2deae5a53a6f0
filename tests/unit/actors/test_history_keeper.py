"""A node keeps its past: over compaction, compression, backup and restore."""

from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from actors.history.history_keeper import HistoryKeeper
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.offline import back_up_offline, restore
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.config.service import History
from graphdb.history.past_log import PastLog
from graphdb.history.places import HISTORY, LOG
from graphdb.log.file_log import FileLogConfig
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.readers import answering
from tests.support.shards import Shard, no_readers

pytestmark = pytest.mark.anyio
TEXT = "x" * 3_000


async def write(data_dir: Path, first: int, count: int, backup: Path | None = None) -> int:
    """Write so many entries in a life of a node, each replacing one quad; the last index."""
    config = FileLogConfig(16_384, 16_384, str(data_dir / HISTORY))
    log = UpdateLog(str(data_dir / LOG), config)
    shard = Shard.standalone(
        Settings(server={"data_dir": data_dir}), LogClient(answering(log.endpoint())), no_readers()
    )
    try:
        await shard.start()
        for number in range(first, first + count):
            text = f"DELETE DATA {{ <urn:s> <urn:p> '{TEXT}{number - 1}' }} ;"
            text += f"INSERT DATA {{ <urn:s> <urn:p> '{TEXT}{number}' }}"
            await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())
            if number % 10 == 0:
                await shard.opened().checkpointer.checkpoint()
        index = shard.snapshot_index()
        if backup is not None:
            await shard.node.admin.backup(backup)
    finally:
        await shard.close()
        log.close()
    return index


def told(data_dir: Path, last_index: int) -> list[ChangeSet]:
    with closing(PastLog(data_dir)) as past:
        assert past.first_index(last_index) == 1
        found = [change.change for change in past.changes_between(1, last_index)]
    assert all(one.added == other.removed for one, other in pairwise(found))
    return found


def keeper(
    data_dir: Path, last_index: int, keep: str = "forever", has_room: Callable[[], bool] = lambda: True
) -> HistoryKeeper:
    return HistoryKeeper(data_dir, History(keep=keep), lambda: last_index, lambda: None, has_room)


async def test_nothing_is_lost_by_compaction_and_little_room_is_taken(tmp_path: Path) -> None:
    data_dir, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    index = await write(data_dir, 1, 40, backup)
    found = told(data_dir, index)
    assert len(found) == 40
    size = sum(path.stat().st_size for path in (data_dir / HISTORY).iterdir())
    for _ in range(2):
        keeper(data_dir, index).tend()
        assert told(data_dir, index) == found
    assert sum(path.stat().st_size for path in (data_dir / HISTORY).iterdir()) < size / 10
    assert {path.suffix for path in (data_dir / HISTORY).iterdir()} == {".history"}
    # a backup goes on from where it was made, with its own future
    assert told(backup, index) == found
    await write(data_dir, 41, 3)
    restore(backup, restored, replace=False)
    restore(backup, data_dir, replace=True)
    for place in (restored, data_dir):
        last = await write(place, 41, 15)
        assert told(place, last)[:40] == found
        assert len(told(place, last)) == 55
    offline = tmp_path / "offline"
    assert back_up_offline(restored, offline) >= index
    assert len(told(offline, last)) == 55


async def test_what_is_kept_no_longer_goes_the_oldest_first(tmp_path: Path) -> None:
    index = await write(tmp_path, 1, 40)
    keeper(tmp_path, index, "20").tend()
    with closing(PastLog(tmp_path)) as past:
        first_index = past.first_index(index)
        assert index - 35 < first_index <= index - 19
        assert len([*past.changes_between(first_index, index)]) == index + 1 - first_index
    keeper(tmp_path, index, "off").tend()
    assert not [*(tmp_path / HISTORY).iterdir()]
    with closing(PastLog(tmp_path)) as past:
        assert past.first_index(index) > first_index


async def test_on_a_full_disk_the_oldest_goes_until_there_is_room(tmp_path: Path) -> None:
    index = await write(tmp_path, 1, 40)
    names = sorted(path.stem for path in (tmp_path / HISTORY).iterdir())
    keeper(tmp_path, index, "forever", lambda: False).tend()
    assert sorted(path.stem for path in (tmp_path / HISTORY).iterdir()) == names
    looks = iter([False, False, True])
    keeper(tmp_path, index, "90d", lambda: next(looks)).tend()
    assert sorted(path.stem for path in (tmp_path / HISTORY).iterdir()) == names[2:]
    with closing(PastLog(tmp_path)) as past:
        first_index = past.first_index(index)
        assert first_index > 1
        assert len([*past.changes_between(first_index, index)]) == index + 1 - first_index


async def test_a_crash_while_it_compresses_leaves_nothing_behind(tmp_path: Path) -> None:
    index = await write(tmp_path, 1, 40)
    found = told(tmp_path, index)
    raw = sorted((tmp_path / HISTORY).iterdir())
    copy = raw[0].read_bytes()
    keeper(tmp_path, index).tend()
    raw[0].write_bytes(copy)  # was not removed yet
    raw[1].with_suffix(".tmp").write_bytes(b"half")
    assert told(tmp_path, index) == found
    keeper(tmp_path, index).tend()
    assert told(tmp_path, index) == found
    assert {path.suffix for path in (tmp_path / HISTORY).iterdir()} == {".history"}
