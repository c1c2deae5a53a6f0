"""States of the past against a naive twin: random logs of every kind of update, and random annotations."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad

from actors.history.history_keeper import HistoryKeeper
from actors.history.visible_past import hide_present
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.store_lifecycle import StoreConfig
from actors.readers.client import ReaderClient
from actors.readers.store_reader import StoreReader
from actors.shard.shard_writer import WriterConfig
from graphdb.access.annotations import ALLOWED_SID, REIFIES, VisibleQuads
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.config import Settings
from graphdb.config.service import History
from graphdb.errors import HistoryForgotten, RequestError
from graphdb.history.moments import read_moment
from graphdb.history.places import HISTORY
from graphdb.log.file_log import FileLogConfig
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.property.strategies import GRAPHS, quads
from tests.property.test_seen_writes import annotated, visibilities
from tests.property.twin import Twin, store_of, twin_of
from tests.property.update_texts import OperationText, requests
from tests.support.readers import answering
from tests.support.shards import Shard
from tests.support.timing import HANG_S

# changes of more than two or three quads come in parts, and a segment holds some fifty entries
CONFIG = StoreConfig(writer=WriterConfig(part_bytes_max=300))
SEGMENTS = FileLogConfig(segment_bytes=8_192, reserve_bytes=4_096)

Change: TypeAlias = list[OperationText] | tuple[NamedNode | None, list[Quad], bool]


async def perform(shard: Shard, change: Change) -> None:
    """An update, or a document that is put into a graph, or merged."""
    writes = shard.writes(FULL_VISIBILITY)
    if isinstance(change, list):
        await writes.update(parse_update(";\n".join(one.text for one in change)), Dataset())
        return
    graph, document, replaces = change

    async def body() -> AsyncIterator[bytes]:
        for quad in document:
            yield f"{quad.triple} .\n".encode()

    await writes.write_graph(
        body(), RdfSyntax.N_TRIPLES, graph=graph, whole_dataset=False, replace=replaces, base_iri=None
    )


documents = st.tuples(st.sampled_from([None, *GRAPHS]), st.lists(quads, max_size=8), st.booleans())


@pytest.fixture(scope="module")
def readers() -> Iterator[str]:
    """The socket of one reader, which evaluates WHERE clauses."""
    with tempfile.TemporaryDirectory() as directory:
        reader = StoreReader(Settings(readers={"count": 1}), socket_directory=directory)
        yield reader.endpoint()
        reader.close()


async def check_every_state(
    directory: Path, changes: list[Change], readers: str, data: st.DataObject
) -> None:
    log = UpdateLog(str(directory / "log"), SEGMENTS)
    client = LogClient(answering(log.endpoint()))
    settings_ = Settings(server={"data_dir": directory}, history={"as_of_states": 3})
    shard = Shard.standalone(settings_, client, ReaderClient(answering(readers)), CONFIG)
    try:
        await shard.start()
        states = {0: twin_of(shard.opened().quads)}
        for change in changes:
            with suppress(RequestError):
                await perform(shard, change)
            last_index = shard.snapshot_index()
            states[last_index] = twin_of(shard.opened().quads)
        past = shard.opened().past
        for index in data.draw(st.lists(st.sampled_from(range(last_index + 1)), min_size=6, max_size=8)):
            store = await past.visible_store(read_moment(str(index)), FULL_VISIBILITY, HANG_S)
            expected = states[max(at for at in states if at <= index)]
            assert twin_of(store.quads) == expected, index
            assert store.applied.exact == index
    finally:
        await shard.close()
        log.close()


@given(st.lists(requests | documents, min_size=10, max_size=40), st.data())
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
def test_every_state_is_that_of_a_replay(readers: str, changes: list[Change], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check_every_state(Path(directory), changes, readers, data))


async def check_named_states(
    directory: Path, changes: list[Change], readers: str, data: st.DataObject
) -> None:
    config = replace(SEGMENTS, history=str(directory / HISTORY))
    log = UpdateLog(str(directory / "log"), config)
    settings_ = Settings(server={"data_dir": directory}, history={"as_of_states": 3})
    client = LogClient(answering(log.endpoint()))
    shard = Shard.standalone(settings_, client, ReaderClient(answering(readers)), CONFIG)
    try:
        await shard.start()
        states = {0: twin_of(shard.opened().quads)}
        for change in changes:
            with suppress(RequestError):
                await perform(shard, change)
            states[shard.snapshot_index()] = twin_of(shard.opened().quads)
        last_index = max(states)
        indexes = st.sampled_from(range(last_index + 1))
        named = data.draw(st.lists(indexes, min_size=1, max_size=3, unique=True))
        for index in named:
            await shard.node.named_states.create(f"n{index}", read_moment(str(index)), "", None)
        await shard.opened().checkpointer.checkpoint()
        for _ in range(20):  # compaction hears of it in its own time, if there is anything to compact
            if (await shard.node.parts.log.status()).first_index > 1:
                break
            await asyncio.sleep(0.05)

        async def check(index: int, moment: str) -> None:
            store = await shard.opened().past.visible_store(read_moment(moment), FULL_VISIBILITY, HANG_S)
            assert twin_of(store.quads) == states[max(at for at in states if at <= index)], index

        def tend() -> None:
            needed_from = shard.opened().kept.named_states.needed_from
            HistoryKeeper(
                directory, History(keep="1"), lambda: last_index, lambda: needed_from, lambda: False
            ).tend()

        tend()
        for index in named:
            await check(index, f"n{index}")
        for index in data.draw(st.lists(st.sampled_from(range(min(named), last_index + 1)), max_size=3)):
            await check(index, str(index))
        for index in named:
            await shard.node.named_states.delete(f"n{index}", None)
        tend()
        for index in data.draw(st.lists(indexes, min_size=1, max_size=2)):
            with suppress(HistoryForgotten):  # but never another state
                await check(index, str(index))
    finally:
        await shard.close()
        log.close()


@given(st.lists(requests | documents, min_size=25, max_size=40), st.data())
@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
def test_retention_leaves_what_named_states_need(
    readers: str, changes: list[Change], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check_named_states(Path(directory), changes, readers, data))


@given(annotated(), annotated(), visibilities)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_was_seen_then_and_is_seen_now(then: Twin, now: Twin, visibility: Visibility) -> None:
    of_then, of_now = (VisibleQuads(visibility, store_of(twin)) for twin in (then, now))
    shown = {quad for quad in then.quads if of_then.sees(quad)}
    graphs = frozenset(graph for graph in then.graphs if visibility.sees_graph(graph))
    seen = store_of(Twin(frozenset(shown), graphs))
    hide_present(visibility, seen, store_of(now))
    # those of now, over what was there and seen: they may be about something that is not there now
    annotations = {quad for quad in now.quads if quad.predicate in (ALLOWED_SID, REIFIES)}
    annotating = {(quad.subject, quad.graph_name) for quad in annotations if quad.predicate == ALLOWED_SID}
    over = shown | {
        q
        for q in annotations
        if (q.subject, q.graph_name) in annotating and visibility.sees_graph(q.graph_name)
    }
    of_both = VisibleQuads(visibility, store_of(Twin(frozenset(over), frozenset())))
    left = twin_of(seen)
    assert left.quads == {quad for quad in shown if of_now.sees(quad) and of_both.sees(quad)}
    assert left.graphs <= graphs
