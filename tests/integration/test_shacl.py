"""SHACL in a running service: its report against pySHACL's, kills and cancels, and shapes that hold."""

import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pyshacl
import pytest
import rdflib
from rdflib import RDF, SH

from tests.support.readers import cpu_s
from tests.support.service import Service
from tests.support.timing import HANG_S, quick_enough

pytestmark = [pytest.mark.ray, pytest.mark.slow]

GRAPH, SHAPES_GRAPH = "http://v.example/data", "http://v.example/shapes"
PREFIXES = "@prefix v: <http://v.example/> .\n@prefix sh: <http://www.w3.org/ns/shacl#> .\n"
DATA = PREFIXES + (
    "v:a a v:Person ; v:name 'Ada', 'Augusta' ; v:knows v:b , [ v:name 1 ] .\n"
    "v:b a v:Person ; v:knows v:a . v:c a v:Person ; v:name 'Cy' ; v:age 7 , 200 ; v:knows v:c .\n"
)
SHAPES = PREFIXES + (
    "v:PersonShape a sh:NodeShape ; sh:targetClass v:Person ; sh:property v:Name , v:Age , v:Knows ; "
    "sh:sparql v:Self .\n"
    "v:Name sh:path v:name ; sh:minCount 1 ; sh:maxCount 1 .\n"
    "v:Age sh:path v:age ; sh:maxInclusive 150 ; sh:severity sh:Warning .\n"
    "v:Knows sh:path ( v:knows [ sh:zeroOrMorePath v:knows ] v:name ) ; "
    "sh:datatype <http://www.w3.org/2001/XMLSchema#string> .\n"
    "v:Self sh:message '{$this} knows itself' ; "
    "sh:select 'SELECT $this { $this <http://v.example/knows> $this }' .\n"
)
ENDLESS = PREFIXES + (
    "v:Endless sh:targetClass v:Person ; sh:sparql [ sh:select '''SELECT $this { $this ?p ?o . "
    "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l "
    "FILTER(CONCAT(STR(?c), STR(?f), STR(?i), STR(?l)) = STR($this)) }''' ] .\n"
)
TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture(scope="module")
def http(service: Service) -> Iterator[httpx.Client]:
    many = "".join(f"v:n{number} v:of {number} .\n" for number in range(300))
    with httpx.Client(base_url=service.url, trust_env=False, timeout=HANG_S) as client:
        for graph, turtle in ((GRAPH, DATA), (SHAPES_GRAPH, SHAPES), (f"{GRAPH}/many", DATA + many)):
            put = client.put("/data", params={"graph": graph}, content=turtle, headers=TURTLE)
            assert put.status_code == 200, put.text
        yield client


def validate(http: httpx.Client, **options: Any) -> httpx.Response:
    return http.post("/shacl/validate", headers=TURTLE | options.pop("headers", {}), **options)


def results(report: rdflib.Graph) -> list[tuple[str, ...]]:
    """What the results of a report say, blank nodes as such."""
    names = (SH.focusNode, SH.value, SH.resultSeverity, SH.sourceConstraintComponent, SH.resultMessage)
    return sorted(
        tuple(
            "_" if isinstance(value := report.value(result, name), rdflib.BNode) else str(value)
            for name in names
        )
        for result in report.subjects(RDF.type, SH.ValidationResult)
    )


@pytest.mark.parametrize("syntax", ["text/turtle", "application/n-triples", "application/rdf+xml"])
def test_the_report_is_pyshacl_s(http: httpx.Client, syntax: str) -> None:
    answer = validate(http, params={"graph": GRAPH}, content=SHAPES, headers={"Accept": syntax})
    assert answer.headers["content-type"] == syntax
    ours = rdflib.Graph().parse(data=answer.content, format=syntax)
    data, shapes = (rdflib.Graph().parse(data=turtle, format="turtle") for turtle in (DATA, SHAPES))
    conforms, theirs, _ = pyshacl.validate(data, shacl_graph=shapes)
    assert not conforms
    assert isinstance(theirs, rdflib.Graph)
    assert len(results(ours)) > 4
    assert [result[:-1] for result in results(ours)] == [result[:-1] for result in results(theirs)]
    [root] = ours.subjects(RDF.type, SH.ValidationReport)
    assert ours.value(root, SH.conforms) == rdflib.Literal(False)
    assert len(list(ours.objects(root, SH.result))) == len(results(ours))


def test_stored_shapes_and_the_json_report(http: httpx.Client) -> None:
    answer = http.post("/shacl/validate", json={"shapes_graph": SHAPES_GRAPH, "graph": GRAPH})
    report = answer.json()
    assert report["stats"]["warnings"] == 1
    assert report["stats"]["violations"] == len(report["results"]) - 1
    messages = {result["message"] for result in report["results"]}
    assert any("http://v.example/c" in message and "knows itself" in message for message in messages)
    metrics = http.get("/metrics").text
    counted = re.search(r'shacl_validations_total\{outcome="ok"\} (\d+)', metrics)
    assert counted is not None
    assert int(counted[1]) >= 1


