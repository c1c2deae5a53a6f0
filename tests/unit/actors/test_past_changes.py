"""What a node tells of its past, and to whom: nobody what is hidden now, or was then."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import IndexNotReached, InvalidParameter, LimitExceeded
from graphdb.history.asked import EVERYTHING, AskedChanges
from graphdb.history.moments import Moment
from graphdb.history.pages import Difference, HistoryPage, PageRequest
from graphdb.model import Author, Interface
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import Shard, stand_alone

pytestmark = pytest.mark.anyio
ACL = "PREFIX acl: <urn:graphdb:acl#> "
ANN = Author("basic:ann", Interface.SPARQL_UPDATE)
# sees the graphs urn:open..., and what is annotated for S-1
SOME = Visibility(patterns=frozenset({"urn:open*"}), sids=frozenset({"S-1"}))
OTHER = Visibility(default_graph=True, patterns=frozenset({"*"}))


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[Shard]:
    async with stand_alone(tmp_path) as opened:
        yield opened


async def write(shard: Shard, text: str) -> int:
    done = await shard.writes(FULL_VISIBILITY, ANN).update(parse_update(ACL + text), Dataset())
    return done.snapshot_index


async def page(
    shard: Shard, asked: AskedChanges = EVERYTHING, visibility: Visibility = FULL_VISIBILITY
) -> HistoryPage:
    found = await shard.node.history.page(PageRequest(asked, 100), visibility)
    assert found.cursor is None
    return found


async def told(shard: Shard, visibility: Visibility) -> list[tuple[int, list[str], list[str]]]:
    """The objects that were removed and added; urn:p has them."""
    found = []
    for entry in (await page(shard, AskedChanges(predicate=NamedNode("urn:p")), visibility)).entries:
        removed = [str(quad.object) for change in entry.changes for quad in change.removed]
        added = [str(quad.object) for change in entry.changes for quad in change.added]
        found.append((entry.log_index, removed, added))
    return found


async def difference(
    shard: Shard, since: int, visibility: Visibility, until: int | None = None
) -> Difference:
    end = None if until is None else Moment(str(until), until)
    return await shard.node.history.difference(EVERYTHING, Moment(str(since), since), end, visibility)


async def test_who_wrote_what(shard: Shard) -> None:
    first = await write(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")
    second = await write(shard, "DELETE WHERE { <urn:s> <urn:p> ?o } ; INSERT DATA { <urn:s> <urn:p> 2 }")
    found = await page(shard, AskedChanges(resource=NamedNode("urn:s")))
    assert [(entry.log_index, entry.author) for entry in found.entries] == [(second, ANN), (first, ANN)]
    assert (found.oldest_index, found.snapshot_index) == (0, second)


async def test_a_large_change_is_told_with_its_author(shard: Shard) -> None:
    data = " ".join(f"<urn:s{number}> <urn:large> '{'x' * 400}{number}' ." for number in range(15_000))
    index = await write(shard, f"INSERT DATA {{ {data} }}")
    entries = await shard.node.parts.log.read(2)
    assert entries[0].log_index < index, "it was to have several parts"
    found = await page(shard, AskedChanges(subject=NamedNode("urn:s14999")))
    assert [(entry.log_index, entry.author) for entry in found.entries] == [(index, ANN)]
    assert len((await difference(shard, 0, FULL_VISIBILITY)).change.added) == 15_000
    last, quads = None, 0
    while last is None or last.cursor is not None:
        request = PageRequest(EVERYTHING, 100, cursor=last.cursor if last else None)
        last = await shard.node.history.page(request, FULL_VISIBILITY)
        quads += sum(change.affected_triples for entry in last.entries for change in entry.changes)
    assert quads == 15_000


async def test_graphs_that_are_hidden_have_no_past(shard: Shard) -> None:
    secret = "GRAPH <urn:secret> { <urn:s> <urn:p> 'secret' }"
    await write(shard, f"INSERT DATA {{ {secret} <urn:s> <urn:p> 'own' }}")
    more = "GRAPH <urn:secret> { <urn:s> <urn:p> 'more' } GRAPH <urn:open> { <urn:s> <urn:p> 'open' }"
    both = await write(shard, f"INSERT DATA {{ {more} }}")
    await write(shard, "DROP GRAPH <urn:secret>")
    assert await told(shard, SOME) == [(both, [], ['"open"'])]
    for entry in (await page(shard, EVERYTHING, SOME)).entries:
        assert all(change.dropped_graphs == () for change in entry.changes)
        assert {str(name) for change in entry.changes for name in change.created_graphs} <= {"<urn:open>"}
    change = (await difference(shard, 0, SOME)).change
    assert [str(quad.object) for quad in change.added] == ['"open"']
    assert len(await told(shard, FULL_VISIBILITY)) == 3


GRAPH = "GRAPH <urn:open> {{ {} }}".format
STATEMENT = "<urn:s> <urn:p> 'x'"
NOTE = f"<< {STATEMENT} >> acl:allowedSid 'S-1'"


async def test_what_is_hidden_now_is_hidden_in_the_past(shard: Shard) -> None:
    await write(shard, f"INSERT DATA {{ {GRAPH(STATEMENT)} }}")
    assert len(await told(shard, SOME)) == len(await told(shard, OTHER)) == 1
    await write(shard, f"INSERT DATA {{ {GRAPH(NOTE)} }}")
    assert len(await told(shard, SOME)) == 1
    assert await told(shard, OTHER) == []
    assert (await difference(shard, 0, OTHER)).change.added == ()


async def test_what_was_hidden_then_is_hidden_for_good(shard: Shard) -> None:
    note = "<urn:r> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( " + STATEMENT + " )>>"
    annotated = f"{note} . <urn:r> acl:allowedSid 'S-1'"
    added = await write(shard, f"INSERT DATA {{ {GRAPH(f'{STATEMENT} . {annotated}')} }}")
    allowing = GRAPH("<urn:r> acl:allowedSid 'S-1'")
    await write(shard, f"DELETE DATA {{ {allowing} }}")
    removed = await write(shard, f"DELETE DATA {{ {GRAPH(STATEMENT)} }}")
    again = await write(shard, f"INSERT DATA {{ {GRAPH(STATEMENT)} }}")
    assert [index for index, *_ in await told(shard, SOME)] == [again, removed, added]
    # it was hidden when it was added; when it was removed, it was not any more
    assert [index for index, *_ in await told(shard, OTHER)] == [again, removed]
    assert [str(quad.object) for quad in (await difference(shard, removed, OTHER)).change.added] == ['"x"']
    assert (await difference(shard, 0, OTHER, added)).change.added == ()
    assert [str(quad.object) for quad in (await difference(shard, 0, SOME, added)).change.added] == ['"x"']
    # and what annotates is never told
    entries = (await page(shard, AskedChanges(resource=NamedNode("urn:r")), OTHER)).entries
    assert "allowedSid" not in str([entry.changes for entry in entries])
    await write(shard, f"DELETE DATA {{ {GRAPH(note)} }}")
    assert [index for index, *_ in await told(shard, OTHER)] == [again, removed]


async def test_what_the_past_does_not_have(shard: Shard) -> None:
    index = await write(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")
    with pytest.raises(IndexNotReached):
        await difference(shard, index + 1, FULL_VISIBILITY)
    for moment in (Moment("long ago", None, 1), Moment("x", None, name="x")):
        with pytest.raises(InvalidParameter):  # as `as_of` is refused: nothing was forgotten
            await shard.node.history.difference(EVERYTHING, moment, None, FULL_VISIBILITY)


async def test_a_difference_that_is_too_large_is_refused(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.node.past_changes._DIFFERENCE_QUADS", 3)
    await write(shard, "INSERT DATA { <urn:s> <urn:p> 1, 2, 3 }")
    assert len((await difference(shard, 0, FULL_VISIBILITY)).change.added) == 3
    await write(shard, "INSERT DATA { <urn:s> <urn:p> 4 }")
    with pytest.raises(LimitExceeded):
        await difference(shard, 0, FULL_VISIBILITY)


async def test_a_page_ends_in_time_and_goes_on(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.node.past_changes._PAGE_S", 0)
    indexes = [await write(shard, f"INSERT DATA {{ <urn:s> <urn:p> {number} }}") for number in range(5)]
    found, cursor = [], None
    for _ in range(50):
        answer = await shard.node.history.page(PageRequest(EVERYTHING, 2, cursor=cursor), FULL_VISIBILITY)
        found += [entry.log_index for entry in answer.entries]
        cursor = answer.cursor
        if cursor is None:
            break
    assert found == indexes[::-1]
