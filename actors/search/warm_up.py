"""Going once through what is compiled when it is first used, so that no client has to wait for it.

Numba keeps what it has compiled beside the modules (`__pycache__`). Where that is missing, as in a fresh
clone, compiling takes a minute of one core; else this takes a moment.

A kernel is compiled for each kind of array that it meets: of the memory or of a file, of all documents or of
those that are left. So what a process does when it starts (`warm_up`) is what most searches need, and what an
installation does (`warm_up_all`) is all that any search needs.
"""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import orjson

from actors.search import rare_searches
from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import CreateIndex, DocumentWrite, WriteDocuments
from graphdb.search.catalog.files import CatalogFiles
from graphdb.search.catalog.state import Index
from graphdb.search.document_texts import PlainDocuments
from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import is_short
from graphdb.search.query.dense_positions import dense_positions
from graphdb.search.results import SearchOptions
from graphdb.search.segments.operations import Action, Operation
from graphdb.sparql.text_tables import CellFormat
from graphdb.text import word_rows
from graphdb.text.hit_cells import NumberedCells, NumberedTable, TermColumn
from graphdb.text.hit_columns import HeldObjects, ObjectColumn, Subjects

__all__ = ["warm_up", "warm_up_all"]

logger = logging.getLogger(__name__)

_NAME, _ORDERED = "warm-up", "warm-up-ordered"
_NUMBER = {"number": {"type": "long"}}
_DESCENDING = {"field": "number", "order": "desc"}
_MEASURES = ("cosine", "l2_norm", "max_inner_product")  # each with code of its own
_VECTORS = {name: {"type": "dense_vector", "dims": 2, "similarity": name} for name in _MEASURES}
_TEXT = "the quick brown fox jumps over a very lazy dog of number "
_QUERIES: tuple[dict[str, Any], ...] = (
    {"match": {"text": "quick fox"}},
    {"match": {"text": _TEXT + "2 3 4 5 6"}},  # many terms have code of their own
    {"match_phrase": {"text": "quick brown"}},
    {"match_phrase": {"text": {"query": "brown quick", "slop": 3}}},
    {"bool": {"must": {"match": {"text": "fox"}}, "filter": {"range": {"number": {"gte": 1}}}}},
    {"wildcard": {"text": "qu*k"}},
    {"fuzzy": {"text": "quack"}},
    {"terms": {"tag": ["even", "odd"]}},
    {"bool": {"filter": {"term": {"tag.keyword": "odd"}}}},
    *(
        {"knn": {"field": name, "query_vector": [1, 2], "k": 2, "filter": {"range": {"number": {"gte": 1}}}}}
        for name in _MEASURES
    ),
)

_COUNTED = (
    ("terms", {"field": "tag.keyword"}),
    ("histogram", {"field": "number", "interval": 2}),
)


def warm_up() -> None:
    """On any thread; its failure is no more than a slow first request."""
    with _no_failure():
        _go_through()


def warm_up_all() -> None:
    """The same of all that is compiled, which takes longer."""
    with _no_failure():
        _go_through()
        rare_searches.go_through()


@contextmanager
def _no_failure() -> Iterator[None]:
    try:
        yield
    except Exception:
        logger.exception("warming up failed")


def _go_through() -> None:
    with tempfile.TemporaryDirectory(prefix="graphdb-warm-up-") as directory:
        for index in _states(CatalogFiles(RealFileSystem(), directory)):
            for leaf in index.searcher().leaves:
                dense_positions(leaf, "text", eager=True)  # which else only a large segment has
            for query in _QUERIES:
                _search(index, {"query": query})
            for kind, options in _COUNTED:
                _search(index, {"size": 0, "aggs": {"one": {kind: options}}})
            _search(index, {"size": 1, "sort": [{"number": "desc"}], "query": {"match": {"text": "fox"}}})
        _join()
        PlainDocuments([_bodies(0)[0]]).read(0)


def _join() -> None:
    """A hit of a search in the graph, with one object."""
    terms, number = ['"term"'], np.zeros(1, np.int64)
    cells = NumberedCells(terms)
    column = ObjectColumn()
    column.fill(HeldObjects(np.array([0, 1], np.int32), np.zeros(1, np.int32), terms, {terms[0]: 0}, cells))
    column.view(number, Subjects())
    columns = [TermColumn(terms, number), TermColumn(terms, number, cells)]
    list(NumberedTable(["x", "y"], columns).written(CellFormat.JSON))
    word_rows.load()


def _states(files: CatalogFiles) -> Iterator[Index]:
    """A small index in memory, then from files, then merged: code is compiled for each kind of array."""
    catalog = Catalog()
    catalog.apply(CreateIndex(_NAME, _NAME, {"mappings": {"properties": _VECTORS}}), 1, 0).get()
    for log_index in (2, 3):
        catalog.apply(WriteDocuments(_documents(_NAME, log_index), refresh=True), log_index, 0).get()
    ordered = {"mappings": {"properties": _NUMBER}, "settings": {"index": {"sort": _DESCENDING}}}
    catalog.apply(CreateIndex(_ORDERED, _ORDERED, ordered), 4, 0).get()
    catalog.apply(WriteDocuments(_documents(_ORDERED, 5), refresh=True), 5, 0).get()
    index = catalog.find(_NAME)
    assert index is not None
    yield index
    files.save(catalog, 5)
    yield index
    plan = index.shards.plan_merge(1)
    assert plan is not None
    index.shards.adopt_merge(plan, plan.merged())
    yield index


def _documents(index: str, first: int) -> tuple[DocumentWrite, ...]:
    return tuple(
        DocumentWrite(index, Operation(Action.INDEX, str(number), body))
        for number, body in enumerate(_bodies(first), first)
    )


def _bodies(first: int) -> list[bytes]:
    vectors = {name: [1, first] for name in _MEASURES}
    return [
        orjson.dumps(
            {"text": f"{_TEXT}{number}", "number": number, "tag": "odd" if number % 2 else "even"} | vectors
        )
        for number in range(first, first + 5)
    ]


def _search(index: Index, body: dict[str, Any]) -> None:
    """With objects, and as the port does, which finds out whether it is short and sends JSON on."""
    for raw in (False, True):
        options = SearchOptions(raw_source=raw)
        prepared = prepare(body, [Target(index.searcher(), index.context(0))], Searchers(), options)
        is_short(prepared)
        prepared.run()
