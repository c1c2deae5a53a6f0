"""The queries of LUBM and BSBM on the column view and its shards: what compiles gives what the engine gives.

They stand in `query_mixes/`, written from their definitions, with terms of the data for parameters.

- LUBM: Guo, Pan and Heflin, "LUBM: A benchmark for OWL knowledge base systems" (2005). Most of them ask for
  what the ontology infers; `lubm_inferred.ru` adds it to the data, and the rows are as many as are published
  for one university.
- BSBM 3.1: http://wbsg.informatik.uni-mannheim.de/bizer/berlinsparqlbenchmark/V3/spec/, the use cases Explore
  and Business Intelligence. Query 6 of Explore is defined but in no mix; query 7 asks for vendors in Germany,
  of which the data have none, so here for those in Great Britain.
"""

import gzip
import math
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pytest
from pyoxigraph import Literal, NamedNode, QuerySolutions, RdfFormat, Store

from graphdb.columns.catalog import Catalog
from graphdb.columns.loading import load_store, settle
from graphdb.columns.schema import create
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import Answer
from graphdb.sparql.syntax import Query
from tests.support.column_answers import Refused, column_of, engine_answer, engine_rows, rows_of, view_read
from tests.support.column_shards import divided, sharded_read

Term: TypeAlias = Any
Reading: TypeAlias = Callable[[Query, Callable[[Answer], Any]], Any]
"""What a query's answer, handed to a function, gives, or `Refused`."""

MIXES = Path(__file__).parent / "query_mixes"
DATA = Path(os.environ.get("GRAPHDB_SHARED", Path(__file__).parents[3] / "shared")) / "data"
SHARDS, HOSTS = 4, (1, 2, 4)
FLOAT = NamedNode("http://www.w3.org/2001/XMLSchema#float")
LUBM_ROWS = [4, 0, 6, 34, 719, 7790, 67, 7790, 208, 4, 224, 15, 1, 5916]

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data (or $GRAPHDB_SHARED)")


def loaded(name: str, inferred: str, scratch: Path) -> tuple[Store, Catalog]:
    """A data set and an update, in a store and in a view; scratch is a directory for files on the way."""
    store = Store()
    store.bulk_load(gzip.decompress((DATA / f"{name}.nt.gz").read_bytes()), RdfFormat.N_TRIPLES)
    store.update(inferred)
    connection = duckdb.connect(":memory:", config={"threads": 1})
    create(connection)
    load_store(connection, store, scratch)
    settle(connection, 1)
    return store, Catalog(connection)


@pytest.fixture(scope="module")
def lubm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Catalog]:
    inferred = (MIXES / "lubm_inferred.ru").read_text()
    return loaded("lubm1", inferred, tmp_path_factory.mktemp("lubm"))


@pytest.fixture(scope="module")
def bsbm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Catalog]:
    return loaded("bsbm375k", "", tmp_path_factory.mktemp("bsbm"))


def texts(mix: str) -> dict[str, str]:
    prefixes = (MIXES / "prefixes.rq").read_text()
    return {path.stem: prefixes + path.read_text() for path in sorted((MIXES / mix).glob("*.rq"))}


def in_order(answer: Answer) -> list[Term]:
    """All cells, row by row."""
    assert isinstance(answer, QuerySolutions)
    return [term for solution in answer for term in solution]


def same(ours: Term, theirs: Term) -> bool:
    """The last digits of a sum of floats follow the order in which they are added."""
    if (
        isinstance(ours, Literal)
        and isinstance(theirs, Literal)
        and ours.datatype == theirs.datatype == FLOAT
    ):
        return math.isclose(float(ours.value), float(theirs.value), rel_tol=1e-5)
    return bool(ours == theirs)


def agree(store: Store, read: Reading, query: Query) -> bool | str:
    """Whether the answers are the same, or why the query does not compile."""
    if not query.modifiers.order_by:
        rows = read(query, rows_of)
        return rows.reason if isinstance(rows, Refused) else bool(rows == engine_rows(store, query))
    cells = read(query, in_order)  # the orders here leave no two rows open
    if isinstance(cells, Refused):
        return cells.reason
    expected = in_order(engine_answer(store, query))
    return len(cells) == len(expected) and all(map(same, cells, expected))


def refused(mix: str, store: Store, read: Reading) -> dict[str, str]:
    """Which queries do not compile, and why; all others give what the engine gives."""
    found = {name: agree(store, read, parse_query(text)) for name, text in texts(mix).items()}
    reasons = {name: each for name, each in found.items() if isinstance(each, str)}
    print(f"{len(found) - len(reasons)} of {len(found)} queries of {mix} compile")
    assert all(found.values()), found
    return reasons


def test_lubm(lubm: tuple[Store, Catalog]) -> None:
    store, view = lubm
    assert refused("lubm", store, partial(view_read, view)) == {}
    answers = [engine_answer(store, parse_query(text)) for text in texts("lubm").values()]
    assert [len(column_of(answer, "x")) for answer in answers] == LUBM_ROWS
    for hosts in HOSTS:
        with divided(view.connection, SHARDS, hosts=hosts) as shards:
            assert refused("lubm", store, partial(sharded_read, shards)) == {}, hosts


def test_bsbm(bsbm: tuple[Store, Catalog]) -> None:
    store, view = bsbm
    assert [len(texts(mix)) for mix in ("bsbm_explore", "bsbm_bi")] == [12, 8]
    with ExitStack() as stack:
        several = [stack.enter_context(divided(view.connection, SHARDS, hosts=hosts)) for hosts in HOSTS]
        for read in (partial(view_read, view), *(partial(sharded_read, shards) for shards in several)):
            assert refused("bsbm_explore", store, read) == {"q09": "DESCRIBE"}
            assert refused("bsbm_bi", store, read) == {}