def validating(http: httpx.Client, pool: ThreadPoolExecutor) -> "Future[httpx.Response]":
    return pool.submit(validate, http, params={"graph": f"{GRAPH}/many"}, content=ENDLESS)


def listed(http: httpx.Client) -> list[dict[str, Any]]:
    """The validations that a reader is at."""
    queries = http.get("/queries").json()["queries"]
    return [query for query in queries if query["form"] == "VALIDATE" and query["where"]]


def test_a_validation_is_cancelled(service: Service, http: httpx.Client) -> None:
    with ThreadPoolExecutor() as pool:
        asking = validating(http, pool)
        service.wait_until(lambda: listed(http), HANG_S)
        [shown] = listed(http)
        assert shown["text"] == f"validate <{GRAPH}/many> against given shapes"
        time.sleep(0.5)
        assert http.delete(f"/queries/{shown['id']}").status_code == 200
        answer = asking.result(HANG_S)
    assert (answer.status_code, answer.json()["error"]) == (503, "the query was cancelled")
    assert listed(http) == []


def test_kills_during_a_validation(service: Service, http: httpx.Client) -> None:
    """The first evaluator is replaced and the validation begun anew; with the second it ends."""
    before = spent_s(service)
    with ThreadPoolExecutor() as pool:
        asking = validating(http, pool)
        killed: set[int] = set()
        for _ in range(2):
            service.wait_until(lambda: working(service, before) - killed, HANG_S)
            for pid in working(service, before) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        answer = asking.result(HANG_S)
    assert answer.status_code == 503
    assert "signal 9" in answer.json()["error"]
    assert (
        http.post("/shacl/validate", json={"shapes_graph": SHAPES_GRAPH, "graph": GRAPH}).status_code == 200
    )


def working(service: Service, before: dict[int, float]) -> set[int]:
    """The evaluators that have spent more processor time since than a start and a short query take."""
    return {pid for pid, seconds in spent_s(service).items() if seconds > before.get(pid, 0) + 0.4}


def spent_s(service: Service) -> dict[int, float]:
    """The processor time of the evaluators."""
    found = {}
    for pid in service.pids("actors.readers.evaluator"):
        with suppress(OSError):  # it has ended
            found[pid] = cpu_s(pid)
    return found


def test_the_time_limit(http: httpx.Client) -> None:
    for took in quick_enough(5):
        with took:
            answer = validate(http, params={"graph": f"{GRAPH}/many", "timeout": "1"}, content=ENDLESS)
    assert (answer.status_code, answer.json()["error"]) == (
        503,
        "the validation took longer than 1 s and was ended",
    )


def test_shapes_that_every_write_must_satisfy(tmp_path: Path) -> None:
    service = Service(tmp_path / "data", environment={"GRAPHDB_SHACL__ENFORCE_GRAPH": SHAPES_GRAPH})
    try:
        service.start()
        with httpx.Client(base_url=service.url, trust_env=False, timeout=HANG_S) as http:
            _check_enforced(http, service)
    finally:
        service.close()


def _check_enforced(http: httpx.Client, service: Service) -> None:
    shapes = SHAPES.replace("sh:sparql v:Self", "sh:nodeKind sh:IRI")
    put = http.put("/data", params={"graph": SHAPES_GRAPH}, content=shapes, headers=TURTLE)
    assert put.status_code == 200
    with ThreadPoolExecutor(8) as pool:
        names = ["v:name 'N'", "v:age 3", "v:name 'N'", "v:name 'N', 'M'"] * 5
        texts = [
            f"PREFIX v: <http://v.example/> INSERT DATA {{ v:w{number} a v:Person ; {name} }}"
            for number, name in enumerate(names)
        ]
        answers = list(pool.map(lambda text: http.post("/update", data={"update": text}), texts))
    assert [answer.status_code for answer in answers] == [200, 409, 200, 409] * 5
    refused = answers[1].json()
    assert set(refused) == {"error", "status", "report"}
    [result] = refused["report"]["results"]
    assert (result["focusNode"], result["sourceShape"]) == ("http://v.example/w1", "http://v.example/Name")
    subjects = "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s a <http://v.example/Person> }"
    counted = http.post("/sparql", data={"query": subjects}, headers={"Accept": "text/csv"})
    assert counted.text.split() == ["n", "10"]
    assert http.put("/data?default", content=PREFIXES + "v:x a v:Person .", headers=TURTLE).status_code == 409
    bad_shapes = http.put(
        "/data",
        params={"graph": SHAPES_GRAPH},
        content=SHAPES.replace("maxCount 1", "maxCount 0"),
        headers=TURTLE,
    )
    assert bad_shapes.status_code == 409
    assert len(bad_shapes.json()["report"]["results"]) == 10
    service.kill("GraphPort")
    service.wait_ready()
    again = http.post("/update", data={"update": texts[1].replace("v:w1", "v:again")})
    assert again.status_code == 409
