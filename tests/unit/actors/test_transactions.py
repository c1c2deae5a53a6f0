"""Transactions over several requests, of real nodes: what they read, what they store, and how they end."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from actors.node.transactions import Transaction
from graphdb.access.permissions import Permission
from graphdb.access.principal import EVERYONE, Principal
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.config.limits import GateLimits
from graphdb.errors import (
    Forbidden,
    InvalidParameter,
    LimitExceeded,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    TransactionConflict,
)
from graphdb.model import Confirmation
from graphdb.planning.gate import read_query, read_update
from graphdb.sparql.dataset import Dataset
from graphdb.transactions.changes import TransactionCommit
from graphdb.transactions.read_pattern import ReadPattern
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard, open_shard
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

P, G, H = NamedNode("urn:p"), NamedNode("urn:g"), NamedNode("urn:h")
ADA = Principal(
    "ada",
    "basic",
    permission=Permission.WRITE,
    visibility=Visibility(default_graph=True, patterns=frozenset({"urn:g"})),
)


def quad(number: int, graph: NamedNode | None = None) -> Quad:
    subject, value = NamedNode(f"urn:s{number}"), Literal(number)
    return Quad(subject, P, value) if graph is None else Quad(subject, P, value, graph)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Shard]:
    limits = {"max_transactions": 3, "max_transaction_quads": 1_000, "max_open_quads": 1_500}
    async with open_shard(tmp_path, repository=limits) as shard:
        yield shard


async def begin(node: Shard, principal: Principal = EVERYONE) -> Transaction:
    return await node.node.transactions.begin(principal)


async def add(transaction: Transaction, *quads: Quad) -> None:
    await transaction.add(lambda: quads)


async def remove(transaction: Transaction, *patterns: ReadPattern) -> None:
    await transaction.remove(lambda: patterns)


async def update(transaction: Transaction, text: str) -> None:
    await transaction.update(read_update(text, None, GateLimits()), Dataset())


async def commit(node: Shard, transaction: Transaction, principal: Principal = EVERYONE) -> Confirmation:
    return await transaction.commit(node.writes(principal.visibility).commit)


async def read(transaction: Transaction, pattern: ReadPattern | None = None) -> set[Quad]:
    pattern = pattern or ReadPattern()
    reads = await transaction.reads()
    transaction.note_pattern(pattern)
    return set(reads.quads_matching(pattern.subject, pattern.predicate, pattern.object, pattern.graph))


async def apply(node: Shard, text: str) -> None:
    await node.writes(FULL_VISIBILITY).update(read_update(text, None, GateLimits()), Dataset())


def stored(node: Shard) -> set[Quad]:
    return set(node.node.queries.whole.dataset_quads())


def open_count(node: Shard) -> int:
    return node.node.transactions.open_count


async def test_it_sees_its_own_changes_and_others_only_after_the_commit(node: Shard) -> None:
    await apply(node, "INSERT DATA { <urn:s1> <urn:p> 1 }")
    transaction = await begin(node)
    await add(transaction, quad(2, G))
    await apply(node, "INSERT DATA { <urn:s3> <urn:q> 3 }")
    assert await read(transaction, ReadPattern(predicate=P)) == {quad(1), quad(2, G)}
    assert quad(2, G) not in stored(node)
    await remove(transaction, ReadPattern(quad(1).subject))
    await add(transaction, quad(4))
    assert await read(transaction, ReadPattern(predicate=P)) == {quad(2, G), quad(4)}
    before = node.snapshot_index()
    done = await commit(node, transaction)
    assert done.snapshot_index == before + 1, "one entry of the log"
    assert {one for one in stored(node) if one.predicate == P} == {quad(2, G), quad(4)}
    assert open_count(node) == 0


async def test_a_rollback_stores_nothing(node: Shard) -> None:
    transaction = await begin(node)
    await add(transaction, quad(1))
    assert await read(transaction) == {quad(1)}
    await transaction.rollback()
    assert stored(node) == set()
    with pytest.raises(NotFound):
        await add(transaction, quad(1))
    with pytest.raises(NotFound):
        node.node.transactions.find(transaction.id, EVERYONE)


@pytest.mark.parametrize(
    ("elsewhere", "is_refused"),
    [
        ("INSERT DATA { <urn:s1> <urn:p> 5 }", True),
        ("INSERT DATA { <urn:s9> <urn:p> 5 }", False),
        ("INSERT DATA { <urn:s1> <urn:q> 5 }", False),
        ("INSERT DATA { GRAPH <urn:h> { <urn:s1> <urn:p> 5 } }", False),
        ("DELETE DATA { <urn:s1> <urn:p> 1 }", True),
        ("CREATE GRAPH <urn:new>", False),
        ("DROP DEFAULT", True),
    ],
)
async def test_it_is_refused_if_what_it_read_has_changed(
    node: Shard, elsewhere: str, is_refused: bool
) -> None:
    await apply(node, "INSERT DATA { <urn:s1> <urn:p> 1 }")
    transaction = await begin(node)
    await update(transaction, "INSERT { <urn:s2> <urn:p> ?o } WHERE { <urn:s1> <urn:p> ?o }")
    await apply(node, elsewhere)
    expected = stored(node)
    if is_refused:
        with pytest.raises(TransactionConflict):
            await commit(node, transaction)
        assert stored(node) == expected
        with pytest.raises(TransactionConflict):
            await add(transaction, quad(1))
        await transaction.rollback()
    else:
        await commit(node, transaction)
        assert stored(node) == expected | {Quad(NamedNode("urn:s2"), P, Literal(1))}
    assert open_count(node) == 0


async def test_no_write_skew(node: Shard) -> None:
    """Two that each read what the other changes: one of them is refused."""
    await apply(node, "INSERT DATA { <urn:a> <urn:on> true . <urn:b> <urn:on> true }")
    one, other = await begin(node), await begin(node)
    text = "DELETE {{ <urn:{0}> <urn:on> true }} WHERE {{ <urn:a> <urn:on> true . <urn:b> <urn:on> true }}"
    await update(one, text.format("a"))
    await update(other, text.format("b"))
    await commit(node, one)
    with pytest.raises(TransactionConflict):
        await commit(node, other)
    assert len(stored(node)) == 1


async def test_the_last_word_counts_though_others_have_written_meanwhile(node: Shard) -> None:
    await apply(node, "INSERT DATA { <urn:s1> <urn:p> 1 }")
    transaction = await begin(node)
    await add(transaction, quad(1), quad(2))
    await update(transaction, "DELETE DATA { <urn:s3> <urn:p> 3 }")
    await apply(node, "DELETE DATA { <urn:s1> <urn:p> 1 } ; INSERT DATA { <urn:s3> <urn:p> 3 }")
    await commit(node, transaction)
    assert stored(node) == {quad(1), quad(2)}


async def test_queries_that_a_reader_evaluates(node: Shard) -> None:
    await apply(node, "INSERT DATA { GRAPH <urn:g> { <urn:s1> <urn:p> 1 } }")
    transaction = await begin(node)
    await update(transaction, "INSERT DATA { <urn:s1> <urn:p> 2 }")
    await update(
        transaction,
        "INSERT { GRAPH <urn:h> { ?s <urn:sum> ?n } } "
        "WHERE { SELECT ?s (SUM(?o) AS ?n) "
        "{ { ?s <urn:p> ?o } UNION { GRAPH ?g { ?s <urn:p> ?o } } } GROUP BY ?s }",
    )
    expected = Quad(NamedNode("urn:s1"), NamedNode("urn:sum"), Literal(3), H)
    assert expected in await read(transaction)
    reads = (await transaction.reads()).uniting_graphs()
    query = read_query("SELECT ?o { ?s <urn:p> ?o }", None, GateLimits())
    rows = list(reads.query(query, Dataset()).answer)  # type: ignore[arg-type]
    assert len(rows) == 2
    await commit(node, transaction)
    assert expected in stored(node)


async def test_graphs_come_and_go(node: Shard) -> None:
    await apply(node, "CREATE GRAPH <urn:g> ; INSERT DATA { GRAPH <urn:h> { <urn:s1> <urn:p> 1 } }")
    transaction = await begin(node)
    await update(transaction, "DROP GRAPH <urn:g> ; COPY <urn:h> TO <urn:new> ; CREATE GRAPH <urn:empty>")
    await commit(node, transaction)
    names = {graph.value for graph in node.opened().quads.named_graphs()}
    assert names == {"urn:h", "urn:new", "urn:empty"}
    assert Quad(NamedNode("urn:s1"), P, Literal(1), NamedNode("urn:new")) in stored(node)


async def test_blank_nodes_of_the_store_can_be_removed(node: Shard) -> None:
    await apply(node, "INSERT DATA { _:b <urn:p> 1 }")
    [known] = stored(node)
    assert isinstance(known.subject, BlankNode)
    transaction = await begin(node)
    await remove(transaction, ReadPattern(known.subject))
    await commit(node, transaction)
    assert stored(node) == set()


async def test_they_are_bounded_in_number_and_size(node: Shard) -> None:
    def many(count: int, start: int) -> Iterable[Quad]:
        return [quad(number) for number in range(start, start + count)]

    open_ones = [await begin(node) for _ in range(3)]
    with pytest.raises(Overloaded, match="max_transactions"):
        await begin(node)
    with pytest.raises(LimitExceeded, match="max_transaction_quads"):
        await open_ones[0].add(lambda: many(1_001, 0))
    await open_ones[0].add(lambda: many(1_000, 0))
    with pytest.raises(LimitExceeded, match="max_open_quads"):
        await open_ones[1].add(lambda: many(600, 0))
    await open_ones[1].add(lambda: many(400, 0))
    with pytest.raises(LimitExceeded):
        await update(open_ones[0], "INSERT DATA { <urn:more> <urn:p> 1 }")
    for one in open_ones:
        await one.rollback()
    assert open_count(node) == 0
    again = await begin(node)
    await again.rollback()


async def test_nothing_is_left_of_them(node: Shard, tmp_path: Path) -> None:
    for number in range(12):
        await apply(node, f"INSERT DATA {{ <urn:x> <urn:p> {number} }}")
        transaction = await begin(node)
        await add(transaction, quad(number))
        await read(transaction)
        reads = await transaction.reads()
        del reads
        await (transaction.rollback() if number % 2 else commit(node, transaction))
    del transaction
    for _ in range(200):
        left = [one.name for one in (tmp_path / "scratch").iterdir()]
        if not [name for name in left if name.startswith("transaction-")] and len(left) <= 1:
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError(left)


async def test_one_that_nobody_uses_is_rolled_back(tmp_path: Path) -> None:
    async with open_shard(tmp_path, repository={"transaction_timeout_seconds": 0.2}) as node:
        transaction = await begin(node)
        await add(transaction, quad(1))
        for _ in range(int(HANG_S / 0.02)):
            if not open_count(node):
                break
            await asyncio.sleep(0.02)
        with pytest.raises(NotFound):
            await commit(node, transaction)
        assert stored(node) == set()


async def test_whose_they_are(node: Shard) -> None:
    transactions = node.node.transactions
    await apply(
        node, "INSERT DATA { GRAPH <urn:h> { <urn:s1> <urn:p> 1 } GRAPH <urn:g> { <urn:s2> <urn:p> 2 } }"
    )
    transaction = await begin(node, ADA)
    assert transactions.find(transaction.id, ADA) is transaction
    for stranger in (EVERYONE, replace(ADA, provider="ldap"), replace(ADA, name="bob")):
        with pytest.raises(NotFound):
            transactions.find(transaction.id, stranger)
    assert await read(transaction) == {quad(2, G)}
    with pytest.raises(Forbidden):
        await add(transaction, quad(1, H))
    with pytest.raises(Forbidden):
        await update(transaction, "INSERT DATA { GRAPH <urn:h> { <urn:s1> <urn:p> 9 } }")
    with pytest.raises(Forbidden):
        await update(transaction, "DROP GRAPH <urn:h>")
    await update(transaction, "DROP ALL")
    await commit(node, transaction, ADA)
    assert stored(node) == {quad(1, H)}


async def test_one_whose_principal_may_see_something_else_now_ends(node: Shard) -> None:
    transaction = await begin(node, ADA)
    with pytest.raises(NotFound):
        node.node.transactions.find(transaction.id, replace(ADA, visibility=FULL_VISIBILITY))
    assert open_count(node) == 0


async def test_one_outlives_the_view_that_it_was_begun_on(tmp_path: Path) -> None:
    """Fewer views are kept than there are principals."""
    async with open_shard(tmp_path, server={"views": 1}) as node:
        await apply(node, "INSERT DATA { GRAPH <urn:g> { <urn:s2> <urn:p> 2 } }")
        transaction = await begin(node, ADA)
        other = replace(ADA, name="bob", visibility=Visibility(patterns=frozenset({"urn:h"})))
        late = await begin(node, other)
        assert node.node.transactions.find(transaction.id, ADA) is transaction
        assert await read(transaction) == {quad(2, G)}
        assert await read(late) == set()
        await add(transaction, quad(3, G))
        await commit(node, transaction, ADA)
        assert stored(node) == {quad(2, G), quad(3, G)}


async def test_one_ends_if_something_is_annotated(node: Shard) -> None:
    transaction, admins = await begin(node, ADA), await begin(node)
    await apply(node, "INSERT DATA { <urn:s1> <urn:p> 1 {| <urn:graphdb:acl#allowedSid> 'S-1' |} }")
    with pytest.raises(NotFound):
        node.node.transactions.find(transaction.id, ADA)
    assert node.node.transactions.find(admins.id, EVERYONE) is admins


async def test_what_is_hidden_refuses_nothing(node: Shard) -> None:
    await apply(node, "INSERT DATA { GRAPH <urn:g> { <urn:s2> <urn:p> 2 } }")
    blind, refused = await begin(node, ADA), await begin(node, ADA)
    for transaction in (blind, refused):
        assert await read(transaction) == {quad(2, G)}
        await add(transaction, quad(3, G))
    await apply(node, "INSERT DATA { GRAPH <urn:h> { <urn:s1> <urn:p> 1 } }")
    await commit(node, blind, ADA)
    with pytest.raises(TransactionConflict):
        await commit(node, refused, ADA)


async def test_a_commit_whose_outcome_is_unknown_can_be_sent_again(node: Shard) -> None:
    """It takes effect once, and its own first attempt does not refuse it."""
    await apply(node, "INSERT DATA { <urn:s1> <urn:p> 1 }")
    transaction = await begin(node)
    await update(transaction, "DELETE { ?s ?p ?o } INSERT { ?s ?p 2 } WHERE { ?s ?p ?o }")
    writes = node.writes(FULL_VISIBILITY)

    async def lost(made: TransactionCommit, request_id: bytes) -> Confirmation:
        await writes.commit(made, request_id)
        raise OutcomeUnknown("the answer is lost")

    with pytest.raises(OutcomeUnknown):
        await transaction.commit(lost)
    index = node.snapshot_index()
    done = await transaction.commit(writes.commit)
    assert done.is_repeated
    assert node.snapshot_index() == index
    assert stored(node) == {Quad(NamedNode("urn:s1"), P, Literal(2))}


async def test_what_it_does_not_do(node: Shard) -> None:
    transaction = await begin(node)
    with pytest.raises(InvalidParameter, match="LOAD"):
        await update(transaction, "LOAD <http://example.org/>")
    await transaction.rollback()


async def test_a_transaction_of_a_node_that_does_not_lead(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        shards = [cluster.shards[node_id] for node_id in (1, 2, 3)]
        followers = [shard for shard in shards if shard.node.admin.status().role != "leader"]
        follower, other = followers[0], followers[1]
        transaction = await begin(follower)
        await add(transaction, quad(1))
        assert await read(transaction) == {quad(1)}
        await commit(follower, transaction)
        assert stored(follower) == {quad(1)}
        late = await begin(follower)
        assert await read(late) == {quad(1)}
        await add(late, quad(2))
        await apply(other, "INSERT DATA { <urn:s5> <urn:p> 5 }")
        with pytest.raises(TransactionConflict):
            await commit(follower, late)
