"""Named states of real nodes: they are kept, whatever becomes of the node, and every node has the same."""

import asyncio
from contextlib import closing, suppress
from pathlib import Path

import pytest

from actors.history.history_keeper import HistoryKeeper
from actors.worker_thread import on_thread
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config.service import History
from graphdb.errors import AlreadyExists, HistoryForgotten, InvalidParameter, LimitExceeded, NotFound
from graphdb.history.asked import EVERYTHING
from graphdb.history.moments import read_moment
from graphdb.history.named_states import (
    STATES_MAX,
    ForgetState,
    NamedState,
    NamedStateBook,
    NameState,
    encode_named_state_command,
)
from graphdb.history.pages import PageRequest
from graphdb.history.past_log import PastLog
from graphdb.history.places import HISTORY
from graphdb.model import Confirmation
from tests.property.twin import Twin, twin_of
from tests.support.clustered_shards import nodes
from tests.support.shards import stand_alone
from tests.support.timing import HANG_S
from tests.unit.actors.history.test_past_states import count, insert, node, until_log_begins_after

pytestmark = pytest.mark.anyio


def tend(data_dir: Path, last_index: int, keep: str, kept_from: int | None, *, has_room: bool = True) -> None:
    HistoryKeeper(
        data_dir, History(keep=keep), lambda: last_index, lambda: kept_from, lambda: has_room
    ).tend()


def size_of(history: Path) -> int:
    size = 0
    for path in history.iterdir():
        with suppress(FileNotFoundError):  # compressed meanwhile
            size += path.stat().st_size
    return size


async def test_what_leads_to_a_named_state_is_kept_until_it_is_forgotten(tmp_path: Path) -> None:
    async with node(tmp_path, keep_bytes=0, has_history=True) as shard:
        named = shard.node.named_states
        for number in range(12):
            last = await insert(shard, number, "x" * 40_000)
            if number == 5:
                index = (await named.create("five", None, "basic:ann", None)).state.log_index
        await until_log_begins_after(shard, index + 3)
        kept_from = shard.opened().kept.named_states.needed_from
        assert kept_from == index + 1
        for _ in range(2):  # compress, then expire; each time the disk is full
            tend(tmp_path, last, "1", kept_from, has_room=False)
        with closing(PastLog(tmp_path)) as past:
            assert 1 < past.first_index(last) <= index + 1
        assert await count(shard, read_moment("five")) == 6
        async with asyncio.timeout(HANG_S):  # the log may be giving the history more meanwhile
            while (  # noqa: ASYNC110 files have no event
                five := await named.show("five")
            ).history_bytes != size_of(tmp_path / HISTORY):
                await asyncio.sleep(0.05)
        assert five.is_kept
        with pytest.raises(HistoryForgotten):
            await named.create("lost", read_moment("1"), "", None)
        with pytest.raises(AlreadyExists):
            await named.create("five", None, "", None)
        await named.delete("five", None)
        tend(tmp_path, last, "1", shard.opened().kept.named_states.needed_from)
        with pytest.raises(InvalidParameter, match="no state has the name"):
            await count(shard, read_moment("five"))
        assert (
            await shard.node.history.page(PageRequest(EVERYTHING, 1), FULL_VISIBILITY)
        ).oldest_index > index


async def test_what_leads_to_it_does_not_go_while_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node(tmp_path, keep_bytes=0, has_history=True, keep="1") as shard:
        indexes = [await insert(shard, number, "x" * 40_000) for number in range(12)]
        await until_log_begins_after(shard, indexes[6])
        keeper, book = shard.node.parts.history_keeper, shard.node.parts.own_named_states
        change = book.change

        async def tended(command: NameState, request_id: bytes | None) -> Confirmation:
            await on_thread(keeper.tend)
            return await change(command, request_id)

        monkeypatch.setattr(book, "change", tended)
        made = await shard.node.named_states.create("five", read_moment(str(indexes[4])), "basic:ann", None)
        assert made.is_kept
        assert await count(shard, read_moment("five")) == 5
        with pytest.raises(HistoryForgotten):  # nothing is held any more
            await count(shard, read_moment(str(indexes[0])))


async def test_names_survive_with_and_without_a_checkpoint(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, 1)
        made = await shard.node.named_states.create("a", None, "basic:ann", None)
        await shard.node.named_states.create("gone", read_moment("0"), "", None)
        await shard.node.named_states.delete("gone", None)
        backup = tmp_path / "backup"
        await shard.node.admin.backup(backup)
    (tmp_path / "applied").unlink()
    (tmp_path / "named-states").unlink()
    for directory in (tmp_path, tmp_path, backup):
        async with stand_alone(directory) as shard:
            assert [one.state for one in await shard.node.named_states.list()] == [made.state]
            await insert(shard, 2)
            assert await count(shard, read_moment("a")) == 1


async def test_without_a_history_nothing_is_named(tmp_path: Path) -> None:
    async with stand_alone(tmp_path, history={"keep": "off"}) as shard:
        await insert(shard, 1)
        with pytest.raises(InvalidParameter, match=r"history\.keep"):
            await shard.node.named_states.create("a", None, "", None)


async def test_three_nodes_agree_about_the_past(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        shards = list(cluster.shards.values())
        states: dict[int, Twin] = {}
        for number in range(9):
            index = await insert(shards[number % 3], number)
            await shards[0].node.progress.wait_for_index(index, HANG_S)
            states[index] = twin_of(shards[0].opened().quads)
            if number in (3, 6):
                name, other = f"at-{number}", shards[number % 2 + 1]
                await other.node.progress.wait_for_index(index, HANG_S)
                made = await other.node.named_states.create(name, None, "", None)
                assert made.state.log_index == index
        last = await shards[2].node.named_states.create("last", read_moment(str(index)), "", None)
        for shard in shards:
            await shard.node.progress.wait_for_index(index + 1, HANG_S)
            listed = await shard.node.named_states.list()
            assert [one.state.name for one in listed] == ["at-3", "at-6", "last"]
            for at, expected in states.items():
                past = await shard.opened().past.visible_store(read_moment(str(at)), FULL_VISIBILITY, HANG_S)
                assert twin_of(past.quads) == expected, at
            assert await count(shard, read_moment("at-3")) == 4
            difference = await shard.node.history.difference(
                EVERYTHING, read_moment("at-6"), read_moment("last"), FULL_VISIBILITY
            )
            assert (difference.to_index, len(difference.change.added)) == (last.state.log_index, 4)


def test_the_number_of_names_is_bounded() -> None:
    book = NamedStateBook()
    for number in range(STATES_MAX):
        book.apply(number + 1, book.plan(NameState(NamedState(f"n{number}", 1, 2, "", 0))))
    with pytest.raises(LimitExceeded):
        book.plan(NameState(NamedState("more", 1, 2, "", 0)))
    book.plan(NameState(NamedState("n0", 1, 2, "ann", 5)))
    book.apply(STATES_MAX + 1, book.plan(ForgetState("n0")))
    assert NamedStateBook.from_bytes(book.to_bytes()).states == book.states
    # an entry that does not fit, as two may be on their way at once, has no effect
    for command in (ForgetState("n0"), NameState(NamedState("n1", 7, 8, "", 0))):
        before = dict(book.states)
        book.apply(2 * STATES_MAX, encode_named_state_command(command))
        assert book.states == before
    with pytest.raises(NotFound):
        book.plan(ForgetState("n0"))
