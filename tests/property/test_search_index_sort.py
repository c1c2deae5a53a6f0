"""An index with `index.sort.*` beside one without: the same documents, in the order that the settings say."""

from random import Random
from typing import Any

import orjson
import pytest

from graphdb.log.file_system import RealFileSystem
from graphdb.search.aggregations import leading_rows as leading
from graphdb.search.aggregations.composite import CompositeSource
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.catalog.files import CatalogFiles
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.visible_catalog import VisibleIndex
from graphdb.search.leaf_reader import Leaf
from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.results import early_end
from graphdb.search.results.early_end import may_end_early
from graphdb.search.segments.operations import Action, Operation
from tests.support.search_apart import search_apart, shards_of
from tests.unit.search.catalog.catalogs import Commands

FIELDS = {
    "u": {"type": "keyword"},  # one for each document: breaks ties
    "t": {"type": "text"},
    "k": {"type": "keyword"},
    "s": {"type": "keyword"},
    "n": {"type": "integer"},
    "d": {"type": "date"},
    "f": {"type": "double"},
    "o": {"type": "boolean"},
    "e": {"type": "date_nanos"},
    "l": {"type": "unsigned_long"},
    "v": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"},
    "c": {"type": "nested", "properties": {"k": {"type": "keyword"}, "n": {"type": "integer"}}},
}
SORTED_BY = ("k", "s", "n", "d", "f", "o", "e", "l")
WORDS = ["red", "green", "blue", "dark", "light"]


def document(random: Random, doc_id: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "t": " ".join(random.choices(WORDS, k=random.randrange(1, 6))),
        "k": random.sample("abcd", k=random.randrange(3)),
        "s": random.choice("abcdefgh"),
        "n": random.sample(range(6), k=random.randrange(3)),
        "d": random.randrange(5) * 1_000,
        "f": random.choice([-1.5, 0.0, 1e-30, 2.25]),
        "o": random.random() < 0.5,
        "e": f"2020-01-01T00:00:00.00000000{random.randrange(4)}Z",
        "l": 2**63 + random.randrange(-2, 2),
        "v": [random.random(), 1],
        "c": [{"k": random.choice("xyz"), "n": random.randrange(5)} for _ in range(random.randrange(3))],
        "_allow_sids": ["s"],
    }
    kept = {name: value for name, value in made.items() if random.random() < 0.8}
    return {"u": doc_id, **kept}


def write(random: Random) -> DocumentWrite:
    doc_id = str(random.randrange(60))
    if random.random() < 0.15:
        return DocumentWrite("i", Operation(Action.DELETE, doc_id))
    if random.random() < 0.2:
        body = {"doc": {"n": random.randrange(6)}, "upsert": document(random, doc_id)}
        return DocumentWrite("i", Operation(Action.UPDATE, doc_id, orjson.dumps(body)))
    body = document(random, doc_id)
    return DocumentWrite("i", Operation(Action.INDEX, doc_id, orjson.dumps(body)))


def index_sort(random: Random) -> dict[str, Any]:
    paths = random.sample(SORTED_BY, k=random.randrange(1, 4))
    choices = {"order": ("asc", "desc"), "mode": ("min", "max"), "missing": ("_last", "_first")}
    sort: dict[str, Any] = {"field": paths}
    for name, values in choices.items():
        if random.random() < 0.7:
            sort[name] = [random.choice(values) for _ in paths]
    return sort


