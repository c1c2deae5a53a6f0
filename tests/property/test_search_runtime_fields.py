"""Runtime fields answer as indexed fields with the same values do."""

from random import Random
from typing import Any

import orjson
import pytest

from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping
from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.segments.operations import Action, Operation
from tests.unit.search.catalog.catalogs import Commands

TYPES = {
    "l": "long",
    "d": "double",
    "k": "keyword",
    "b": "boolean",
    "t": "date",
    "i": "ip",
    "g": "geo_point",
}
RUNTIME = {name: {"type": kind} for name, kind in TYPES.items()}
SCRIPTED = {
    "l": "for (x in params._source.l) { emit(x) }",
    "d": "for (x in params._source.l) { emit(x / 2.0) }",
    "k": "emit('k' + doc['n'].value % 3)",
    "b": "emit(doc['n'].value % 2 == 0)",
    "t": "emit(doc['n'].value * 86400000L)",
    "i": "emit('10.0.0.' + doc['n'].value)",
    "g": "emit(doc['n'].value, 1.5)",
}
Body = dict[str, Any]


def document(random: Random, number: int) -> Body:
    numbers = sorted({random.randrange(9) for _ in range(random.randrange(3))})
    return {
        "n": number,
        "l": numbers,
        "d": [one / 2 for one in numbers],
        "k": f"k{number % 3}",
        "b": number % 2 == 0,
        "t": number * 86_400_000,
        "i": f"10.0.0.{number}",
        "g": {"lat": number, "lon": 1.5},
    }


def filled(documents: list[Body], mappings: Body) -> Index:
    commands = Commands()
    commands.create("i", {"mappings": mappings})
    for start in range(0, len(documents), 6):
        writes = [
            DocumentWrite("i", Operation(Action.INDEX, str(one["n"]), orjson.dumps(one)))
            for one in documents[start : start + 6]
        ]
        commands.write(*writes, refresh=True)
    commands.write(DocumentWrite("i", Operation(Action.DELETE, "3")), refresh=True)
    index = commands.catalog.find("i")
    assert index is not None
    return index


def answer(index: Index, body: Body) -> Body:
    return prepare(body, [Target(index.searcher(), index.context(0))], Searchers()).run()


def query(random: Random) -> Body:
    some = random.randrange(9)
    leaves: list[Body] = [
        {"term": {"l": some}},
        {"terms": {"l": [some, 2]}},
        {"range": {"d": {"gte": some / 2}}},
        {"range": {"t": {"lt": f"1970-01-0{1 + some % 9}"}}},
        {"term": {"k": f"k{some % 3}"}},
        {"prefix": {"k": "k"}},
        {"wildcard": {"k": "*1"}},
        {"term": {"b": True}},
        {"term": {"i": "10.0.0.0/30"}},
        {"range": {"i": {"gt": f"10.0.0.{some}"}}},
        {"exists": {"field": "l"}},
        {"geo_bounding_box": {"g": {"top": some, "left": 0, "bottom": 0, "right": 2}}},
        {"geo_distance": {"distance": "300km", "g": {"lat": some, "lon": 1.5}}},
        {"script": {"script": "doc['l'].size() > 0 && doc['l'].value > 2"}},
    ]
    chosen = random.sample(leaves, 2)
    kind = random.choice(["filter", "should", "must_not"])
    return {"constant_score": {"filter": {"bool": {kind: chosen}}}}


def bodies(random: Random) -> Body:
    name = random.choice("ldkbti")
    aggregations = {
        "terms": {"terms": {"field": name, "size": 30}},
        "missing": {"missing": {"field": "l"}},
        "stats": {"stats": {"field": "d"}, "meta": {"a": 1}},
        "days": {"date_histogram": {"field": "t", "calendar_interval": "day"}},
        "bounds": {"geo_bounds": {"field": "g"}},
    }
    return {
        "query": query(random),
        "size": 20,
        "sort": [{name: random.choice(["asc", "desc"])}, {"n": "asc"}],
        "_source": False,
        "fields": [{"field": "t", "format": "yyyy-MM-dd"}, "k", "b"],
        "docvalue_fields": ["l", "d", "i"],
        "aggs": {one: aggregations[one] for one in random.sample(sorted(aggregations), 2)},
    }


