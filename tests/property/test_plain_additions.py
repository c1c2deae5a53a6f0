"""New documents without conditions, which are added without the checks of other operations, and several
together, against those checks, one by one.
"""

from typing import Any
from unittest.mock import patch

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.mapping import Mapping
from graphdb.search.segments import document_updates
from graphdb.search.segments.document_updates import _Batch
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation, OperationResult, validate
from graphdb.search.segments.shard_view import array_segment

IDS = st.sampled_from([*"abcdefghijkl", "", "x" * 129, "é" * 257])
VALUES = st.sampled_from([1, 7, "2", "x y", "x y", "é", None, {"b": 1}, [1, 2]])
DOCUMENTS = st.dictionaries(st.sampled_from(["n", "t", "new", "_id"]), VALUES, max_size=3)
SIDS = st.sampled_from([None, None, frozenset[str](), frozenset({"s"})])


def _operation(
    action: Action, doc_id: str, document: dict[str, Any], allowed: list[str] | None, given: dict[str, Any]
) -> Operation:
    if allowed is not None:
        document = document | {"_allow_sids": allowed}
    value = document if given.pop("has_value") else None
    body = orjson.dumps({"doc": document, "upsert": document} if action is Action.UPDATE else document)
    return Operation(action, doc_id, body, value=None if action is Action.UPDATE else value, **given)


CONDITIONS = st.one_of(
    st.just({}),
    st.just({}),
    st.builds(lambda number: {"if_seq_no": number, "if_primary_term": 1}, st.integers(0, 4)),
    st.builds(lambda number: {"version": number, "version_type": "external"}, st.integers(0, 4)),
)
OPERATIONS = st.builds(
    lambda action, doc_id, document, allowed, conditions, sids, routing, has_value: _operation(
        action,
        doc_id,
        document,
        allowed,
        {**conditions, "sids": sids, "routing": routing, "has_value": has_value},
    ),
    st.sampled_from([Action.INDEX, Action.INDEX, Action.CREATE, Action.DELETE, Action.UPDATE]),
    IDS,
    DOCUMENTS,
    st.sampled_from([None, None, None, ["s"], []]),
    CONDITIONS,
    SIDS,
    st.sampled_from([None, "r"]),
    st.booleans(),
)
ADDITIONS = st.builds(
    lambda action, doc_id, document, has_value: _operation(
        action, doc_id, document, None, {"has_value": has_value}
    ),
    st.sampled_from([Action.INDEX, Action.CREATE]),
    IDS,
    st.fixed_dictionaries({}, optional={"n": st.just(1), "t": st.sampled_from(["x", "x y"])}),
    st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        st.lists(OPERATIONS, max_size=6),
        st.lists(st.one_of(ADDITIONS, ADDITIONS, ADDITIONS, OPERATIONS), max_size=12),
        st.sampled_from(["refresh", "seal", "forget", "merge"]),
    ),
    max_size=8,
)


class Side:
    """A shard, and all that is visible of it."""

    def __init__(self) -> None:
        mapping = Mapping.of(
            {"properties": {"n": {"type": "integer"}, "t": {"type": "text"}}}, Analyzers.of({})
        )
        self.shard = IndexShard("i", mapping, {})

    def take(self, step: Any) -> list[OperationResult]:
        if isinstance(step, list):
            return self.shard.apply(step)
        steps = {
            "refresh": self.shard.refresh,
            "seal": self.shard.seal,
            "forget": self.shard.forget_deletions,
            "merge": self.shard.maybe_merge,
        }
        steps[step]()
        return []

    def state(self) -> Any:
        shard = self.shard
        found = [(shard.get(doc_id), shard.get(doc_id, realtime=False)) for doc_id in "abcdefghijkl"]
        sections = [
            {key: array.tolist() for key, array in array_segment(leaf).sections.items()}
            for leaf in shard.leaves()
        ]
        return found, sorted(shard.ids()), shard.stats(), shard.mapping.as_json(), sections


def shown(results: list[OperationResult]) -> list[Any]:
    return [
        one._replace(error=None if one.error is None else (one.error.kind, one.error.reason))  # type: ignore[arg-type]
        for one in results
    ]


@settings(deadline=None, max_examples=300)
@given(STEPS)
@example([[Operation(Action.INDEX, "a", b"{}"), Operation(Action.CREATE, "a", b"{}")]])
@example(
    [
        [Operation(Action.INDEX, "a", b"{}"), Operation(Action.DELETE, "a")],
        "refresh",
        [Operation(Action.CREATE, "a", b"{}")],
    ]
)
def test_they_are_what_the_checks_make_of_them(steps: list[Any]) -> None:
    together, quick, checked = Side(), Side(), Side()
    for step in steps:
        found = shown(quick.take(step))
        with patch.object(document_updates, "_TOGETHER_MIN", 2):
            assert shown(together.take(step)) == found
        with patch.object(_Batch, "_is_plain_addition", lambda self, operation: False):
            assert shown(checked.take(step)) == found
        assert checked.state() == quick.state()
        assert together.state() == quick.state()


def test_a_new_document_is_a_plain_addition() -> None:
    """Else the test above compares the checks with themselves."""
    with patch("graphdb.search.segments.document_updates.validate", wraps=validate) as checks:
        Side().take([Operation(Action.INDEX, "a", b"{}"), Operation(Action.CREATE, "b", b"{}", routing="r")])
    checks.assert_not_called()


def test_new_documents_are_added_together() -> None:
    """Else `together` above compares itself with the others; one that is refused is alone."""
    documents = [b'{"t": "x y", "n": 1}'] * 20 + [b'{"t": "x y", "n": {}}'] + [b'{"t": "x y"}'] * 20
    operations = [Operation(Action.INDEX, str(number), body) for number, body in enumerate(documents)]
    side = Side()
    with patch.object(_Batch, "apply", autospec=True, side_effect=_Batch.apply) as alone:
        results = side.take(operations)
    assert [call.args[1].doc_id for call in alone.call_args_list] == ["20"]
    assert [one.seq_no for one in results] == [*range(20), -1, *range(20, 40)]
