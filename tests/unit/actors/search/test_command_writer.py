"""Many callers, one log: how commands share entries and appends, and what becomes of them when it fails."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from actors.search.command_writer import CommitConfig
from actors.search.open_search import SearchConfig
from graphdb.errors import LogUnavailable, OutcomeUnknown, StorageFull
from graphdb.model import LogEntry
from graphdb.search.catalog.catalog_commands import CreateIndex, WriteDocuments
from graphdb.search.catalog.command_codec import decode_command
from graphdb.search.errors import SearchError
from tests.support.memory_log import MemoryLog, answer_is_lost
from tests.support.search_nodes import indexed, source_of, started

pytestmark = pytest.mark.anyio

IMPATIENT = SearchConfig(commit=CommitConfig(log_wait_s=0.2, log_poll_s=0.01))


def writes_in(log: MemoryLog) -> list[int]:
    """How many documents each entry of the log has."""
    commands = [decode_command(entry.payload) for entry in log.entries]
    return [len(command.writes) for command in commands if isinstance(command, WriteDocuments)]


async def test_writes_that_come_during_an_append_share_the_next(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        log.holding.clear()
        writing = [asyncio.create_task(node.write([indexed(0)]))]
        await asyncio.sleep(0.05)
        writing += [asyncio.create_task(node.write([indexed(number)])) for number in range(1, 64)]
        await asyncio.sleep(0.05)
        log.holding.set()
        results = await asyncio.gather(*writing)
        assert writes_in(log) == [1, 63]
        assert [one.result.doc_id for (one,) in results] == [str(number) for number in range(64)]
        assert [one.result.seq_no for (one,) in results] == list(range(64))


async def test_writes_of_one_turn_share_the_first_append(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        writing = [asyncio.create_task(node.write([indexed(number)])) for number in range(64)]
        results = await asyncio.gather(*writing)
        assert writes_in(log) == [64]
        assert [one.result.seq_no for (one,) in results] == list(range(64))


async def test_a_large_request_is_cut_into_entries_of_bounded_size(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        await node.write([indexed(number) for number in range(2500)])
        assert writes_in(log) == [1000, 1000, 500]


async def test_other_commands_have_entries_of_their_own(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        log.holding.clear()
        tasks = [asyncio.create_task(node.write([indexed(0)]))]
        await asyncio.sleep(0.02)
        tasks.append(asyncio.create_task(node.write([indexed(1)])))
        await asyncio.sleep(0.02)
        creating = asyncio.create_task(node.perform(CreateIndex("other", "u1", {})))
        await asyncio.sleep(0.02)
        tasks.append(asyncio.create_task(node.write([indexed(2)])))
        await asyncio.sleep(0.02)
        log.holding.set()
        await asyncio.gather(creating, *tasks)
        assert (log.appends, writes_in(log)) == ([1, 3], [1, 1, 1])


async def test_a_write_that_cannot_be_logged_fails_alone(tmp_path: Path) -> None:
    log = MemoryLog()
    bad = replace(indexed(1), index="\ud800")
    async with started(tmp_path, log) as node:
        log.holding.clear()
        writing = [
            asyncio.create_task(node.write([one])) for one in (indexed(0), indexed(2), bad, indexed(3))
        ]
        await asyncio.sleep(0.05)
        log.holding.set()
        outcomes = await asyncio.gather(*writing, return_exceptions=True)
        assert [isinstance(one, SearchError) for one in outcomes] == [False, False, True, False]


async def test_one_error_of_many_is_only_for_the_one_who_asked(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        await node.perform(CreateIndex("books", "u1", {}))
        with pytest.raises(SearchError) as refused:
            await node.perform(CreateIndex("books", "u2", {}))
        assert refused.value.kind == "resource_already_exists_exception"


@pytest.mark.parametrize("stored", [True, False])
async def test_a_lost_answer_of_a_log_that_can_tell_is_made_good(tmp_path: Path, stored: bool) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        log.faults.append(answer_is_lost(stored))
        (result,) = await node.write([indexed(1)])
        assert (result.result.version, writes_in(log)) == (1, [1])


async def test_a_lost_answer_of_a_cluster_is_found_in_the_log(tmp_path: Path) -> None:
    log = MemoryLog(settles_at_once=False)
    async with started(tmp_path, log, IMPATIENT) as node:
        log.faults.append(answer_is_lost(stored=True))
        (result,) = await node.write([indexed(1)])
        assert (result.result.version, writes_in(log)) == (1, [1])


async def test_a_lost_answer_that_does_not_show_up_stays_unknown(tmp_path: Path) -> None:
    log = MemoryLog(settles_at_once=False)
    async with started(tmp_path, log, IMPATIENT) as node:
        log.faults.append(answer_is_lost(stored=False))
        with pytest.raises(OutcomeUnknown):
            await node.write([indexed(1)])
        assert log.entries == []


def _away(log: MemoryLog, entries: object) -> None:
    raise LogUnavailable("away")


def _full(log: MemoryLog, entries: object) -> None:
    raise StorageFull("full")


async def test_a_log_that_is_away_is_waited_for(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log, IMPATIENT) as node:
        log.faults += [_away, _away]
        await node.write([indexed(1)])
        assert source_of(node, 1) is not None


async def test_a_log_that_stays_away_refuses(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log, IMPATIENT) as node:
        log.faults += [_away] * 1000
        with pytest.raises(LogUnavailable):
            await node.write([indexed(1)])


async def test_a_full_log_refuses_at_once_and_later_parts_fail_one_by_one(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        log.faults.append(_full)
        with pytest.raises(StorageFull):
            await node.write([indexed(1)])
        log.faults += [lambda log, entries: None, _full]
        results = await node.write([indexed(number) for number in range(2500)])
        statuses = [one.result.status for one in results]
        assert statuses == [201] * 1000 + [503] * 1500


async def test_more_than_may_wait_is_refused(tmp_path: Path) -> None:
    log = MemoryLog()
    config = SearchConfig(commit=CommitConfig(waiting_bytes_max=1000), publish_identity_s=None)
    async with started(tmp_path, log, config) as node:
        log.holding.clear()
        writing = [asyncio.create_task(node.write([indexed(number)])) for number in range(20)]
        await asyncio.sleep(0.05)
        log.holding.set()
        outcomes = await asyncio.gather(*writing, return_exceptions=True)
        refused = [one for one in outcomes if isinstance(one, SearchError)]
        assert 0 < len(refused) < 20
        assert {(one.kind, one.status) for one in refused} == {("es_rejected_execution_exception", 429)}
        use = node.writing()
        assert (use.rejected, use.active, use.queue) == (len(refused), 0, 0)
        assert 1 <= use.largest <= use.size == config.commit.in_flight_max
        await node.write([indexed(100)])


async def test_closing_answers_who_waits(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        log.holding.clear()
        writing = [asyncio.create_task(node.write([indexed(0)]))]
        await asyncio.sleep(0.05)
        writing += [asyncio.create_task(node.write([indexed(number)])) for number in (1, 2)]
        await asyncio.sleep(0.05)
    outcomes = await asyncio.gather(*writing, return_exceptions=True)
    assert [type(one) for one in outcomes] == [OutcomeUnknown, LogUnavailable, LogUnavailable]


async def test_an_entry_that_cannot_be_applied_is_answered_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        await node.write([indexed(1)])
        with monkeypatch.context() as patched:
            patched.setattr(node.catalog, "apply", lambda *_: 1 / 0)
            with pytest.raises(SearchError, match="ZeroDivisionError"):
                await node.write([indexed(2)])
        await node.write([indexed(3)])
        assert source_of(node, 3) is not None


def test_entries_without_effect_on_search_are_passed_over(tmp_path: Path) -> None:
    """What the quads log stands in the same log."""
    from graphdb.model import EntryKind

    async def run() -> None:
        log = MemoryLog()
        log.store([LogEntry(0, 0, EntryKind.NOTHING, bytes(16), 0, b"")] * 3)
        async with started(tmp_path, log) as node:
            assert node.status().snapshot_index == 3
            await node.write([indexed(1)])
            log.store([LogEntry(0, 0, EntryKind.CHANGES, bytes(16), 0, b"of no concern")])
            await node.write([indexed(2)])
            assert node.status().snapshot_index == 6

    asyncio.run(run())
