"""The query tests of the W3C suites on the column view: what compiles gives what the engine gives."""

import duckdb
import pytest

from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.row_writing import may_write_rows
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.translation import abstract_query
from graphdb.store.quad_store import QuadStore
from tests.conformance.evaluation import QUERY_KINDS, Outcome, agree, case_store, evaluation_cases, outcome_of
from tests.conformance.manifests import Case, iri_of, suite_root
from tests.support.column_answers import written_both_ways
from tests.support.column_tables import column_tables

pytestmark = pytest.mark.skipif(suite_root() is None, reason="the W3C suites are not at ../shared/suites")

FORMATS = (ResultFormat.TSV, ResultFormat.CSV, ResultFormat.JSON)
CASES, COMPILED = 581, 338
# The SQL ends with an error, and a reader answers: an average of nothing, letters beyond ASCII in upper case.
TO_A_READER = {"sparql11/aggregates#agg-avg-03", "sparql11/functions#ucase01-non-bmp"}

query_cases = {name: case for name, case in evaluation_cases().items() if case.kinds & QUERY_KINDS}


def compiled(case: Case) -> tuple[Outcome, Outcome] | str:
    """The answers of the columns and of the engine, or why the query does not compile."""
    assert case.action.query is not None
    query = parse_query(case.action.query.read_text("utf-8"), iri_of(case.action.query))
    store = case_store(case.action, query)
    catalog = column_tables(store)
    found = compile_query(abstract_query(query), Dataset(), catalog)
    if not isinstance(found, CompiledQuery):
        return found.construct
    for fmt in FORMATS:
        if may_write_rows(found, fmt):
            ours, engines = written_both_ways(catalog, found, TermTexts(catalog.connection), fmt)
            assert ours == engines
    cursor = catalog.connection.execute(found.sql)
    ordered = bool(query.modifiers.order_by)
    return (
        outcome_of(answer_of(found, cursor.fetchmany, TermTexts(catalog.connection)), ordered=ordered),
        outcome_of(QuadStore(store).query(query, Dataset()), ordered=ordered),
    )


def test_what_compiles_agrees_with_the_engine_and_is_counted() -> None:
    assert len(query_cases) == CASES
    differing, count = [], 0
    for name, case in query_cases.items():
        if name in TO_A_READER:
            with pytest.raises(duckdb.InvalidInputException, match="not exact"):
                compiled(case)
        elif not isinstance(answers := compiled(case), str):
            count += 1
            if not agree(*answers):
                differing.append(name)
    print(f"{count} of {len(query_cases)} queries of the W3C suites compile")
    assert (differing, count) == ([], COMPILED)
