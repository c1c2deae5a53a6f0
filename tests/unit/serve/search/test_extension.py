"""`_ext` over HTTP, on indexes in memory and a graph in the same process."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pyoxigraph import RdfFormat, parse

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import reason_of

GRAPH = """
PREFIX : <urn:> PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
INSERT DATA {
  :d1 :by :anna ; :in :berlin ; :note "one" .
  :d2 :by :ben ; :in :paris .
  :d3 :by :anna ; :in :paris .
  :anna :name "Anna" . :ben :name "Ben", "Benjamin" .
  :x1 :cites :anna . :x2 :cites :anna . :x3 :cites :anna . :x4 :cites :ben .
  :car skos:prefLabel "car" ; skos:altLabel "automobile", "motor vehicle" .
}"""
DOCS = {
    "urn:d1": {"t": "red car", "who": "urn:anna", "v": [1.0, 0.0], "text": "urn:anna"},
    "urn:d2": {"t": "red automobile", "who": ["urn:ben", "urn:nobody"], "v": [0.9, 0.1], "text": "urn:ben"},
    "urn:d3": {"t": "blue motor vehicle red red red", "v": [0.0, 1.0]},
    "urn:d4": {"t": "green motor", "who": "no iri", "v": [0.1, 0.9]},
    'x"} ; { ?s ?p ?o } #': {"t": "red trap", "v": [0.5, 0.5]},
}
MAPPING = {
    "properties": {
        "t": {"type": "text"},
        "who": {"type": "keyword"},
        "text": {"type": "text"},
        "v": {"type": "dense_vector", "dims": 2, "similarity": "cosine"},
    }
}
BY = "SELECT ?name WHERE { <{id}> <urn:by>/<urn:name> ?name } ORDER BY ?name"
IN_PARIS = "ASK { <{id}> <urn:in> <urn:paris> }"
SYNONYMS = """
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
SELECT ?synonym WHERE { ?c skos:prefLabel|skos:altLabel "{term}" ; skos:prefLabel|skos:altLabel ?synonym }"""


@pytest.fixture
def graph() -> MemoryGraph:
    return MemoryGraph(GRAPH)


@pytest.fixture
def http(graph: MemoryGraph) -> Iterator[httpx.Client]:
    node = MemorySearch(graph)
    with (
        serving(build_search_app(node, Settings())) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        for name in ("docs", "more"):
            client.put(f"/{name}", json={"mappings": MAPPING}).raise_for_status()
        for doc_id, source in DOCS.items():
            client.put(f"/docs/_doc/{_quoted(doc_id)}", json=source).raise_for_status()
        client.put("/more/_doc/urn:d3?refresh=true", json={"t": "red copy"}).raise_for_status()
        client.post("/docs/_refresh").raise_for_status()
        yield client


def _quoted(doc_id: str) -> str:
    return "".join(f"%{byte:02X}" for byte in doc_id.encode())


def asked(http: httpx.Client, extension: Any, path: str = "/docs/_search", **body: Any) -> dict[str, Any]:
    answer = http.post(path, json={**body, "_ext": extension})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [hit["_id"] for hit in found["hits"]["hits"]]


def test_hits_are_enriched_by_one_query(http: httpx.Client, graph: MemoryGraph) -> None:
    graph.asked.clear()
    found = asked(http, {"sparql_enrich": {"query": BY}})
    names = {
        hit["_id"]: [row["name"]["value"] for row in hit["_ext"]["sparql_enrich"]]
        for hit in found["hits"]["hits"]
    }
    assert names == {
        "urn:d1": ["Anna"],
        "urn:d2": ["Ben", "Benjamin"],
        "urn:d3": ["Anna"],
        "urn:d4": [],
        'x"} ; { ?s ?p ?o } #': [],
    }
    assert len(graph.asked) == 1
    first = next(hit for hit in found["hits"]["hits"] if hit["_id"] == "urn:d1")
    assert first["_ext"] == {"sparql_enrich": [{"name": {"type": "literal", "value": "Anna"}}]}


def test_another_name_for_the_placeholder_and_a_string(http: httpx.Client) -> None:
    query = 'SELECT ?x WHERE { ?x <urn:note> ?n FILTER(STR(?x) = "{doc}") }'
    found = asked(http, {"sparql_enrich": {"query": query, "bind": "doc"}})
    assert {hit["_id"]: len(hit["_ext"]["sparql_enrich"]) for hit in found["hits"]["hits"]}["urn:d1"] == 1


def test_a_filter_counts_before_everything_else(http: httpx.Client, graph: MemoryGraph) -> None:
    graph.asked.clear()
    found = asked(
        http,
        {"sparql_filter": {"ask": IN_PARIS}},
        query={"match": {"t": "red"}},
        size=1,
        aggs={"who": {"terms": {"field": "who"}}},
    )
    assert found["hits"]["total"] == {"value": 2, "relation": "eq"}
    assert ids(found) == ["urn:d3"]
    assert found["hits"]["max_score"] == found["hits"]["hits"][0]["_score"]
    assert {one["key"] for one in found["aggregations"]["who"]["buckets"]} == {"urn:ben", "urn:nobody"}
    assert len(graph.asked) == 1


def test_a_filter_over_several_indexes(http: httpx.Client) -> None:
    found = asked(
        http, {"sparql_filter": {"ask": IN_PARIS}}, "/docs,more/_search", query={"match": {"t": "red"}}
    )
    assert sorted((hit["_index"], hit["_id"]) for hit in found["hits"]["hits"]) == [
        ("docs", "urn:d2"),
        ("docs", "urn:d3"),
        ("more", "urn:d3"),
    ]


def test_a_filter_comes_before_nearest_vectors(http: httpx.Client) -> None:
    knn = {"field": "v", "query_vector": [1.0, 0.0], "k": 2, "num_candidates": 10}
    found = asked(http, {"sparql_filter": {"ask": IN_PARIS}}, knn=knn)
    assert ids(found) == ["urn:d2", "urn:d3"]
    both = asked(http, {"sparql_filter": {"ask": IN_PARIS}}, knn=knn, query={"match": {"t": "red"}})
    assert sorted(ids(both)) == ["urn:d2", "urn:d3"]
    retriever = {"rrf": {"retrievers": [{"knn": knn}, {"standard": {"query": {"match": {"t": "red"}}}}]}}
    assert sorted(ids(asked(http, {"sparql_filter": {"ask": IN_PARIS}}, retriever=retriever))) == [
        "urn:d2",
        "urn:d3",
    ]


def test_synonyms_are_further_matches(http: httpx.Client) -> None:
    expand = {"sparql_expand": {"synonym_query": SYNONYMS, "field": "t"}}
    assert ids(asked(http, {}, query={"match": {"t": "car"}})) == ["urn:d1"]
    found = asked(http, expand, query={"bool": {"must": [{"match": {"t": {"query": "car"}}}]}})
    assert sorted(ids(found)) == ["urn:d1", "urn:d2", "urn:d3"]
    other = asked(http, expand, query={"match": {"who": "car"}})
    assert ids(other) == []
    pairs = "SELECT ?term ?synonym WHERE { ?c <http://www.w3.org/2004/02/skos/core#prefLabel> ?term ; "
    pairs += "<http://www.w3.org/2004/02/skos/core#altLabel> ?synonym }"
    found = asked(
        http, {"sparql_expand": {"synonym_query": pairs, "field": "t"}}, query={"match": {"t": "Car"}}
    )
    assert sorted(ids(found)) == ["urn:d1", "urn:d2", "urn:d3"]


ONE_COLUMN = "SELECT ?word { <urn:car> <http://www.w3.org/2004/02/skos/core#altLabel> ?word }"


@pytest.mark.parametrize(
    "query",
    [
        ONE_COLUMN,
        ONE_COLUMN.replace("?word {", "* {"),
        ONE_COLUMN.replace("?word {", "(UCASE(?word) AS ?term) {"),
        'SELECT ?synonym { VALUES ?synonym { "automobile" "vehicle"@en 7 <urn:no> UNDEF } }',
        'SELECT * {} VALUES ?w { "automobile" "motor vehicle" }',
        ONE_COLUMN.replace("<urn:car>", '?c <http://www.w3.org/2004/02/skos/core#prefLabel> "{term}" . ?c'),
    ],
)
def test_one_column_is_synonyms_of_what_was_asked(http: httpx.Client, query: str) -> None:
    expand = {"sparql_expand": {"synonym_query": query, "field": "t"}}
    found = asked(http, expand, query={"match": {"t": {"query": "car", "operator": "and"}}})
    assert sorted(ids(found)) == ["urn:d1", "urn:d2", "urn:d3"]
    if "{term}" not in query:  # all of the text, and so whatever it is
        found = asked(http, expand, query={"match": {"t": {"query": "green trap", "operator": "and"}}})
        assert sorted(ids(found)) == ["urn:d2", "urn:d3"]
    assert ids(asked(http, expand, query={"match": {"who": "car"}})) == []
    assert ids(asked(http, expand, query={"match_phrase": {"t": "car"}})) == ["urn:d1"]


def test_a_synonym_query_without_solutions_expands_nothing(http: httpx.Client) -> None:
    for query in (ONE_COLUMN.replace("altLabel", "none"), "SELECT ?x { OPTIONAL { <urn:no> <urn:no> ?x } }"):
        expand = {"sparql_expand": {"synonym_query": query, "field": "t"}}
        assert ids(asked(http, expand, query={"match": {"t": "car"}})) == ["urn:d1"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT ?a ?b { ?a <urn:name> ?b }", "?term and ?synonym, or any"),
        ("SELECT ?term ?word { ?a <urn:name> ?term, ?word }", "found [?term, ?word]"),
        ("SELECT * { <urn:anna> <urn:name> 'Anna' }", "found [none]"),
        ("SELECT * { <urn:anna> <urn:name> '{term}' }", "found [none]"),
        ("SELECT ?c { ?c <urn:name> ?n }", "[?c] of [synonym_query] must be literals"),
        (
            "SELECT ?c { ?x <urn:cites> ?c FILTER('{term}' != '') }",
            "[?c] of [synonym_query] must be literals",
        ),
        ("SELECT ?term ?synonym { ?term <urn:name> ?synonym }", "[?term, ?synonym] of [synonym_query]"),
        ("ASK { ?s ?p ?o }", "must be SELECT"),
    ],
)
def test_a_synonym_query_that_cannot_be_used_is_refused(http: httpx.Client, query: str, words: str) -> None:
    expand = {"_ext": {"sparql_expand": {"synonym_query": query, "field": "t"}}}
    body = expand | {"query": {"match": {"t": "car"}}}
    status, kind, reason = reason_of(http.post("/docs/_search", json=body))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason.startswith("[sparql_expand] ")
    assert words in reason
    if "literals" not in words and "[?term, ?synonym]" not in words:  # told before the graph is asked
        assert http.post("/docs/_search", json=expand).status_code == 400


def test_synonyms_keep_the_boost(http: httpx.Client) -> None:
    expand = {"sparql_expand": {"synonym_query": SYNONYMS, "field": "t"}}
    plain = asked(http, expand, query={"match": {"t": {"query": "car"}}})
    thrice = asked(http, expand, query={"match": {"t": {"query": "car", "boost": 3}}})
    for one, other in zip(plain["hits"]["hits"], thrice["hits"]["hits"], strict=True):
        assert other["_score"] == pytest.approx(3 * one["_score"], rel=1e-5)


@pytest.mark.parametrize("field", ["who", "text"])
def test_important_resources_rank_higher(http: httpx.Client, field: str) -> None:
    boost = {"kg_boost": {"entity_field": field, "boost_factor": 5, "min_pagerank": 0.9}}
    plain = {hit["_id"]: hit["_score"] for hit in asked(http, {}, query={"match_all": {}})["hits"]["hits"]}
    found = asked(http, boost, query={"match_all": {}}, size=1)
    assert [(hit["_id"], hit["_score"]) for hit in found["hits"]["hits"]] == [("urn:d1", 5 * plain["urn:d1"])]
    assert found["hits"]["max_score"] == 5.0
    assert found["hits"]["total"]["value"] == 5


def test_ids_can_be_what_is_important(http: httpx.Client) -> None:
    boost = {"kg_boost": {"entity_field": "_id", "boost_factor": 2, "min_pagerank": 0.01}}
    scores = {hit["_id"]: hit["_score"] for hit in asked(http, boost)["hits"]["hits"]}
    assert scores == {"urn:d1": 2, "urn:d2": 2, "urn:d3": 2, "urn:d4": 1, 'x"} ; { ?s ?p ?o } #': 1}


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        ("turtle", RdfFormat.TURTLE),
        ("N-Triples", RdfFormat.N_TRIPLES),
        ("json-ld", RdfFormat.JSON_LD),
        ("trig", RdfFormat.TRIG),
        ("nquads", RdfFormat.N_QUADS),
        ("text/turtle; charset=utf-8", RdfFormat.TURTLE),
    ],
)
def test_hits_as_rdf(http: httpx.Client, name: str, syntax: RdfFormat) -> None:
    found = asked(http, {"format": name}, query={"match": {"t": "car"}})
    assert found["_ext"]["format"] == name
    triples = {(str(one.subject), str(one.predicate)) for one in parse(found["_ext"]["data"], syntax)}
    assert triples == {("<urn:d1>", "<urn:by>"), ("<urn:d1>", "<urn:in>"), ("<urn:d1>", "<urn:note>")}
    assert list(parse(asked(http, {"format": name}, size=0)["_ext"]["data"], syntax)) == []


@pytest.mark.parametrize(
    ("extension", "kind", "words"),
    [
        ({"sparql": {}}, "parsing_exception", "unknown field [sparql], it has [sparql_enrich, sparql_filter"),
        ([], "parsing_exception", "[_ext] must be an object"),
        ({"sparql_enrich": "SELECT"}, "parsing_exception", "[sparql_enrich] must be an object"),
        ({"sparql_enrich": {"ask": ""}}, "parsing_exception", "unknown field [ask], it has [query, bind]"),
        ({"sparql_filter": {}}, "parsing_exception", "[sparql_filter] requires [ask]"),
        ({"sparql_filter": {"ask": 1}}, "parsing_exception", "must be a string"),
        ({"sparql_filter": {"ask": IN_PARIS, "bind": "a b"}}, "illegal_argument_exception", "[bind]"),
        ({"sparql_filter": {"ask": BY}}, "illegal_argument_exception", "must be ASK, not SELECT"),
        ({"sparql_filter": {"ask": "ASK { <{id}> }"}}, "sparql_exception", "[sparql_filter] syntax error"),
        ({"sparql_enrich": {"query": "SELECT * {?s ?p 'a{id}'}"}}, "illegal_argument_exception", "no term"),
        ({"kg_boost": {"entity_field": "who"}}, "parsing_exception", "[kg_boost] requires [boost_factor]"),
        (
            {"kg_boost": {"entity_field": "who", "boost_factor": -1, "min_pagerank": 0}},
            "illegal_argument_exception",
            "[boost_factor] must be between 0",
        ),
        ({"format": "word"}, "illegal_argument_exception", "[word] is no RDF syntax; known are [turtle"),
        ({"format": 7}, "parsing_exception", "[format] must be a string"),
        ({"sparql_expand": {"synonym_query": "ASK {}"}}, "parsing_exception", "requires [field]"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(http: httpx.Client, extension: Any, kind: str, words: str) -> None:
    status, found_kind, reason = reason_of(http.post("/docs/_search", json={"_ext": extension}))
    assert (status, found_kind) == (400, kind)
    assert words in reason


def test_what_the_gate_refuses_comes_with_its_reason(http: httpx.Client, graph: MemoryGraph) -> None:
    graph.limits = graph.limits.model_copy(update={"max_patterns": 0})
    answer = http.post("/docs/_search", json={"_ext": {"sparql_enrich": {"query": BY}}})
    status, kind, reason = reason_of(answer)
    assert (status, kind) == (400, "sparql_exception")
    assert reason.startswith("[sparql_enrich] ")
    assert "max_patterns" in reason


def test_a_scroll_is_filtered_and_every_page_enriched(http: httpx.Client) -> None:
    extension = {
        "sparql_filter": {"ask": "ASK { <{id}> <urn:by> <urn:anna> }"},
        "sparql_enrich": {"query": BY},
    }
    first = asked(http, extension, "/docs/_search?scroll=1m", size=1, sort=["_doc"])
    again = http.post("/_search/scroll", json={"scroll": "1m", "scroll_id": first["_scroll_id"]}).json()
    assert first["hits"]["total"]["value"] == 2
    assert ids(first) + ids(again) == ["urn:d1", "urn:d3"]
    for page in (first, again):
        [hit] = page["hits"]["hits"]
        assert hit["_ext"]["sparql_enrich"] == [{"name": {"type": "literal", "value": "Anna"}}]


def test_a_point_in_time_and_several_searches(http: httpx.Client) -> None:
    pit = http.post("/docs/_pit?keep_alive=1m").json()["id"]
    found = asked(http, {"sparql_filter": {"ask": IN_PARIS}}, "/_search", pit={"id": pit, "keep_alive": "1m"})
    assert sorted(ids(found)) == ["urn:d2", "urn:d3"]
    lines = '{"index":"docs"}\n{"_ext":{"sparql_filter":{"ask":"ASK { <{id}> <urn:in> <urn:berlin> }"}}}\n'
    headers = {"content-type": "application/x-ndjson"}
    answers = http.post("/_msearch", content=lines, headers=headers).json()["responses"]
    assert [ids(one) for one in answers] == [["urn:d1"]]


def test_without_a_graph_what_needs_none_is_answered() -> None:
    with serving(build_search_app(MemorySearch(), Settings())) as url:
        http = httpx.Client(base_url=url, trust_env=False, timeout=HANG_S)
        http.put("/docs/_doc/urn:a?refresh=true", json={"t": "a"}).raise_for_status()
        assert http.post("/docs/_search", json={"_ext": {}}).status_code == 200
        answer = http.post("/docs/_search", json={"_ext": {"sparql_enrich": {"query": BY}}})
        assert reason_of(answer) == (503, "unavailable_shards_exception", "there is no graph here")
        http.close()
