"""The service as clients of other stores see it: Jena, LangChain, LlamaIndex, Grafana, those of AWS."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.apart_environment import run_apart, why_not_apart
from tests.support.jena import run_program, why_no_jena
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = pytest.mark.ray

# 255 MB, fetched once; not among the packages of the tests, because they bring eighty others.
LANGCHAIN = (
    "langchain-community==0.4.2",
    "langchain-elasticsearch==1.0.0",
    "llama-index-vector-stores-elasticsearch==0.7.0",
    "rdflib==7.6.0",
)
LANGCHAIN_STEPS = [
    ["schema", True],
    ["rows", ["Ann"]],
    ["ontology", True],
    ["named rows", ["Ann"]],
    ["knn", ["green apples", {"number": 1}]],
    ["knn filtered", ["red apples and pears"]],
    ["knn left", 2],
    ["hybrid", ["green apples", {"number": 1}]],
    ["hybrid filtered", ["red apples and pears"]],
    ["hybrid left", 2],
    ["bm25", [["green apples", 1.4838], ["red apples and pears", 0.4598]]],
    ["similarity", "custom_bm25"],
    ["llama ids", ["n0", "n1", "n2"]],
    ["llama", ["green apples"]],
    ["llama filtered", ["a blue bicycle"]],
]

JENA = [
    'select: "1"^^xsd:integer',
    'select: "a"@en',
    "ask: true",
    "construct: 2",
    "describe: 2",
    'thrift row: "1"^^xsd:integer false',
    'thrift row: "a"@en false',
    "thrift construct: 2",
    "thrift put: 200",
    "thrift same: true",
    "fetch graph: true",
    "size: 2",
    "deleted: true",
    "fetch default: 2",
    "loaded: true",
    "put: true",
    "header: true",
    "replayed: true",
    "posted: 200",
    "left: 1",
    "graphs left: 1",
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose whole dataset a test may replace."""
    running = Service(tmp_path_factory.mktemp("own") / "data", search=True)
    try:
        yield running.start()
    finally:
        running.close()


@pytest.mark.parametrize("endpoints", ["default", "named"])
def test_jena(own: Service, endpoints: str) -> None:
    if (reason := why_no_jena()) is not None:
        pytest.skip(reason)
    assert httpx.delete(f"{own.url}/ds", trust_env=False).status_code == 200
    assert run_program("JenaClient", own.url, endpoints) == JENA


def test_langchain_and_llama_index(own: Service) -> None:
    if (reason := why_not_apart("langchain", LANGCHAIN)) is not None:
        pytest.skip(reason)
    lines = run_apart("langchain", "langchain_client", own.url, own.search_url)
    assert [json.loads(line) for line in lines] == LANGCHAIN_STEPS


# 63 MB, fetched once. Later versions fetch a language model when they are imported.
SPARQL_LLM = ("sparql-llm==0.0.8",)
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
EXAMPLE = "SELECT * WHERE { ?a <https://llm.example/knows> ?b }"


def test_sparql_llm(own: Service) -> None:
    """Its loaders of prefixes, examples and VoID, and its validator."""
    if (reason := why_not_apart("sparql-llm", SPARQL_LLM)) is not None:
        pytest.skip(reason)
    prefixes = """PREFIX m: <https://llm.example/> PREFIX sh: <http://www.w3.org/ns/shacl#>
        PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
        PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> """
    own.update(
        prefixes
        + "CLEAR ALL ; INSERT DATA { m:ann a m:Person ; m:name 'Ann' ; m:knows m:bob . m:bob a m:Person . "
        "m: sh:declare [ sh:prefix 'm' ; sh:namespace 'https://llm.example/'^^xsd:anyURI ] . "
        f"m:q a sh:SPARQLExecutable ; rdfs:comment 'Who knows whom?' ; sh:select '{EXAMPLE}' }}"
    )
    lines = run_apart("sparql-llm", "sparql_llm_client", own.url)
    own.update("CLEAR ALL")
    assert [json.loads(line) for line in lines] == [
        ["prefixes", {"m": "https://llm.example/"}],
        [
            "schema",
            {
                "https://llm.example/Person": [
                    TYPE,
                    "https://llm.example/knows",
                    "https://llm.example/name",
                ]
            },
        ],
        ["example", ["Who knows whom?", "SelectQuery", EXAMPLE]],
        ["shape", ["https://llm.example/Person", "m:Person"]],
        ["right", []],
        ["wrong", [TYPE, "m:Person", "m:knows", "m:nam", "m:name"]],
        ["mended", [True, []]],
    ]


