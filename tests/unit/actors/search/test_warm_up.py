"""Warming up: everything that it goes through works, and searches compile nothing after it."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from actors.search.warm_up import warm_up, warm_up_all

_SEARCHES = """
import gc, tempfile
import numpy as np, orjson
from numba.core.dispatcher import Dispatcher
from actors.search.warm_up import warm_up_all
from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import CreateIndex, DocumentWrite, WriteDocuments
from graphdb.search.catalog.files import CatalogFiles
from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import is_short
from graphdb.search.results import SearchOptions
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.vectors import GraphFiles, keep_graphs

RAW = SearchOptions(raw_source=True)

def signatures():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {f"{one.py_func.__module__}.{one.__name__}{each}" for one in kernels for each in one.signatures}

def document(number):
    tags = [f"tag{number % count}" for count in (3, 40, 400)]
    vector = lots.random(8).tolist()
    return {"title": f"the road of stone {number % 9}", "tags": tags, "price": number % 17 / 4,
        "stock": number % 13, "at": f"20{number % 20:02}-01-01",
        "spot": [number % 80, number % 170], "v": vector, "w": vector}

def written(index, number, action, body):
    return DocumentWrite(index, Operation(action, str(number), body))

warm_up_all()
before, lots = signatures(), np.random.default_rng(1)
catalog = Catalog()
fields = {"tags": {"type": "keyword"}, "at": {"type": "date"}, "spot": {"type": "geo_point"},
    "v": {"type": "dense_vector", "dims": 8, "similarity": "cosine"},
    "w": {"type": "dense_vector", "dims": 8, "similarity": "l2_norm"}}
for place, name in enumerate(("one", "two")):
    catalog.apply(CreateIndex(name, name, {"mappings": {"properties": fields}}), 1 + 9 * place, 0).get()
    for part in range(2):
        numbers = range(part, 12_000, 2)
        writes = [written(name, n, Action.INDEX, orjson.dumps(document(n))) for n in numbers]
        catalog.apply(WriteDocuments(tuple(writes), refresh=True), 2 + part + 9 * place, 0).get()
gone = [written("two", n, Action.DELETE, None) for n in range(0, 12_000, 5)]
catalog.apply(WriteDocuments(tuple(gone), refresh=True), 20, 0).get()

QUERIES = [
    {"match_all": {}},
    {"match": {"title": "road 3"}},
    {"match": {"title": {"query": "stone road 4", "operator": "and"}}},
    {"match": {"title": "the road of stone 1 2 3 4 5 6 7 8 0 river of time and more"}},
    {"match_phrase": {"title": "road of stone"}},
    {"bool": {"must": {"match": {"title": "stone 5"}}, "filter": [{"term": {"tags": "tag2"}}]}},
    {"bool": {"should": [{"match": {"title": "stone"}}, {"range": {"price": {"gt": 2}}}]}},
    {"bool": {"must_not": {"terms": {"tags": ["tag1", "tag30"]}}}},
    {"prefix": {"tags": "tag3"}},
    {"wildcard": {"tags": "*1"}},
    {"range": {"at": {"gte": "2005-01-01"}}},
    {"geo_distance": {"distance": "900km", "spot": [40, 40]}},
    {"function_score": {"query": {"match": {"title": "road"}}, "field_value_factor": {"field": "stock"}}},
    *({"knn": {"field": one, "query_vector": [1, 0, 2, 0, 1, 0, 1, 1], "k": 5}} for one in "vw"),
    *({"knn": {"field": one, "query_vector": [1, 0, 2, 0, 1, 0, 1, 1], "k": 5,
        "filter": {"range": {"price": {"gt": 1}}}}} for one in "vw"),
]
AGGREGATIONS = {
    "tags": {"terms": {"field": "tags"}, "aggs": {"mean": {"avg": {"field": "price"}}}},
    "years": {"date_histogram": {"field": "at", "calendar_interval": "year"}},
    "prices": {"histogram": {"field": "price", "interval": 1}},
    "pieces": {"histogram": {"field": "stock", "interval": 2}},
    "stock": {"stats": {"field": "stock"}},
    "middle": {"percentiles": {"field": "price"}},
    "kinds": {"cardinality": {"field": "tags"}},
    "where": {"geo_bounds": {"field": "spot"}},
}

COUNTED = {"tags": {"terms": {"field": "tags"}}, "prices": {"histogram": {"field": "price", "interval": 1}}}

def ask(directory):
    indexes = [catalog.find(name) for name in ("one", "two")]
    for index in indexes:
        files = GraphFiles(RealFileSystem(), directory)
        assert keep_graphs(index.searcher().leaves, index.mapping, files) in (0, 4)
    for chosen in (indexes[:1], indexes[1:], indexes):
        targets = [Target(index.searcher(), index.context(0)) for index in chosen]
        for query in QUERIES:
            prepare({"query": query}, targets, Searchers()).run()
            prepare({"query": query, "size": 0, "aggs": AGGREGATIONS}, targets, Searchers()).run()
            for name in ("years", "prices", "pieces"):
                body = {"query": query, "size": 0, "aggs": {name: AGGREGATIONS[name]}}
                prepared = prepare(body, targets, Searchers())
                is_short(prepared)
                prepared.run()
            counting = prepare({"query": query, "size": 0, "aggs": COUNTED}, targets, Searchers(), RAW)
            is_short(counting)
            counting.run()
            for sort in ({"price": "desc"}, {"stock": "asc"}, {"tags": "asc"}, "_doc"):
                prepare({"query": query, "sort": [sort], "size": 3}, targets, Searchers()).run()

with tempfile.TemporaryDirectory() as directory:
    ask(directory)
    CatalogFiles(RealFileSystem(), directory).save(catalog, 20)
    ask(directory)
    catalog = CatalogFiles(RealFileSystem(), directory).load()[0]
    ask(directory)
print(*sorted(signatures() - before), sep="\\n")
"""


@pytest.mark.parametrize("work", [warm_up, warm_up_all])
def test_warming_up_meets_no_error(work: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    work()
    assert caplog.text == ""


def test_searches_compile_nothing_after_an_installation_has() -> None:
    """In a process of its own: others compile for themselves."""
    done = subprocess.run([sys.executable, "-c", _SEARCHES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
