"""/shacl/validate: shapes in, reports out, and what is refused."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pyoxigraph import NamedNode, RdfFormat, Store, parse

from graphdb.config import Settings
from graphdb.errors import QueryCancelled, UnknownGraph
from serve.backend import ValidationRequest
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.scripted_backend import HANG, ScriptedStream, Step
from tests.unit.serve.conftest import error_of, update

SH = "http://www.w3.org/ns/shacl#"
PREFIXES = """@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix x: <http://x/> .
"""
BARE = """x:Person a sh:NodeShape ; sh:targetClass x:P ; sh:property x:Name .
x:Name sh:path x:name ; sh:minCount 1 ; sh:message "a name is missing" .
"""
SHAPES = PREFIXES + BARE
SETTINGS = Settings.model_validate({"shacl": {"max_shapes_bytes": 100_000}})
TURTLE = {"Content-Type": "text/turtle"}
JSON_REPORT = {
    "focusNode": "http://x/b",
    "resultPath": "http://x/name",
    "severity": f"{SH}Violation",
    "message": "a name is missing",
    "sourceShape": "http://x/Name",
    "sourceConstraintComponent": f"{SH}MinCountConstraintComponent",
}


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    with serving(build_app(backend, SETTINGS)) as url:
        yield url


@pytest.fixture(autouse=True)
def data(client: httpx.Client) -> None:
    """One node that conforms and one that does not; another such in a named graph; and the shapes."""
    update(
        client,
        'INSERT DATA { <http://x/a> a <http://x/P> ; <http://x/name> "Ada" . <http://x/b> a <http://x/P> . '
        "GRAPH <http://g/1> { <http://x/c> a <http://x/P> } }",
    )
    assert client.put("/data?graph=http://g/shapes", content=SHAPES, headers=TURTLE).status_code == 200


def validate(client: httpx.Client, **options: Any) -> dict[str, Any]:
    answer = client.post("/shacl/validate", **options)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    report: dict[str, Any] = answer.json()
    return report


def nodes(report: dict[str, Any]) -> list[str]:
    return sorted(result["focusNode"] for result in report["results"])


def test_the_report_of_the_interface(client: httpx.Client) -> None:
    answer = client.post("/shacl/validate", json={"shapes": SHAPES})
    report = answer.json()
    assert set(report) == {"conforms", "results", "stats"}
    assert (report["conforms"], report["results"]) == (False, [JSON_REPORT])
    counts = ("violations", "warnings", "infos", "focus_nodes_validated")
    assert [report["stats"][name] for name in counts] == [1, 0, 0, 2]
    assert all(type(count) is int for count in report["stats"].values())
    assert answer.headers["x-snapshot-index"] == client.get("/data").headers["x-snapshot-index"]
    assert answer.headers["cache-control"] == "no-store"


def test_what_conforms(client: httpx.Client) -> None:
    update(client, 'INSERT DATA { <http://x/b> <http://x/name> "Bob" }')
    report = validate(client, json={"shapes": SHAPES})
    assert (report["conforms"], report["results"], report["stats"]["violations"]) == (True, [], 0)


GIVEN_SHAPES: dict[str, dict[str, Any]] = {
    "JSON": {"json": {"shapes": SHAPES}},
    "JSON with a charset": {
        "content": json.dumps({"shapes": SHAPES}),
        "headers": {"Content-Type": "application/json; charset=utf-8"},
    },
    "Turtle": {"content": SHAPES, "headers": TURTLE},
    "compressed": {
        "content": gzip.compress(SHAPES.encode()),
        "headers": TURTLE | {"Content-Encoding": "gzip"},
    },
    "N-Triples": {
        "content": "".join(f"{quad.triple} .\n" for quad in parse(SHAPES, RdfFormat.TURTLE)),
        "headers": {"Content-Type": "application/n-triples"},
    },
    "TriG": {"content": SHAPES, "headers": {"Content-Type": "application/trig"}},
    "stored, parameter": {"params": {"shapes_graph": "http://g/shapes"}},
    "stored, member": {"json": {"shapes_graph": "http://g/shapes"}},
    "stored, empty Turtle": {"params": {"shapes_graph": "http://g/shapes"}, "headers": TURTLE},
}


@pytest.mark.parametrize("given", GIVEN_SHAPES)
def test_ways_to_give_shapes(client: httpx.Client, given: str) -> None:
    assert validate(client, **GIVEN_SHAPES[given])["results"] == [JSON_REPORT]


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ("default", ["http://x/b"]),
        ("union", ["http://x/b", "http://x/c"]),
        ("http://g/1", ["http://x/c"]),
        ("http://g/shapes", []),
    ],
)
def test_the_data_graph(client: httpx.Client, graph: str, found: list[str]) -> None:
    assert nodes(validate(client, json={"shapes": SHAPES, "graph": graph})) == found
    assert nodes(validate(client, params={"graph": graph}, content=SHAPES, headers=TURTLE)) == found


def test_where_the_default_graph_of_queries_is_the_union_so_it_is_here() -> None:
    settings = Settings.model_validate({"server": {"union_default_graph": True}})
    with (
        serving(build_app(MemoryBackend(union_default_graph=True), settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as http,
    ):
        update(http, "INSERT DATA { GRAPH <http://g/1> { <http://x/c> a <http://x/P> } }")
        assert nodes(validate(http, json={"shapes": SHAPES})) == ["http://x/c"]
        assert nodes(validate(http, json={"shapes": SHAPES, "graph": "default"})) == []


@pytest.mark.parametrize(
    ("asked", "media_type", "rdf_format"),
    [
        ({"headers": {"Accept": "text/turtle"}}, "text/turtle", RdfFormat.TURTLE),
        ({"headers": {"Accept": "application/n-triples"}}, "application/n-triples", RdfFormat.N_TRIPLES),
        ({"headers": {"Accept": "application/ld+json"}}, "application/ld+json", RdfFormat.JSON_LD),
        ({"headers": {"Accept": "application/rdf+xml"}}, "application/rdf+xml", RdfFormat.RDF_XML),
        ({"headers": {"Accept": "text/html;q=0.9, text/turtle;q=0.8"}}, "text/turtle", RdfFormat.TURTLE),
        ({"params": {"format": "turtle"}}, "text/turtle", RdfFormat.TURTLE),
        ({"params": {"format": "application/n-triples"}}, "application/n-triples", RdfFormat.N_TRIPLES),
    ],
)
def test_the_report_as_rdf(
    client: httpx.Client, asked: dict[str, Any], media_type: str, rdf_format: RdfFormat
) -> None:
    answer = client.post("/shacl/validate", json={"shapes": SHAPES}, **asked)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.headers["vary"] == "Accept"
    store = Store()
    store.load(answer.content, format=rdf_format)
    question = f"""PREFIX sh: <{SH}>
        ASK {{ ?report a sh:ValidationReport ; sh:conforms false ; sh:result ?result .
               ?result a sh:ValidationResult ; sh:focusNode <http://x/b> ; sh:resultPath <http://x/name> ;
                       sh:resultSeverity sh:Violation ; sh:sourceShape <http://x/Name> }}"""
    assert bool(store.query(question))
    assert len(list(store.quads_for_pattern(None, NamedNode(f"{SH}result"), None, None))) == 1


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "no shapes": ({"json": {}}, 400, "shapes: are missing"),
    "no body": ({}, 400, "shapes: are missing"),
    "both": (
        {"json": {"shapes": SHAPES, "shapes_graph": "http://g/shapes"}},
        400,
        "shapes_graph: there are shapes already",
    ),
    "both, one in the query string": (
        {"content": SHAPES, "headers": TURTLE, "params": {"shapes_graph": "http://g/shapes"}},
        400,
        "shapes_graph: there are shapes already",
    ),
    "graph twice": (
        {"json": {"shapes": SHAPES, "graph": "union"}, "params": {"graph": "union"}},
        400,
        "graph: given in the query string and in the body",
    ),
    "unknown member": ({"json": {"shapes": SHAPES, "shape": ""}}, 400, "shape: Extra inputs"),
    "shapes of another type": ({"json": {"shapes": [SHAPES]}}, 400, "shapes: Input should be a valid string"),
    "an array": ({"json": [SHAPES]}, 400, "body: Input should be an object"),
    "no JSON": (
        {"content": '{"shapes": ', "headers": {"Content-Type": "application/json"}},
        400,
        "body: Invalid JSON: EOF while parsing a value at line 1 column 11",
    ),
    "half a character": (
        {"content": b'{"shapes": "\xff"}', "headers": {"Content-Type": "application/json"}},
        400,
        "body: Invalid JSON",
    ),
    "no Turtle": (
        {"json": {"shapes": "@prefix x: <http://x/> .\nx:a x:b ,"}},
        400,
        "malformed RDF at line 2, column",
    ),
    "relative IRI": ({"json": {"shapes": "<a> <b> <c> ."}}, 400, "malformed RDF at line 1"),
    "RDF/XML with a DOCTYPE": (
        {"content": "<!DOCTYPE x><x/>", "headers": {"Content-Type": "application/rdf+xml"}},
        400,
        "malformed RDF",
    ),
    "shapes in a named graph of the body": (
        {"content": f"{PREFIXES} x:g {{ {BARE} }}", "headers": {"Content-Type": "application/trig"}},
        400,
        "shapes: are in a named graph of the document, <http://x/g>",
    ),
    "malformed shapes": (
        {"json": {"shapes": SHAPES.replace("sh:minCount 1", 'sh:minCount "one"')}},
        400,
        "malformed shapes: sh:minCount of <http://x/Name>",
    ),
    "unknown data graph": ({"json": {"shapes": SHAPES, "graph": "http://g/no"}}, 404, "<http://g/no>"),
    "unknown shapes graph": ({"json": {"shapes_graph": "http://g/no"}}, 404, "<http://g/no>"),
    "graph that is no IRI": ({"json": {"shapes": SHAPES, "graph": "all of it"}}, 400, "graph: 'all of it'"),
    "shapes graph that is no IRI": ({"json": {"shapes_graph": "default"}}, 400, "shapes_graph: 'default'"),
    "other type": (
        {"content": SHAPES, "headers": {"Content-Type": "text/plain"}},
        415,
        "send one of application/json",
    ),
    "no type": ({"content": SHAPES}, 415, "a body without Content-Type"),
    "unknown coding": (
        {"content": SHAPES, "headers": TURTLE | {"Content-Encoding": "br"}},
        415,
        "br",
    ),
    "nothing fits Accept": (
        {"json": {"shapes": SHAPES}, "headers": {"Accept": "image/png"}},
        406,
        "text/turtle",
    ),
    "unknown format": ({"json": {"shapes": SHAPES}, "params": {"format": "png"}}, 400, "format: 'png'"),
    "too large": ({"content": "#" * 100_001, "headers": TURTLE}, 413, "100000 bytes"),
    "too large once decompressed": (
        {"content": gzip.compress(b"#" * 200_000), "headers": TURTLE | {"Content-Encoding": "gzip"}},
        413,
        "100000 bytes",
    ),
    "too large within JSON": ({"json": {"shapes": "#" * 100_001}}, 413, "100000 bytes"),
    "odd time limit": ({"json": {"shapes": SHAPES}, "params": {"timeout": "soon"}}, 400, "timeout: 'soon'"),
    "odd read level": ({"json": {"shapes": SHAPES}, "params": {"consistency": "odd"}}, 400, "consistency"),
    "an index that is not reached": (
        {"json": {"shapes": SHAPES}, "params": {"min_index": "99999999", "timeout": "0.05"}},
        503,
        "99999999",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(client: httpx.Client, name: str) -> None:
    options, status, message = REFUSED[name]
    answer = client.post("/shacl/validate", **options)
    assert (answer.status_code, message in error_of(answer)) == (status, True), answer.text
    assert "x-snapshot-index" in answer.headers


def test_methods(client: httpx.Client) -> None:
    assert client.get("/shacl/validate").status_code == 405
    assert client.request("OPTIONS", "/shacl/validate").headers["allow"] == "POST, OPTIONS"
    assert "/shacl/validate" in client.get("/").json()["endpoints"]


def test_a_validation_is_listed_cancelled_and_counted() -> None:
    class Hanging(MemoryBackend):
        async def start_validation(self, request: ValidationRequest) -> ScriptedStream:
            asked.append(request)
            return ScriptedStream(*steps, snapshot_index=7)

    asked: list[ValidationRequest] = []
    steps: list[Step] = [b"{}"]
    settings = Settings.model_validate({"server": {"query_timeout_seconds": 0.3}})
    with (
        serving(build_app(Hanging(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as http,
    ):
        answer = http.post("/shacl/validate", params={"shapes_graph": "http://g/s", "graph": "union"})
        assert (answer.content, answer.headers["x-snapshot-index"]) == (b"{}", "7")
        [request] = asked
        assert (request.shapes, request.data_graph) == (NamedNode("http://g/s"), "union")
        assert request.text == "validate the union graph against the shapes of <http://g/s>"
        assert 0 < request.timeout_s <= 0.3
        for error, status in (
            (QueryCancelled("the query was cancelled"), 503),
            (UnknownGraph("http://g/s"), 404),
        ):
            steps[:] = [error]
            answer = http.post("/shacl/validate", params={"shapes_graph": "http://g/s"})
            assert (answer.status_code, error_of(answer)) == (status, str(error))
        steps[:] = [HANG]
        answer = http.post("/shacl/validate", params={"shapes_graph": "http://g/s"})
        assert (answer.status_code, error_of(answer)) == (
            503,
            "the validation took longer than 0.3 s and was ended",
        )
        http.post("/shacl/validate")
        metrics = http.get("/metrics").text
    outcomes = "service_service_shacl_validations_total"
    counted = {"ok": 1, "cancelled": 1, "rejected": 2, "timeout": 1}
    found = {line for line in metrics.splitlines() if line.startswith(f"{outcomes}{{")}
    assert {f'{outcomes}{{outcome="{outcome}"}} {count}.0' for outcome, count in counted.items()} <= found
    assert sum(line.endswith(" 0.0") for line in found) == len(found) - len(counted)
    assert "service_service_shacl_validation_duration_seconds_count 4.0" in metrics
    assert "service_service_queries_total 0.0" in metrics