@pytest.mark.parametrize("seed", range(6))
def test_as_indexed_fields(seed: int) -> None:
    random = Random(seed)
    documents = [document(random, number) for number in range(15)]
    own = {"n": {"type": "long"}}
    indexed = filled(documents, {"dynamic": False, "properties": own | RUNTIME})
    scripted = {name: {"type": TYPES[name], "script": script} for name, script in SCRIPTED.items()}
    plain = filled(documents, {"dynamic": False, "properties": own})
    others = [
        (filled(documents, {"dynamic": False, "properties": own, "runtime": RUNTIME}), {}),
        (plain, RUNTIME),
        (plain, scripted),
    ]
    for _ in range(12):
        body = bodies(random)
        expected = answer(indexed, body)
        for index, section in others:
            assert answer(index, body | {"runtime_mappings": section}) == expected, body


def test_one_field_reads_another() -> None:
    index = filled([{"n": 1}, {"n": 5}], {"properties": {"n": {"type": "long"}}})
    section = {
        "twice": {
            "type": "long",
            "script": {"source": "emit(doc['n'].value * params.by)", "params": {"by": 2}},
        },
        "more": {"type": "long", "script": "emit(doc['twice'].value + 1)"},
    }
    body = {"runtime_mappings": section, "query": {"range": {"more": {"gt": 5}}}, "fields": ["more", "twice"]}
    (hit,) = answer(index, body)["hits"]["hits"]
    assert hit["fields"] == {"more": [11], "twice": [10]}
    shadowing = {"n": {"type": "keyword", "script": "emit('a text')"}}
    hits = answer(index, {"runtime_mappings": shadowing, "query": {"term": {"n": "a text"}}})["hits"]["hits"]
    assert [hit["_id"] for hit in hits] == ["1", "5"]


def test_mappings_keep_show_and_remove_them() -> None:
    commands = Commands()
    commands.create(
        "i", {"mappings": {"runtime": {"a": {"type": "long", "script": "emit(1)"}, "b": RUNTIME["t"]}}}
    )
    index = commands.catalog.find("i")
    assert index is not None
    shown = {
        "a": {"type": "long", "script": {"source": "emit(1)", "lang": "painless"}},
        "b": {"type": "date"},
    }
    assert index.mapping.as_json() == {"runtime": shown}
    again = Mapping.of(index.mapping.as_json(), index.analyzers)
    assert again.as_json() == index.mapping.as_json()
    merged = again.merged({"runtime": {"a": None, "c": {"type": "keyword"}}})
    assert merged.as_json() == {"runtime": {"b": {"type": "date"}, "c": {"type": "keyword"}}}
    assert merged.names("*") == ["b", "c"]
    _, after = merged.parse({"c": "x", "other": 1})
    assert set(after.as_json()["properties"]) == {"other"}


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"type": "text"}, "No handler for type [text] declared on runtime field [a]"),
        ({"script": "emit(1)"}, "No type specified for runtime field [a]"),
        (5, "Expected map for runtime field [a] definition"),
        (
            {"type": "long", "format": "yyyy"},
            "unknown parameter [format] on runtime field [a] of type [long]",
        ),
        ({"type": "long", "script": "emit("}, "compile error"),
        ({"type": "long", "script": "emit('x')"}, "runtime field [a] of type [long] cannot emit [x]"),
        ({"type": "long", "script": "emit(2.5)"}, "cannot emit [2.5]"),
        ({"type": "geo_point", "script": "emit(91.0, 0.0)"}, "cannot emit"),
        ({"type": "ip", "script": "emit('x')"}, "'x' is not an IP string literal."),
        ({"type": "long", "script": "emit(doc['a'].value)"}, "resolving runtime fields: a -> a"),
        ({"type": "long", "script": "for (int j = 0; j < 101; ++j) { emit(j) }"}, "runtime error"),
        ({"type": "long", "script": "while (true) { emit(1) }"}, "runtime error"),
    ],
)
def test_what_is_refused(field: Any, reason: str) -> None:
    index = filled([{"n": 1}], {"properties": {"n": {"type": "long"}}})
    with pytest.raises(SearchError) as raised:
        answer(index, {"runtime_mappings": {"a": field}, "query": {"exists": {"field": "a"}}})
    assert reason in raised.value.reason