def sort_keys(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What a search sorts by to get the order of the index."""
    keys = []
    for number, path in enumerate(settings["field"]):
        order = settings.get("order", ["asc"] * 3)[number]
        mode = settings["mode"][number] if "mode" in settings else "max" if order == "desc" else "min"
        missing = settings.get("missing", ["_last"] * 3)[number]
        keys.append({path: {"order": order, "mode": mode, "missing": missing}})
    return keys


def filled(random: Random, sort: dict[str, Any], shards: int) -> tuple[Commands, Commands]:
    """(sorted, not sorted) by the same commands; refreshed and merged at random."""
    pair = Commands(), Commands()
    for commands, settings in zip(pair, ({"sort": sort}, {}), strict=True):
        settings = {"index": {"number_of_shards": shards, **settings}}
        commands.create("i", {"settings": settings, "mappings": {"properties": FIELDS}})
    for _ in range(random.randrange(1, 8)):
        batch = [write(random) for _ in range(random.randrange(1, 40))]
        outcomes = []
        for commands in pair:
            results = commands.write(*batch, refresh=random.random() < 0.7)
            outcomes.append([(one.result.outcome, one.result.version, one.result.seq_no) for one in results])
        assert outcomes[0] == outcomes[1]
        overtaken_merge(random, pair[0])
    for commands in pair:
        found(commands).shards.refresh()
    return pair


def overtaken_merge(random: Random, commands: Commands) -> None:
    """A merge during which documents are changed, too."""
    index = found(commands)
    plan = index.shards.plan_merge(random.choice([1, 2])) if random.random() < 0.5 else None
    if plan is None:
        return
    merged = plan.merged()
    if random.random() < 0.5:
        index.shards.refresh()
    index.shards.adopt_merge(plan, merged)


def found(commands: Commands) -> Index:
    index = commands.catalog.find("i")
    assert index is not None
    return index


def searched(index: Index, body: dict[str, Any]) -> dict[str, Any]:
    target = Target(index.searcher(), index.context(0))
    return prepare(body, [target], Searchers()).run()


def rows(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(hit["_id"], hit.get("_source"), hit.get("sort")) for hit in answer["hits"]["hits"]]


def in_order(index: Index, sort: dict[str, Any]) -> None:
    """Each leaf alone, sorted by what the index is: its documents stay where they are."""
    keys = sort_keys(sort)
    for leaf in index.searcher().leaves:
        assert [field.path for field in leaf.segment.order] == sort["field"]
    everything = rows(searched(index, {"size": 1000, "sort": [*keys, {"_doc": "asc"}], "min_score": 0}))
    places = {row[0]: place for place, row in enumerate(everything)}
    for leaf in index.searcher().leaves:
        ids = [leaf.segment.doc_id(int(doc)) for doc in leaf.roots.nonzero()[0]]
        assert [places[doc_id] for doc_id in ids] == sorted(places[doc_id] for doc_id in ids)
        check_nesting(leaf)


def check_nesting(leaf: Leaf) -> None:
    """Nested documents stand before the one that they are in, and have its values."""
    segment = leaf.segment
    if segment.parents is None:
        return
    for doc in range(segment.size):
        parent = int(segment.parents[doc])
        if parent >= 0:
            assert parent > doc
            assert segment.doc_id(parent) == segment.doc_id(doc)
            assert all(segment.parents[between] >= 0 for between in range(doc, parent))


def request(random: Random, sort: dict[str, Any]) -> dict[str, Any]:
    queries: list[dict[str, Any]] = [
        {"match_all": {}},
        {"term": {"k": random.choice("abcd")}},
        {"match": {"t": random.choice(WORDS)}},
        {"match_phrase": {"t": "red green"}},
        {"range": {"n": {"gte": random.randrange(6)}}},
        {"bool": {"filter": [{"term": {"k": "a"}}], "must_not": [{"match": {"t": "dark"}}]}},
        {"nested": {"path": "c", "query": {"term": {"c.k": "x"}}}},
        {"knn": {"field": "v", "query_vector": [0.5, 1], "k": 60, "num_candidates": 60}},
        {"ids": {"values": [str(random.randrange(60)) for _ in range(20)]}},
    ]
    keys = sort_keys(sort)
    keys = keys[: random.randrange(1, len(keys) + 1)]
    return {
        "query": random.choice(queries),
        "sort": keys,
        "size": random.randrange(1, 12),
        "from": random.choice([0, 0, 3]),
        "track_total_hits": random.choice([True, False, 1, 7, 1_000]),
        "_source": ["u", "n", "k"],
    }


def check_searches(random: Random, sort: dict[str, Any], ordered: Index, plain: Index) -> None:
    """Pages of hits of which equal ones may come in another order, and those behind them."""
    for _ in range(6):
        body = request(random, sort)
        answers = [searched(index, body) for index in (ordered, plain)]
        apart = search_apart(shards_of(ordered), body)
        assert orjson.loads(orjson.dumps(apart["hits"])) == orjson.loads(orjson.dumps(answers[0]["hits"]))
        assert answers[0]["hits"].get("total") == answers[1]["hits"].get("total")
        assert [row[2] for row in rows(answers[0])] == [row[2] for row in rows(answers[1])]
        whole = searched(ordered, {**body, "from": 0, "size": 1000, "min_score": 0})
        first, size = body["from"], body["size"]
        assert rows(answers[0]) == rows(whole)[first : first + size]
        if rows(whole):
            after = random.choice(rows(whole))[2]
            behind = {**body, "from": 0, "search_after": after}
            later = [row for row in rows(whole) if row[2] == after]
            last = rows(whole).index(later[-1]) + 1
            assert rows(searched(ordered, behind)) == rows(whole)[last : last + size]
            assert searched(ordered, behind)["hits"].get("total") == answers[1]["hits"].get("total")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shards", [1, 3])
def test_sorted_and_not(seed: int, shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_end, "_SPARE", 0)
    random = Random(seed)
    sort = index_sort(random)
    pair = filled(random, sort, shards)
    ordered, plain = map(found, pair)
    in_order(ordered, sort)
    for doc_id in map(str, range(60)):
        assert ordered.shards.get(doc_id) == plain.shards.get(doc_id)
    assert sorted(ordered.shards.ids()) == sorted(plain.shards.ids())
    check_searches(random, sort, ordered, plain)
    for sids in (frozenset[str](), frozenset({"s"})):
        check_searches(random, sort, VisibleIndex(ordered, sids), VisibleIndex(plain, sids))
    while (plan := ordered.shards.plan_merge(1)) is not None:
        ordered.shards.adopt_merge(plan, plan.merged())
    in_order(ordered, sort)
    check_searches(random, sort, ordered, plain)


@pytest.mark.parametrize("seed", range(4))
def test_an_order_stays_when_an_index_is_opened_again(seed: int, tmp_path: Any) -> None:
    random = Random(seed)
    sort = index_sort(random)
    commands, _ = filled(random, sort, 2)
    listed = rows(searched(found(commands), {"size": 100}))
    files = CatalogFiles(RealFileSystem(), str(tmp_path))
    files.save(commands.catalog, commands.log_index)
    loaded = CatalogFiles(RealFileSystem(), str(tmp_path)).load()
    assert loaded is not None
    commands.catalog = loaded[0]
    assert rows(searched(found(commands), {"size": 100})) == listed
    commands.write(*(write(random) for _ in range(30)), refresh=True)
    in_order(found(commands), sort)
    index = found(commands)
    while (plan := index.shards.plan_merge(1)) is not None:
        index.shards.adopt_merge(plan, plan.merged())
    in_order(index, sort)


def test_only_a_prefix_of_the_order_ends_early() -> None:
    commands = Commands()
    sort = {"field": ["n", "k"], "order": ["desc", "asc"]}
    commands.create("i", {"settings": {"index": {"sort": sort}}, "mappings": {"properties": FIELDS}})
    commands.write(DocumentWrite("i", Operation(Action.INDEX, "1", b'{"n": 1}')), refresh=True)
    index = found(commands)
    target = Target(index.searcher(), index.context(0))

    def ends(*keys: Any, **more: Any) -> bool:
        prepared = prepare({"sort": list(keys), **more}, [target], Searchers())
        return may_end_early(prepared.request, prepared.scope)

    assert ends({"n": "desc"})
    assert ends({"n": "desc"}, "k")
    assert ends("_doc")
    assert ends({"n": "desc"}, "_doc")
    assert ends({"n": "desc"}, "k", "_shard_doc")
    assert not ends("n")
    assert not ends("k")
    assert not ends({"n": {"order": "desc", "missing": "_first"}})
    assert not ends({"n": {"order": "desc", "mode": "min"}})
    assert not ends({"n": "desc"}, {"k": "desc"})
    assert not ends({"n": {"order": "desc", "missing": 3}})
    assert not ends({"n": "desc"}, "k", "u")
    assert not ends({"n": "desc"}, {"_doc": "desc"})
    assert not ends({"n": "desc"}, track_scores=True)
    assert not ends({"n": "desc"}, size=0)
    assert not ends({"n": "desc"}, aggs={"a": {"max": {"field": "n"}}})
    assert not ends({"n": "desc"}, post_filter={"term": {"k": "a"}})
    shadowed = {"n": {"type": "long", "script": "emit(1)"}}
    assert not ends({"n": "desc"}, runtime_mappings=shadowed)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_what_comes_behind_is_found_among_many(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_end, "_FEW", 0)
    monkeypatch.setattr(early_end, "_AT_ONCE", 3)
    random, commands = Random(order), Commands()
    sort = {"field": ["n", "k"], "order": [order, "desc"]}
    commands.create("i", {"settings": {"index": {"sort": sort}}, "mappings": {"properties": FIELDS}})
    commands.write(*(write(random) for _ in range(300)), refresh=True)
    commands.write(*(write(random) for _ in range(20)), refresh=True)
    index = found(commands)
    for keys in (sort_keys(sort), sort_keys(sort)[:1], [*sort_keys(sort), "_doc"], ["_doc"]):
        whole = rows(searched(index, {"size": 100, "sort": keys, "min_score": 0}))
        for after in [row[2] for row in whole]:
            last = max(place for place, row in enumerate(whole) if row[2] == after) + 1
            page = searched(index, {"size": 5, "sort": keys, "search_after": after})
            assert rows(page) == whole[last : last + 5]
            assert page["hits"]["total"]["value"] == len(whole)


def composite(random: Random, sort: dict[str, Any]) -> dict[str, Any]:
    """Its first source is mostly what the index is sorted by, mostly in that direction. Not `l`: buckets know
    such numbers as doubles, and pages of neighbours that are one double do not end.
    """
    path = sort["field"][0] if random.random() < 0.9 and sort["field"][0] != "l" else "s"
    order = sort.get("order", ["asc"])[0] if random.random() < 0.9 else "asc"
    sources: list[dict[str, Any]] = [{"first": {"terms": {"field": path, "order": order}}}]
    if random.random() < 0.7:
        sources.append({"second": {"terms": {"field": "o", "order": random.choice(["asc", "desc"])}}})
    if random.random() < 0.2:
        sources[0]["first"]["terms"]["missing_bucket"] = True
    query = random.choice([{"match_all": {}}, {"range": {"n": {"gte": 2}}}, {"term": {"k": "a"}}])
    aggregation = {"composite": {"sources": sources, "size": random.randrange(1, 6)}}
    nested = {"aggs": {"m": {"max": {"field": "d"}}}}
    return {"size": 0, "query": query, "aggs": {"c": {**aggregation, **nested}}}


@pytest.mark.parametrize("seed", range(30))
def test_pages_of_composites_are_those_of_an_index_without_an_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leading, "_FEW", 0)
    monkeypatch.setattr(leading, "_FIRST", 1)
    monkeypatch.setattr(leading, "_GROWTH", 2)
    random = Random(seed)
    sort = index_sort(random)
    ordered, plain = map(found, filled(random, sort, random.choice([1, 2])))
    for index, twin in (
        (ordered, plain),
        (VisibleIndex(ordered, frozenset()), VisibleIndex(plain, frozenset())),
    ):
        for _ in range(4):
            body = composite(random, sort)
            for _ in range(200):
                page = searched(index, body)["aggregations"]["c"]
                assert page == searched(twin, body)["aggregations"]["c"]
                if "after_key" not in page:
                    break
                body["aggs"]["c"]["composite"]["after"] = page["after_key"]
            else:
                pytest.fail("the pages do not end")


def test_a_page_of_a_composite_reads_the_first_documents_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "_FEW", 0)
    commands = Commands()
    sort = {"field": "s", "order": "desc"}
    commands.create("i", {"settings": {"index": {"sort": sort}}, "mappings": {"properties": FIELDS}})
    bodies = [orjson.dumps({"s": f"{number:03}"}) for number in range(300)]
    writes = [
        DocumentWrite("i", Operation(Action.INDEX, str(number), body)) for number, body in enumerate(bodies)
    ]
    commands.write(*writes, refresh=True)
    index = found(commands)
    sizes: list[int] = []
    keys = CompositeSource.keys

    def counted(own: CompositeSource, scope: Any, docs: Any) -> Any:
        sizes.append(len(docs))
        return keys(own, scope, docs)

    monkeypatch.setattr(CompositeSource, "keys", counted)
    sources = [{"s": {"terms": {"field": "s", "order": "desc"}}}]
    pages = {"composite": {"sources": sources, "size": 5, "after": {"s": "100"}}}
    page = searched(index, {"size": 0, "aggs": {"c": pages}})["aggregations"]["c"]
    assert [bucket["key"]["s"] for bucket in page["buckets"]] == ["099", "098", "097", "096", "095"]
    assert sizes == [20]
