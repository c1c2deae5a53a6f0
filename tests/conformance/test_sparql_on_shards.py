"""The query tests of the W3C suites on 1, 2 and 4 hosts of shards of a view: the answers are the engine's."""

from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.sharding.division import Division
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import Answer
from graphdb.sparql.translation import abstract_query
from graphdb.store.quad_store import QuadStore
from tests.conformance.evaluation import Outcome, agree, case_store, outcome_of
from tests.conformance.manifests import Case, iri_of, suite_root
from tests.conformance.test_sparql_on_columns import TO_A_READER, query_cases
from tests.support.column_answers import Refused
from tests.support.column_shards import EXCHANGING, WatchedShards, opened, sharded_read
from tests.support.column_tables import column_tables

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(suite_root() is None, reason="the W3C suites are not at ../shared/suites"),
]

PARTS = 8  # each of some seconds


DIVISIONS = (Division.among(1, 4), Division.among(2, 3), Division.apart(4))


def answers(several: Sequence[WatchedShards], case: Case) -> list[tuple[Outcome, Outcome] | Refused]:
    """Those of the shards and of the engine, for each of several; none where not even one view has one."""
    assert case.action.query is not None
    query = parse_query(case.action.query.read_text("utf-8"), iri_of(case.action.query))
    store = case_store(case.action, query)
    catalog = column_tables(store)
    if not isinstance(compile_query(abstract_query(query), Dataset(), catalog), CompiledQuery):
        return []
    ordered = bool(query.modifiers.order_by)

    def read(answer: Answer) -> Outcome:
        return outcome_of(answer, ordered=ordered)

    expected = read(QuadStore(store).query(query, Dataset()))
    found: list[tuple[Outcome, Outcome] | Refused] = []
    for shards in several:
        shards.fill(catalog.connection)
        ours = sharded_read(shards, query, read, EXCHANGING)
        found.append(ours if isinstance(ours, Refused) else (ours, expected))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_what_compiles_on_one_view_gives_the_same_on_shards(part: int) -> None:
    refused, differing = {}, []
    names = sorted(query_cases)[part::PARTS]
    with ExitStack() as stack:
        several = [stack.enter_context(opened(division)) for division in DIVISIONS]
        for name in names:
            for division, found in zip(DIVISIONS, answers(several, query_cases[name]), strict=False):
                if isinstance(found, Refused):
                    refused[name, division] = found.reason
                elif not agree(*found):
                    differing.append((name, division))
    assert differing == []
    expected = {(name, division) for name in TO_A_READER & set(names) for division in DIVISIONS}
    assert refused.keys() == expected, refused