MINUTE = 60_000
BEGIN = 1_700_000_040_000  # a whole minute


@pytest.fixture(scope="module")
def logs(own: Service) -> Iterator[httpx.Client]:
    """Three minutes of two hosts, in an index as Grafana reads it."""
    with httpx.Client(base_url=own.search_url, trust_env=False, timeout=HANG_S) as client:
        mapping = {"@timestamp": {"type": "date"}, "host": {"type": "keyword"}, "value": {"type": "double"}}
        mapping["message"] = {"type": "text"}
        client.put("/logs-1", json={"mappings": {"properties": mapping}}).raise_for_status()
        lines = []
        for number in range(6):
            lines.append('{"create": {}}')
            document = {"@timestamp": BEGIN + number // 2 * MINUTE, "host": f"h{number % 2}"}
            lines.append(json.dumps({**document, "value": number, "message": f"message {number}"}))
        headers = {"Content-Type": "application/x-ndjson"}
        body = "\n".join([*lines, ""])
        client.post("/logs-1/_bulk?refresh=true", content=body, headers=headers).raise_for_status()
        yield client


def grafana(client: httpx.Client, search: dict[str, Any]) -> dict[str, Any]:
    """One query of a panel, as Grafana's data source sends it: pkg/tsdb/elasticsearch of its sources."""
    head = {"ignore_unavailable": True, "index": "logs-*"}
    span = {"format": "epoch_millis", "gte": BEGIN, "lte": BEGIN + 3 * MINUTE}
    within: list[dict[str, Any]] = [
        {"range": {"@timestamp": span}},
        {"query_string": {"analyze_wildcard": True, "query": "host:h*"}},
    ]
    search = {"query": {"bool": {"filter": within}}, **search}
    body = f"{json.dumps(head)}\n{json.dumps(search)}\n"
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/_msearch?max_concurrent_shard_requests=5", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["responses"][0]
    assert "error" not in found, found
    return found


def by_time(aggs: dict[str, Any]) -> dict[str, Any]:
    histogram = {
        "field": "@timestamp",
        "min_doc_count": 0,
        "extended_bounds": {"min": BEGIN, "max": BEGIN + 3 * MINUTE},
        "format": "epoch_millis",
        "fixed_interval": "60000ms",
    }
    return {"date_histogram": histogram, "aggs": aggs}


def test_grafana_tests_its_connection(logs: httpx.Client) -> None:
    healthy = logs.get("/_cluster/health", params={"wait_for_status": "yellow"})
    assert (healthy.status_code, healthy.json()["status"] in ("green", "yellow")) == (200, True)
    assert logs.get("/").json()["version"]["number"].startswith("8.")
    fields = logs.get("/logs-1/_mapping").json()["logs-1"]["mappings"]["properties"]
    assert fields["@timestamp"]["type"] == "date"


def test_grafana_draws_time_series(logs: httpx.Client) -> None:
    metrics = {
        "1": {"avg": {"field": "value"}},
        "3": {"derivative": {"buckets_path": "1"}},
        "4": {"percentiles": {"field": "value", "percents": ["25", "50", "99"]}},
        "5": {"extended_stats": {"field": "value", "sigma": "2"}},
        "6": {"cardinality": {"field": "host"}},
        "7": {"cumulative_sum": {"buckets_path": "1"}},
        "9": {"serial_diff": {"buckets_path": "1", "lag": 2}},
        "10": {"sum": {"field": "value", "missing": "0"}},
    }
    terms = {"field": "host", "size": 10, "order": {"_key": "desc"}, "min_doc_count": 1}
    found = grafana(logs, {"size": 0, "aggs": {"8": {"terms": terms, "aggs": {"2": by_time(metrics)}}}})
    hosts = found["aggregations"]["8"]["buckets"]
    assert [host["key"] for host in hosts] == ["h1", "h0"]
    buckets = hosts[0]["2"]["buckets"]
    assert [(one["key"], one["key_as_string"], one["doc_count"]) for one in buckets] == [
        (BEGIN + number * MINUTE, str(BEGIN + number * MINUTE), count)
        for number, count in enumerate([1, 1, 1, 0])
    ]
    assert [one["1"]["value"] for one in buckets] == [1, 3, 5, None]
    assert buckets[1]["3"]["value"] == 2
    assert buckets[1]["5"]["std_deviation_bounds"]["upper"] == 3
    assert buckets[2]["7"]["value"] == 9
    assert buckets[2]["9"]["value"] == 4


def test_grafana_shows_logs(logs: httpx.Client) -> None:
    """And the lines around one of them, by search_after."""
    highlight = {
        "fields": {"*": {}},
        "pre_tags": ["@HIGHLIGHT@"],
        "post_tags": ["@/HIGHLIGHT@"],
        "fragment_size": 2_147_483_647,
    }

    def lines(order: str, **more: Any) -> dict[str, Any]:
        search = {
            "size": 2,
            "sort": {"@timestamp": {"order": order, "unmapped_type": "boolean"}, "_doc": {"order": order}},
            "docvalue_fields": ["@timestamp"],
            "script_fields": {},
            "fields": [{"field": "@timestamp", "format": "strict_date_optional_time_nanos"}],
            "highlight": highlight,
            "aggs": {"1": by_time({})},
        }
        return grafana(logs, {**search, **more})

    found = lines("desc")
    hits = found["hits"]["hits"]
    assert [hit["_source"]["message"] for hit in hits] == ["message 5", "message 4"]
    assert all(hit["fields"]["@timestamp"] and hit["sort"] for hit in hits)
    assert [bucket["doc_count"] for bucket in found["aggregations"]["1"]["buckets"]] == [2, 2, 2, 0]
    before = lines("desc", search_after=hits[1]["sort"])["hits"]["hits"]
    assert [hit["_source"]["message"] for hit in before] == ["message 3", "message 2"]


def test_grafana_splits_by_filters_and_lists_values(logs: httpx.Client) -> None:
    filters = {"filters": {"first": {"query_string": {"query": "host:h0", "analyze_wildcard": True}}}}
    found = grafana(logs, {"size": 0, "aggs": {"2": {"filters": filters}}})
    assert found["aggregations"]["2"]["buckets"]["first"]["doc_count"] == 3
    values = {"terms": {"field": "host", "size": 500, "order": {"_key": "asc"}}}
    found = grafana(logs, {"size": 0, "aggs": {"1": values}})
    assert [one["key"] for one in found["aggregations"]["1"]["buckets"]] == ["h0", "h1"]


# What graph-explorer 3 sends, for these data: packages/graph-explorer/src/connector/sparql of its sources.
SUBJECTS = """SELECT DISTINCT ?subject WHERE { ?subject ?pValue ?value . OPTIONAL { ?subject a ?class } .
       FILTER (?pValue IN (<urn:e:name>)) FILTER (?class IN (<urn:e:Person>))
       FILTER (CONTAINS(LCASE(STR(?value)), LCASE("Ann"))) } LIMIT 10"""
NO_LITERAL = f"FILTER(!isLiteral(?neighbor) && ?predicate != <{TYPE}>)"
EXPLORER = [
    "SELECT ?class  (COUNT(?start) AS ?instancesCount) { ?start a ?class } GROUP BY ?class",
    """SELECT ?predicate (COUNT(?predicate) as ?count) {
       [] ?predicate ?object FILTER(!isLiteral(?object)) } GROUP BY ?predicate""",
    """SELECT ?class ?pred (SAMPLE(?object) as ?sample) WHERE {
       { SELECT (<urn:e:Person> AS ?class) ?pred ?object WHERE {
           { SELECT ?subject WHERE { ?subject a <urn:e:Person>. } LIMIT 1 }
           ?subject ?pred ?object. FILTER(!isBlank(?object) && isLiteral(?object)) } }
       UNION
       { SELECT (<urn:e:None> AS ?class) ?pred ?object WHERE {
           { SELECT ?subject WHERE { ?subject a <urn:e:None>. } LIMIT 1 }
           ?subject ?pred ?object. FILTER(!isBlank(?object) && isLiteral(?object)) } } }
       GROUP BY ?class ?pred""",
    """SELECT DISTINCT ?edgeType ?sourceType ?targetType WHERE {
       { SELECT (<urn:e:knows> AS ?edgeType) ?sourceType ?targetType WHERE {
           { SELECT ?sourceType ?targetType WHERE { ?s <urn:e:knows> ?o . FILTER(!isLiteral(?o))
             ?s a ?sourceType . ?o a ?targetType . } LIMIT 10000 } } } }""",
    f"""SELECT DISTINCT ?subject ?predicate ?object WHERE {{ {{ {SUBJECTS} }}
       {{ ?subject ?predicate ?object FILTER(isLiteral(?object) || ?predicate = <{TYPE}>) }} }}""",
    f"""SELECT DISTINCT (?subject as ?bNode) WHERE {{ {{ {SUBJECTS} }} FILTER(isBlank(?subject)) }}""",
    f"""SELECT ?resource (COUNT(DISTINCT ?neighbor) AS ?totalCount) WHERE {{
       VALUES ?resource {{ <urn:e:ann> }} {{ ?resource ?predicate ?neighbor . {NO_LITERAL} }} UNION
       {{ ?neighbor ?predicate ?resource . {NO_LITERAL} }} }} GROUP BY ?resource""",
    f"""SELECT ?resource ?type (COUNT(DISTINCT ?neighbor) AS ?typeCount) WHERE {{
       VALUES ?resource {{ <urn:e:ann> }}
       {{ ?resource ?predicate ?neighbor . OPTIONAL {{ ?neighbor a ?type }} . {NO_LITERAL} }} UNION
       {{ ?neighbor ?predicate ?resource . OPTIONAL {{ ?neighbor a ?type }} . {NO_LITERAL} }} }}
       GROUP BY ?resource ?type""",
    f"""SELECT ?subject ?predicate ?object WHERE {{ VALUES ?subject {{ <urn:e:ann> <urn:e:bob> }}
       ?subject ?predicate ?object . FILTER(isLiteral(?object) || ?predicate = <{TYPE}>) }}""",
]


def test_graph_explorer(own: Service) -> None:
    """Its queries, with what it sends beside them. It goes on without the summary that only Neptune has."""
    summary = httpx.get(f"{own.url}/rdf/statistics/summary?mode=basic", trust_env=False)
    assert summary.status_code == 404
    own.update(
        "CLEAR ALL ; INSERT DATA { <urn:e:ann> a <urn:e:Person> ; <urn:e:name> 'Ann' . "
        "<urn:e:ann> <urn:e:knows> <urn:e:bob> . <urn:e:bob> a <urn:e:Person> ; <urn:e:name> 'Bob' }"
    )
    counts = []
    for query in EXPLORER:
        answer = httpx.post(
            f"{own.url}/sparql",
            data={"query": query},
            headers={
                "Accept": "application/sparql-results+json",
                "queryId": "0d6d7a2e-7d5c-4f0f-9f4e-5b3f8e0c9a55",
            },
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        counts.append(len(answer.json()["results"]["bindings"]))
    own.update("CLEAR ALL")
    assert counts == [1, 2, 1, 1, 2, 0, 1, 1, 4]


# 511 MB, fetched once; the environment has no room in that of the tests.
NOTEBOOK = ("graph-notebook==5.3.0", "nbclient==0.11.0", "ipykernel", "setuptools<80")


@pytest.mark.long
def test_graph_notebook(own: Service) -> None:
    """Queries and updates by its magics, in a notebook. It takes a minute, mostly of waiting."""
    if (reason := why_not_apart("graph-notebook", NOTEBOOK)) is not None:
        pytest.skip(reason)
    lines = run_apart("graph-notebook", "graph_notebook_client", "127.0.0.1", str(own.port))
    assert lines == [
        "['Ann', 'urn:n:b']",
        """['<urn:n:a> <urn:n:knows> <urn:n:b> .', '<urn:n:a> <urn:n:name> "Ann" .']""",
        "[]",
    ]
