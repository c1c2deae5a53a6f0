"""What each operation on a shard answers, and what is searchable when."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

from graphdb.search.segments.buffer import Tombstones
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.merging import merge
from graphdb.search.segments.operations import Action, Operation, OperationResult, Outcome
from tests.unit.search.segments.words_mapping import WordsMapping

Shard = IndexShard[WordsMapping]


@pytest.fixture
def shard() -> Shard:
    return IndexShard("i", WordsMapping(), {})


def index(doc_id: str, body: bytes = b'{"t":"x"}', **more: object) -> Operation:
    return Operation(Action.INDEX, doc_id, body, **more)  # type: ignore[arg-type]


def create(doc_id: str, body: bytes = b"{}") -> Operation:
    return Operation(Action.CREATE, doc_id, body)


def update(doc_id: str, body: bytes, **more: object) -> Operation:
    return Operation(Action.UPDATE, doc_id, body, **more)  # type: ignore[arg-type]


def delete(doc_id: str, **more: object) -> Operation:
    return Operation(Action.DELETE, doc_id, **more)  # type: ignore[arg-type]


def one(shard: Shard, operation: Operation) -> OperationResult:
    return shard.apply([operation])[0]


def searchable(shard: Shard) -> list[str]:
    return [leaf.segment.doc_id(int(doc)) for leaf in shard.leaves() for doc in np.flatnonzero(leaf.roots)]


def outcome(result: OperationResult) -> tuple[Outcome | None, int, int, int]:
    return result.outcome, result.status, result.version, result.seq_no


def reason(result: OperationResult) -> str:
    assert result.error is not None
    assert result.outcome is None
    return result.error.reason


def nothing(shard: Shard) -> None:
    pass


def refreshed(shard: Shard) -> None:
    shard.refresh()


BETWEEN = pytest.mark.parametrize("between", [nothing, refreshed])


@BETWEEN
def test_versions_and_sequence_numbers(shard: Shard, between: Callable[[Shard], None]) -> None:
    found = []
    for operation in [index("a"), index("a"), delete("a"), delete("a"), index("a"), delete("b")]:
        found.append(outcome(one(shard, operation)))
        between(shard)
    assert found == [
        (Outcome.CREATED, 201, 1, 0),
        (Outcome.UPDATED, 200, 2, 1),
        (Outcome.DELETED, 200, 3, 2),
        (Outcome.NOT_FOUND, 404, 4, 3),
        (Outcome.CREATED, 201, 5, 4),
        (Outcome.NOT_FOUND, 404, 1, 5),
    ]


@BETWEEN
def test_what_is_there_is_not_created(shard: Shard, between: Callable[[Shard], None]) -> None:
    one(shard, index("a"))
    between(shard)
    refused = one(shard, create("a"))
    assert reason(refused) == "[a]: version conflict, document already exists (current version [1])"
    assert refused.status == 409
    one(shard, delete("a"))
    between(shard)
    assert one(shard, create("a")).version == 3


@BETWEEN
def test_if_seq_no(shard: Shard, between: Callable[[Shard], None]) -> None:
    one(shard, index("b"))
    one(shard, index("a"))
    between(shard)
    stale = one(shard, index("a", if_seq_no=0, if_primary_term=1))
    assert reason(stale) == (
        "[a]: version conflict, required seqNo [0], primary term [1]. "
        "current document has seqNo [1] and primary term [1]"
    )
    assert reason(one(shard, delete("c", if_seq_no=0, if_primary_term=1))) == (
        "[c]: version conflict, required seqNo [0], primary term [1]. but no document was found"
    )
    assert reason(one(shard, index("a", if_seq_no=1, if_primary_term=2))).startswith("[a]: version conflict")
    assert one(shard, index("a", if_seq_no=1, if_primary_term=1)).version == 2


@BETWEEN
def test_external_versions(shard: Shard, between: Callable[[Shard], None]) -> None:
    assert one(shard, index("a", version=5, version_type="external")).version == 5
    between(shard)
    same = one(shard, index("a", version=5, version_type="external"))
    assert reason(same) == (
        "[a]: version conflict, current version [5] is higher or equal to the one provided [5]"
    )
    assert one(shard, index("a", version=5, version_type="external_gte")).version == 5
    assert reason(one(shard, delete("a", version=4, version_type="external_gte"))) == (
        "[a]: version conflict, current version [5] is higher than the one provided [4]"
    )
    assert one(shard, delete("a", version=9, version_type="external")).version == 9
    between(shard)
    assert one(shard, index("a", version=8, version_type="external")).status == 409
    assert one(shard, index("a", version=10, version_type="external")).outcome is Outcome.CREATED


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        (index("é" * 257), f"id [{'é' * 257}] is too long, must be no longer than 512 bytes but was: 514"),
        (index("a", if_seq_no=1), "ifSeqNo is set, but primary term is [0]"),
        (
            index("a", if_seq_no=1, if_primary_term=1, version=1, version_type="external"),
            "compare and write operations can not use versioning",
        ),
    ],
)
def test_requests_that_cannot_be(shard: Shard, operation: Operation, problem: str) -> None:
    refused = one(shard, operation)
    assert reason(refused) == f"Validation Failed: 1: {problem};"
    assert refused.status == 400


def test_an_empty_id_is_none(shard: Shard) -> None:
    refused = one(shard, index(""))
    assert reason(refused) == "if _id is specified it must not be empty"
    assert refused.error is not None
    assert refused.error.kind == "illegal_argument_exception"


@BETWEEN
def test_a_partial_document_is_merged(shard: Shard, between: Callable[[Shard], None]) -> None:
    one(shard, index("a", b'{"o":{"x":1,"y":2},"n":1}', routing="r"))
    between(shard)
    changes = update("a", b'{"doc":{"o":{"y":3},"z":"new"}}')
    result = one(shard, changes._replace(wants_source=True))
    assert outcome(result) == (Outcome.UPDATED, 200, 2, 1)
    document = shard.get("a")
    assert document is not None
    assert document.source == result.source == b'{"o":{"x":1,"y":3},"n":1,"z":"new"}'
    assert result.made_bytes == len(document.source)
    assert one(shard, changes._replace(wants_source=True)).source == document.source
    assert one(shard, changes).source is None
    assert document.routing == "r"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"doc":{"n":1}}', Outcome.NOOP),
        (b'{"doc":{"o":{"x":1}}}', Outcome.NOOP),
        (b'{"doc":{}}', Outcome.NOOP),
        (b'{"doc":{"n":1},"detect_noop":false}', Outcome.UPDATED),
        (b'{"doc":{"n":true}}', Outcome.UPDATED),
        (b'{"doc":{"m":null}}', Outcome.UPDATED),
    ],
)
def test_an_update_that_changes_nothing(shard: Shard, body: bytes, expected: Outcome) -> None:
    one(shard, index("a", b'{"o":{"x":1},"n":1}'))
    result = one(shard, update("a", body))
    assert result.outcome is expected
    assert (result.version, result.seq_no) == ((1, 0) if expected is Outcome.NOOP else (2, 1))


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (b'{"doc":{"n":1},"doc_as_upsert":true}', b'{"n":1}'),
        (b'{"doc":{"n":1},"upsert":{"n":2}}', b'{"n":2}'),
    ],
)
def test_upserts(shard: Shard, body: bytes, source: bytes) -> None:
    assert outcome(one(shard, update("a", body))) == (Outcome.CREATED, 201, 1, 0)
    document = shard.get("a")
    assert document is not None
    assert document.source == source


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"doc":{"n":1}}', "document_missing_exception", 404),
        (b"{}", "action_request_validation_exception", 400),
        (b'{"dok":{}}', "x_content_parse_exception", 400),
        (b'{"doc":[]}', "x_content_parse_exception", 400),
        (b'{"script":{}}', "illegal_argument_exception", 400),
        (b"[]", "document_parsing_exception", 400),
        (b'{"doc":' + b'{"a":' * 2000 + b"1" + b"}" * 2001, "document_parsing_exception", 400),
    ],
)
def test_updates_that_fail(shard: Shard, body: bytes, kind: str, status: int) -> None:
    result = one(shard, update("a", body))
    assert result.error is not None
    assert (result.error.kind, result.status) == (kind, status)


def test_an_operation_that_fails_leaves_no_trace(shard: Shard) -> None:
    results = shard.apply(
        [index("a", b'{"t":"x"}'), index("a", b'{"q":1.5}'), index("b", b"{"), index("c", b"[1]"), index("d")]
    )
    assert [result.status for result in results] == [201, 400, 400, 400, 201]
    assert results[-1].seq_no == 1
    assert shard.mapping.fields == {"t"}
    shard.refresh()
    assert searchable(shard) == ["a", "d"]
    document = shard.get("a")
    assert document is not None
    assert document.version == 1


def test_an_operation_sees_those_before_it(shard: Shard) -> None:
    results = shard.apply(
        [index("a", b'{"n":1}'), update("a", b'{"doc":{"m":2}}'), create("a"), delete("a"), create("a")]
    )
    assert [result.status for result in results] == [201, 200, 409, 200, 201]
    assert [result.version for result in results] == [1, 2, 0, 3, 4]


def test_search_sees_a_refresh_get_sees_at_once(shard: Shard) -> None:
    shard.apply([index("a"), index("b")])
    assert searchable(shard) == []
    assert shard.get("a") is not None
    assert shard.get("a", realtime=False) is None
    assert shard.refresh()
    assert not shard.refresh()
    before = shard.leaves()
    shard.apply([delete("a"), index("c"), index("b")])
    assert shard.get("a") is None
    assert shard.get("a", realtime=False) is not None
    assert shard.refresh()
    assert searchable(shard) == ["c", "b"]
    assert np.count_nonzero(before[0].live) == 2  # whoever holds the old view keeps it


def test_nested_documents_die_with_theirs(shard: Shard) -> None:
    shard.apply([index("a", b'{"o":{"x":1}}'), index("b", b'{"o":{"x":2}}')])
    shard.refresh()
    shard.apply([index("c", b'{"o":{"p":{"x":3}}}'), index("c", b"{}"), delete("a")])
    shard.refresh()
    assert [leaf.live.tolist() for leaf in shard.leaves()] == [
        [False, False, True, True],
        [False, False, False, True],
    ]
    assert [leaf.base for leaf in shard.leaves()] == [0, 4]


def test_a_segment_without_live_documents_is_dropped(shard: Shard) -> None:
    one(shard, index("a"))
    shard.refresh()
    one(shard, delete("a"))
    assert shard.refresh()
    assert shard.leaves() == ()


def test_deletes_during_a_merge_are_kept(shard: Shard) -> None:
    for name in "abc":
        shard.apply([index(name + str(number)) for number in range(3)])
        shard.refresh()
    one(shard, delete("a0"))
    shard.refresh()
    plan = shard.plan_merge()
    while plan is None:  # more segments than the policy likes
        one(shard, index(f"more{shard.stats().segments}"))
        shard.refresh()
        plan = shard.plan_merge()
    merged = merge(plan.leaves, plan.name)
    shard.apply([delete("a1"), index("b0")])
    shard.refresh()
    one(shard, delete("c2"))
    wanted = [name for name in searchable(shard)]
    assert shard.adopt_merge(plan, merged)
    assert searchable(shard) == wanted
    shard.refresh()
    assert searchable(shard) == [name for name in wanted if name != "c2"]
    assert not shard.adopt_merge(plan, merged)


def test_tombstones_are_bounded_and_do_not_depend_on_refreshes(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tombstones, "COUNT_MAX", 2)
    shard.apply([delete("a"), delete("b"), delete("c")])
    assert [result.version for result in shard.apply([delete("a"), delete("c"), delete("b")])] == [1, 2, 1]


def test_stats(shard: Shard) -> None:
    shard.apply([index("a", b'{"o":{"x":1}}'), index("b"), index("c")])
    shard.refresh()
    shard.apply([delete("a"), index("d")])
    shard.refresh()
    one(shard, index("e"))
    stats = shard.stats()
    assert (stats.documents, stats.deleted, stats.segments, stats.buffered) == (3, 1, 2, 1)
    assert stats.size_bytes > 0


def test_readers_never_miss_a_document_while_it_is_rewritten(shard: Shard) -> None:
    """A reader thread asks for a document that is rewritten, refreshed and merged all the time."""
    one(shard, index("a"))
    missed: list[int] = []
    done = threading.Event()

    def read() -> None:
        versions = [0]
        while not done.is_set():
            document = shard.get("a")
            versions.append(-1 if document is None else document.version)
            if versions[-1] < versions[-2]:
                missed.append(versions[-1])

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(300):
        one(shard, index("a"))
        shard.refresh()
        shard.maybe_merge()
    done.set()
    reader.join()
    assert missed == []
