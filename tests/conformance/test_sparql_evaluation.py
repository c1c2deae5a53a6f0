"""The evaluation tests of the W3C SPARQL suites, query and update, through the service's own paths.

Every case passes or stands below with its reason; a case that stands there and passes fails as stale. Left
out as a whole are federated queries and entailment regimes, which the suites keep in manifests of their own.
"""

from collections import Counter

import pytest

from graphdb.errors import GraphDBError
from tests.conformance.evaluation import (
    UPDATE_KINDS,
    Outcome,
    agree,
    evaluation_cases,
    run_query_case,
    run_update_case,
)
from tests.conformance.manifests import Case, suite_root

pytestmark = pytest.mark.skipif(suite_root() is None, reason="the W3C suites are not at ../shared/suites")

# (suite, kind): cases, of them in SAME_VALUES, of them in FAILURES
COUNTS = {
    ("sparql10", "query"): (283, 5, 11),
    ("sparql11", "query"): (235, 19, 2),
    ("sparql11", "update"): (94, 0, 0),
    ("sparql12", "query"): (63, 1, 1),
    ("sparql12", "update"): (3, 0, 0),
}

# The engine keeps numbers and dates as values and gives them back in canonical form. These results differ
# from the expected ones in nothing else: for "1.0"^^xsd:decimal, say, the answer is "1"^^xsd:decimal.
SAME_VALUES = frozenset(
    [
        "sparql10/distinct#no-distinct-1",
        "sparql10/distinct#no-distinct-9",
        "sparql10/open-world#date-3",
        "sparql10/open-world#open-eq-03",
        "sparql10/open-world#open-eq-04",
        "sparql11/aggregates#agg-avg-02",
        "sparql11/aggregates#agg-err-02",
        "sparql11/aggregates#agg-max-01",
        "sparql11/aggregates#agg-max-02",
        "sparql11/aggregates#agg-max-distinct",
        "sparql11/aggregates#agg-min-01",
        "sparql11/aggregates#agg-min-02",
        "sparql11/aggregates#agg-min-distinct",
        "sparql11/aggregates#agg-sum-02",
        "sparql11/cast#cast-bool",
        "sparql11/cast#cast-decimal",
        "sparql11/cast#cast-double",
        "sparql11/cast#cast-float",
        "sparql11/cast#cast-int",
        "sparql11/cast#cast-string",
        "sparql11/csv-tsv-res#tsv03",
        "sparql11/functions#coalesce01",
        "sparql11/functions#plus-1-corrected",
        "sparql11/functions#plus-2-corrected",
        "sparql12/eval-triple-terms#op-2",
    ]
)

FAILURES = {
    "numbers that are equal are one term to the engine, however they are written": """
        sparql10/open-world#open-eq-01
        sparql10/expr-builtin#dawg-str-1
        sparql10/expr-builtin#dawg-str-2
        sparql10/expr-builtin#sameTerm-simple
        sparql10/expr-builtin#sameTerm-eq
        sparql10/expr-builtin#sameTerm-not-eq
        sparql10/expr-equals#eq-graph-1
        sparql10/expr-equals#eq-graph-2
        sparql10/distinct#distinct-1
        sparql10/distinct#distinct-9
        sparql12/grouping#group01
    """,
    "CSV shows how a number is written, which the engine does not keep": """
        sparql11/csv-tsv-res#csv03
    """,
    "the engine compares a date with a time zone to one without, where the suite expects an error": """
        sparql10/open-world#date-2
    """,
    "BNODE(string) gives the engine's same blank node in every solution, not only within one": """
        sparql11/functions#bnode01
    """,
}


def run(case: Case) -> tuple[Outcome, Outcome]:
    return run_update_case(case) if case.kinds & UPDATE_KINDS else run_query_case(case)


def reason_of(name: str) -> str | None:
    return next((reason for reason, names in FAILURES.items() if name in names.split()), None)


@pytest.mark.parametrize("name", evaluation_cases())
def test_case(name: str) -> None:
    case = evaluation_cases()[name]
    reason = reason_of(name)
    if reason is not None:
        assert not passes(case), f"stale: {name} passes; it was listed because {reason}"
        return
    ours, expected = run(case)
    if name in SAME_VALUES:
        assert not agree(ours, expected), f"stale: {name} passes as it is"
        assert agree(ours, expected, by_value=True)
        return
    assert agree(ours, expected), f"{case.comment}\nours: {ours}\nexpected: {expected}"


def passes(case: Case) -> bool:
    try:
        return agree(*run(case), by_value=True)
    except GraphDBError:
        return False


def test_the_tables_name_existing_cases_once() -> None:
    listed = Counter([*SAME_VALUES, *(name for names in FAILURES.values() for name in names.split())])
    assert {
        name: times for name, times in listed.items() if times > 1 or name not in evaluation_cases()
    } == {}


def test_the_counts_are_right() -> None:
    found: dict[tuple[str, str], list[int]] = {}
    for name, case in evaluation_cases().items():
        kind = "update" if case.kinds & UPDATE_KINDS else "query"
        counts = found.setdefault((name.partition("/")[0], kind), [0, 0, 0])
        counts[0] += 1
        counts[1] += name in SAME_VALUES
        counts[2] += reason_of(name) is not None
    assert {key: tuple(counts) for key, counts in found.items()} == COUNTS
