"""What `warm_up_all` does beyond `warm_up`: searches that few clients send, over all kinds of segments."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import CreateIndex, DocumentWrite, WriteDocuments
from graphdb.search.catalog.files import CatalogFiles
from graphdb.search.catalog.state import Index
from graphdb.search.extension.boosting import page_rank
from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import is_short
from graphdb.search.query.dense_positions import dense_positions
from graphdb.search.query.document_rows import document_rows
from graphdb.search.query.searcher import Searcher
from graphdb.search.results import SearchOptions
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.segments.shard_view import array_segment
from graphdb.search.segments.visible_segment import VisibleSegment
from graphdb.search.vectors import Graph, GraphFiles, build_graph, missing_graphs
from graphdb.search.vectors.codes import BITS, Codes
from graphdb.search.vectors.row_set import RowSet

__all__ = ["go_through"]

_NAME = "warm-up-rare"
_MEASURES = ("cosine", "l2_norm", "dot_product", "max_inner_product")
_PROPERTIES: dict[str, Any] = {
    "text": {"type": "text", "term_vector": "with_positions_offsets"},
    "word": {"type": "keyword"},
    "wild": {"type": "wildcard"},
    "long": {"type": "long"},
    "double": {"type": "double"},
    "short": {"type": "integer"},
    "date": {"type": "date"},
    "flag": {"type": "boolean"},
    "place": {"type": "geo_point"},
    "ip": {"type": "ip"},
    "longs": {"type": "long"},
    "doubles": {"type": "double"},
    "words": {"type": "keyword"},
    "places": {"type": "geo_point"},
    "within": {"type": "integer_range"},
    "inner": {"type": "nested", "properties": {"text": {"type": "text"}, "number": {"type": "long"}}},
    "loose": {"type": "text", "fielddata": True},
    "own": {"type": "keyword"},
    "many": {"type": "keyword"},
    **{name: {"type": "dense_vector", "dims": 4, "similarity": name} for name in _MEASURES},
}
_WORDS = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll",
    "larch", "maple", "north", "ocean",
]  # fmt: skip
_DOCUMENTS = 300  # more than are in one block of postings
_PEAK = {"lat": 50.0, "lon": 10.0}
_BOX = {"top_left": {"lat": 60, "lon": 0}, "bottom_right": {"lat": 40, "lon": 20}}
_TRIANGLE = {"points": [{"lat": 40, "lon": 0}, {"lat": 60, "lon": 10}, {"lat": 40, "lon": 20}]}
_NUMBERS = ("long", "double", "short", "date", "longs", "doubles")

_WHOLE: tuple[dict[str, Any], ...] = tuple(
    {"match": {"text": {"query": " ".join(_WORDS[:count]), "operator": operator}}}
    for count in (1, 2, 3, 5, 15)
    for operator in ("or", "and")
)
_QUERIES: tuple[dict[str, Any], ...] = (
    *_WHOLE,
    *({"bool": {"must": query, "filter": {"range": {"long": {"gte": 2}}}}} for query in _WHOLE),
    *({"bool": {"must": query, "must_not": {"term": {"word": "amber"}}}} for query in _WHOLE),
    *({"bool": {"should": [query, {"term": {"word": "amber"}}]}} for query in _WHOLE),
    *({"constant_score": {"filter": query}} for query in _WHOLE),
    *({"range": {name: {"gte": 1, "lte": 2}}} for name in _NUMBERS),
    *({"match_phrase": {"text": text}} for text in ("amber birch", "amber birch cedar", "amber amber")),
    *({"match_phrase": {"text": {"query": "cedar amber", "slop": slop}}} for slop in (1, 4)),
    {"match_phrase_prefix": {"text": "amber bi"}},
    {"match_bool_prefix": {"text": "amber bi"}},
    {"multi_match": {"query": "amber birch", "fields": ["text", "loose"], "type": "cross_fields"}},
    {"multi_match": {"query": "amber birch", "fields": ["text", "loose"], "type": "most_fields"}},
    {"combined_fields": {"query": "amber birch", "fields": ["text", "loose"]}},
    {"dis_max": {"queries": [{"match": {"text": "amber"}}, {"match": {"loose": "birch"}}]}},
    {"query_string": {"query": 'text:(amber AND bir*) OR word:cedar OR text:"amber birch"~2 OR text:ambr~'}},
    *(
        {kind: {name: pattern}}
        for name in ("text", "word", "words", "wild", "own")
        for kind, pattern in (("wildcard", "*a*r*"), ("prefix", "a"), ("regexp", "a.*r"), ("fuzzy", "ambr"))
    ),
    {"wildcard": {"word": {"value": "*A*R", "case_insensitive": True}}},
    {"terms": {"word": _WORDS}},
    {"terms": {"words": _WORDS}},
    {"terms": {"longs": [1, 2, 3]}},
    *({"exists": {"field": name}} for name in ("text", "word", "longs", "doubles", "places", "cosine")),
    *(
        query
        for name in ("place", "places")
        for query in (
            {"geo_distance": {"distance": "500km", name: _PEAK}},
            {"geo_bounding_box": {name: _BOX}},
            {"geo_polygon": {name: _TRIANGLE}},
            {"distance_feature": {"field": name, "pivot": "100km", "origin": _PEAK}},
            {"function_score": {"gauss": {name: {"origin": _PEAK, "scale": "100km"}}}},
        )
    ),
    *(
        {"function_score": {"functions": [{"field_value_factor": {"field": name, "missing": 1}}]}}
        for name in ("long", "doubles")
    ),
    *({"function_score": {"linear": {name: {"origin": 3, "scale": 5}}}} for name in ("long", "doubles")),
    {"nested": {"path": "inner", "query": {"match": {"inner.text": "amber birch"}}, "inner_hits": {}}},
    {"nested": {"path": "inner", "query": {"range": {"inner.number": {"gte": 1}}}, "score_mode": "max"}},
    {"more_like_this": {"fields": ["text"], "like": "amber birch cedar", "min_term_freq": 1}},
    {"intervals": {"text": {"match": {"query": "amber birch", "max_gaps": 3, "ordered": True}}}},
    {
        "span_near": {
            "clauses": [{"span_term": {"text": "amber"}}, {"span_term": {"text": "birch"}}],
            "slop": 3,
        }
    },
    {"term": {"within": 5}},
    {
        "script_score": {
            "query": {"exists": {"field": "long"}},
            "script": {"source": "doc['long'].value + _score"},
        }
    },
    *({"knn": {"field": name, "query_vector": [1, 2, 3, 5], "k": 2}} for name in _MEASURES[:2]),
)
_AGGREGATIONS: dict[str, Any] = {
    **{f"stats-{name}": {"extended_stats": {"field": name}} for name in _NUMBERS},
    **{f"sum-{name}": {"sum": {"field": name}} for name in _NUMBERS},
    **{f"steps-{name}": {"histogram": {"field": name, "interval": 2}} for name in _NUMBERS if name != "date"},
    **{f"few-{name}": {"cardinality": {"field": name}} for name in (*_NUMBERS, "word", "words", "loose")},
    **{f"parts-{name}": {"percentiles": {"field": name}} for name in _NUMBERS},
    **{
        f"by-{name}": {"terms": {"field": name}, "aggs": {"sum": {"sum": {"field": other}}}}
        for name, other in (("word", "double"), ("loose", "longs"), ("long", "doubles"), ("flag", "long"))
    },
    "days": {"date_histogram": {"field": "date", "calendar_interval": "month"}},
    "hours": {"date_histogram": {"field": "date", "fixed_interval": "1h"}},
    "ranges": {"range": {"field": "long", "ranges": [{"to": 5}, {"from": 5}]}},
    "bounds": {"geo_bounds": {"field": "places"}},
    "middle": {"geo_centroid": {"field": "place"}},
    "grid": {"geohash_grid": {"field": "places", "precision": 3}},
    "significant": {"significant_terms": {"field": "words"}},
    "inner": {"nested": {"path": "inner"}, "aggs": {"sum": {"sum": {"field": "inner.number"}}}},
    "pairs": {
        "composite": {"sources": [{"w": {"terms": {"field": "word"}}}, {"l": {"terms": {"field": "long"}}}]}
    },
    "top": {"top_hits": {"size": 1, "sort": [{"long": "desc"}]}},
}
_ALONE = [name for name in _AGGREGATIONS if name.startswith("steps-")] + ["days", "hours"]
_COUNTED: tuple[dict[str, Any], ...] = (
    *({"terms": {"field": name}} for name in ("words", "own", "many")),
    *({"histogram": {"field": name, "interval": 2}} for name in _NUMBERS if name != "date"),
)
_SORTS: tuple[Any, ...] = (
    *([{name: order}] for name in (*_NUMBERS, "word", "words") for order in ("asc", "desc")),
    [{"_geo_distance": {"place": _PEAK}}],
    ["_score", {"long": "asc"}],
)


def go_through() -> None:
    """All of it. An error of a search is a fault here, and is raised."""
    with tempfile.TemporaryDirectory(prefix="graphdb-warm-up-") as directory:
        for number, index in enumerate(_states(directory)):
            for targets in _targets(index):
                _search_all(targets)
            _walk(index, GraphFiles(RealFileSystem(), f"{directory}/graphs-{number}"))
    links = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
    page_rank(links[:, 0], links[:, 1], 3)


def _search_all(targets: Sequence[Target]) -> None:
    def search(body: dict[str, Any]) -> None:
        prepared = prepare(body, targets, Searchers())
        is_short(prepared)  # reads the bounds of columns, by which some searches go another way
        prepared.run()

    for query in _QUERIES:
        search({"query": query})
    search({"size": 0, "aggs": _AGGREGATIONS})
    search({"size": 0, "query": _WHOLE[0], "aggs": _AGGREGATIONS})
    for name in _ALONE:
        search({"size": 0, "query": _WHOLE[0], "aggs": {name: _AGGREGATIONS[name]}})
    for one in _COUNTED:
        for query in ({"match_all": {}}, *_WHOLE[:2]):
            body = {"size": 0, "query": query, "aggs": {"one": one}}
            for raw in (False, True):
                counting = prepare(body, targets, Searchers(), SearchOptions(raw_source=raw))
                is_short(counting)  # which finds the bounds of numbers
                counting.run()
    for query in _WHOLE:
        search({"query": query, "track_total_hits": False})
    search({"query": _WHOLE[-1], "highlight": {"fields": {"text": {}}}, "explain": True})
    for order in _SORTS:
        search({"query": _WHOLE[0], "sort": order, "size": 3})
    search({"suggest": {"s": {"text": "ambr", "term": {"field": "text"}}}})


def _targets(index: Index) -> Iterator[tuple[Target, ...]]:
    """An index, several, and what may be read of one."""
    searcher, context = index.searcher(), index.context(0)
    whole = Target(searcher, context)
    yield (whole,)
    yield whole, whole
    leaves = [
        replace(leaf, segment=VisibleSegment(array_segment(leaf), leaf.live)) for leaf in searcher.leaves
    ]
    yield (Target(Searcher(leaves, searcher.mapping, searcher.analyzers, index_name=_NAME), context),)


def _states(directory: str) -> Iterator[Index]:
    """An index in memory, with documents that are gone, from files, from both, and merged."""
    catalog = Catalog()
    catalog.apply(CreateIndex(_NAME, _NAME, {"mappings": {"properties": _PROPERTIES}}), 1, 0).get()
    catalog.apply(WriteDocuments(_documents(0), refresh=True), 2, 0).get()
    index = catalog.find(_NAME)
    assert index is not None
    yield _with_dense(index)
    catalog.apply(WriteDocuments(_gone(0), refresh=True), 3, 0).get()
    yield _with_dense(index)
    files = CatalogFiles(RealFileSystem(), directory)
    files.save(catalog, 3)
    yield _with_dense(index)
    catalog.apply(WriteDocuments(_documents(_DOCUMENTS), refresh=True), 4, 0).get()
    yield _with_dense(index)  # the first segment has documents that are gone, the second has none
    catalog.apply(WriteDocuments(_gone(_DOCUMENTS), refresh=True), 5, 0).get()
    yield _with_dense(index)
    plan = index.shards.plan_merge(1)
    assert plan is not None
    index.shards.adopt_merge(plan, plan.merged())
    yield _with_dense(index)
    files.save(catalog, 5)
    loaded = CatalogFiles(RealFileSystem(), directory).load()
    assert loaded is not None
    index = loaded[0].find(_NAME)
    assert index is not None
    yield _with_dense(index)


def _with_dense(index: Index) -> Index:
    for leaf in index.searcher().leaves:
        dense_positions(leaf, "text", eager=True)
        document_rows(leaf, "text").address(leaf, "text", 0)
    return index


def _documents(first: int) -> tuple[DocumentWrite, ...]:
    lots = random.Random(first)
    return tuple(
        DocumentWrite(_NAME, Operation(Action.INDEX, str(number), orjson.dumps(_document(number, lots))))
        for number in range(first, first + _DOCUMENTS)
    )


def _gone(first: int) -> tuple[DocumentWrite, ...]:
    return tuple(
        DocumentWrite(_NAME, Operation(Action.DELETE, str(number), b""))
        for number in range(first, first + _DOCUMENTS, 7)
    )


def _document(number: int, lots: random.Random) -> dict[str, Any]:
    text = " ".join(lots.choices(_WORDS, k=8)) + (" amber birch cedar" if number % 3 else "")
    few = number % 10
    places = [{"lat": 50 + few, "lon": 10 - few}, {"lat": 45, "lon": 5}]
    vector = [lots.random() for _ in range(4)]
    unit = (np.array(vector) / np.linalg.norm(vector)).tolist()
    nested = {"inner": [{"text": text, "number": few}, {"text": "amber", "number": 1}]}
    return (
        {
            "text": text,
            "loose": text,
            "word": _WORDS[few],
            "wild": _WORDS[few],
            "own": f"{_WORDS[few]}{number}",
            "long": few,
            "double": few / 4,
            "short": few,
            "date": 86_400_000 * number,
            "flag": few > 4,
            "place": places[0],
            "ip": f"10.0.0.{few}",
            "longs": [few, few + 1],
            "doubles": [few / 4, few / 2],
            "words": _WORDS[few : few + 3],
            "many": _WORDS[: few + 3],
            "places": places,
            "within": {"gte": few, "lte": few + 3},
        }
        | dict.fromkeys(_MEASURES, unit)
        | (nested if number >= _DOCUMENTS else {})
    )


def _walk(index: Index, files: GraphFiles) -> None:
    """Graphs that were built and that were read, with each kind of codes. Searches need larger ones."""
    for leaf in index.searcher().leaves:
        for job in missing_graphs([leaf], index.mapping, rows_min=1):
            column = leaf.segment.vectors(job.path)
            assert column is not None
            graph = build_graph(column.rows, job.shape)
            assert graph is not None
            for bits in BITS:
                built = replace(graph, codes=Codes.of(column.rows, job.shape.similarity, bits))
                saved = files.save(leaf.segment.name, job.path, built, column.rows)
                for one in (built, saved):
                    _ask(one)


def _ask(graph: Graph) -> None:
    vector = np.ones(4, np.float32)
    for allowed in (None, RowSet.every(graph.size)):
        graph.walk(vector, 10, allowed, graph.size)
        graph.scan(vector, 10, allowed)
