"""`explain=true`: what the service does with a query and why, while it does so."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.config import Settings
from graphdb.errors import (
    EvaluationFailed,
    GraphDBError,
    HostNotAllowed,
    Overloaded,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryTimeout,
    UnavailableError,
)
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.scripted_backend import ScriptedBackend, ScriptedStream
from tests.support.timing import HANG_S
from tests.unit.serve.conftest import error_of, update

QUERY = "application/sparql-query"
CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
JOIN = "SELECT ?o { ?s <http://x/p> ?o . ?s <http://x/q> ?r }"
SILENT = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
YIELDS = "each step of the evaluation yields a row; a long answer is left to a reader"


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explanation")


@pytest.fixture(scope="module")
def backend() -> ScriptedBackend:
    return ScriptedBackend()


@pytest.fixture(scope="module")
def base_url(backend: ScriptedBackend, log_directory: Path) -> Iterator[str]:
    server = {"data_dir": log_directory, "slow_query_seconds": 0}
    with serving(build_app(backend, Settings.model_validate({"server": server}))) as url:
        yield url


@pytest.fixture(autouse=True)
def as_usual(backend: ScriptedBackend) -> Iterator[None]:
    yield
    backend.forget()
    backend.entries_at_once = -1


def explained(client: httpx.Client, query: str, **fields: Any) -> dict[str, Any]:
    answer = client.post("/sparql", data={"query": query, "explain": "true", **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
    found: dict[str, Any] = answer.json()
    assert answer.headers["x-snapshot-index"] == str(found["evaluation"]["snapshot_index"])
    return found


def outcomes(client: httpx.Client) -> dict[str, float]:
    """How many queries ended how, without those that never did."""
    lines = client.get("/metrics").text.splitlines()
    found = [line.rsplit(" ", 1) for line in lines if line.startswith("service_service_query_outcomes_total")]
    return {name.split('"')[1]: float(value) for name, value in found if float(value)}


def slow_query(directory: Path, text: str) -> dict[str, Any]:
    """What the log says of a query, which a thread writes down soon."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ValueError):
            entries = map(json.loads, (directory / "slow-queries.log").read_text().splitlines())
            for entry in entries:
                if entry["text"] == text:
                    found: dict[str, Any] = entry
                    return found
        time.sleep(0.01)
    raise AssertionError(text)


def test_the_whole_of_one(client: httpx.Client, backend: ScriptedBackend) -> None:
    written = update(client, "INSERT DATA { <http://x/s> <http://x/p> 1, 2 ; <http://x/q> 3, 4, 5 }")
    found = explained(client, JOIN)
    assert list(found) == [
        "query",
        "classification",
        "ways",
        "columns",
        "complexity",
        "scans",
        "lookups",
        "evaluation",
        "hints",
    ]
    assert found["hints"] == []
    assert found["query"] == {
        "form": "SELECT",
        "text": JOIN,
        "base_iri": f"{client.base_url}/sparql",
        "engine_text": "SELECT ?o WHERE { ?s <http://x/p> ?o . ?s <http://x/q> ?r . }",
        "services": {},
        "dataset": None,
    }
    assert found["classification"] == {
        "evaluated": "by a reader",
        "reasons": ["2 triple patterns are joined", "it joins much in what the store holds now"],
        "repeatable": True,
        "cacheable": True,
    }
    assert found["complexity"]["patterns"] == {"value": 2, "limit": 100, "setting": "security.max_patterns"}
    fields = Settings().security.model_dump()
    assert {f"security.{name}": fields[name] for name in fields if name in _limits(found)} == {
        each["setting"]: each["limit"] for each in found["complexity"].values()
    }
    assert found["scans"] == [
        {"pattern": "?s <http://x/p> ?o", "quads": 2, "complete": True},
        {"pattern": "?s <http://x/q> ?r", "quads": 3, "complete": True},
    ]
    seconds = found["evaluation"].pop("seconds")
    assert 0 < seconds < HANG_S
    assert found["evaluation"] == {
        "outcome": "ok",
        "error": None,
        "rows": 6,
        "where": "thread",
        "snapshot_index": written.json()["snapshot_index"],
        "snapshot_exact": True,
    }
    assert backend.running_queries() == []


def _limits(found: dict[str, Any]) -> set[str]:
    return {f"max_{name}" for name in found["complexity"]}


@pytest.mark.parametrize("entries", [-1, 100])
@pytest.mark.parametrize(
    ("query", "fields", "expected"),
    [
        (CHEAP, {}, {-1: ("at once", YIELDS), 100: ("at once", YIELDS)}),
        (
            CHEAP,
            {"default-graph-uri": "http://g/1"},
            dict.fromkeys((-1, 100), ("by a reader", "the request's parameters choose the dataset")),
        ),
        (
            CHEAP + " #" + "x" * 4_000,
            {},
            dict.fromkeys((-1, 100), ("by a reader", "the text has more than 4,000 characters")),
        ),
        (
            "CONSTRUCT WHERE { <http://x/s> ?p ?o }",
            {"format": "ntriples-c14n"},
            dict.fromkeys((-1, 100), ("by a reader", "canonical N-Triples are sorted first")),
        ),
        (
            JOIN,
            {},
            {
                -1: ("by a reader", "it joins much in what the store holds now"),
                100: (
                    "at once",
                    "but it joins little in what the store holds now; a long answer is left to a reader",
                ),
            },
        ),
        (
            "SELECT * { <http://x/s> <http://x/p>+ ?o }",
            {},
            dict.fromkeys(
                (-1, 100),
                ("by a reader", "the triple pattern has a path, a triple term, or a variable twice"),
            ),
        ),
    ],
)
def test_where_it_would_be_evaluated_is_where_it_is(
    client: httpx.Client,
    backend: ScriptedBackend,
    query: str,
    fields: dict[str, str],
    expected: dict[int, tuple[str, str]],
    entries: int,
) -> None:
    """The classification, against what then happens to the query itself."""
    backend.entries_at_once = entries
    for change in ("INSERT", "DELETE"):  # what was too large for fewer entries stays so in one state
        update = f"{change} DATA {{ <http://x/state> <http://x/of> {entries} }}"
        assert client.post("/update", data={"update": update}).status_code == 200
    evaluated, reason = expected[entries]
    said = explained(client, query, **fields)["classification"]
    assert (said["evaluated"], said["reasons"][-1]) == (evaluated, reason)
    assert of_query(backend, query) == [True]
    fresh = {"Cache-Control": "no-cache"}
    assert client.post("/sparql", data={"query": query, **fields}, headers=fresh).status_code == 200
    assert of_query(backend, query)[1:] == [False] * (evaluated == "by a reader")
    assert said["cacheable"] == (evaluated == "by a reader")


def of_query(backend: ScriptedBackend, query: str) -> list[bool]:
    """Whether the requests to readers for this query are for its explanation; others are for hints."""
    return [request.explain for request in backend.requests if request.query.text == query]


def test_what_differs_each_time_is_not_cacheable(client: httpx.Client) -> None:
    said = explained(client, "SELECT (RAND() AS ?x) {}")["classification"]
    assert (said["repeatable"], said["cacheable"]) == (False, False)


@pytest.mark.parametrize(
    ("query", "fields", "dataset"),
    [
        (
            "SELECT * FROM <http://g/1> FROM NAMED <http://g/2> { ?s ?p ?o }",
            {},
            {"default_graphs": ["http://g/1"], "named_graphs": ["http://g/2"]},
        ),
        (
            "SELECT * FROM <http://g/1> { ?s ?p ?o }",
            {"named-graph-uri": "http://g/3"},
            {"default_graphs": [], "named_graphs": ["http://g/3"]},
        ),
    ],
)
def test_scans_are_of_the_dataset(
    client: httpx.Client, query: str, fields: dict[str, str], dataset: dict[str, list[str]]
) -> None:
    update(client, "INSERT DATA { <urn:s> <urn:p> 1 . GRAPH <http://g/1> { <urn:s> <urn:p> 2, 3 } }")
    found = explained(client, query, **fields)
    assert found["query"]["dataset"] == dataset
    rows = 2 if dataset["default_graphs"] else 0
    assert (found["scans"][0]["quads"], found["evaluation"]["rows"]) == (rows, rows)


@pytest.mark.parametrize(
    ("query", "rows"),
    [("ASK { ?s ?p 1 }", None), ("CONSTRUCT WHERE { ?s ?p 1 }", 1), ("DESCRIBE <urn:s>", 2)],
)
def test_rows_of_other_forms(client: httpx.Client, query: str, rows: int | None) -> None:
    update(client, "INSERT DATA { <urn:s> <urn:p> 1, 2 }")
    assert explained(client, query)["evaluation"]["rows"] == rows


def test_the_text_that_the_engine_gets(client: httpx.Client) -> None:
    found = explained(client, "SELECT * { ?b ?a TRUE }")["query"]
    assert (found["text"], found["engine_text"]) == (
        "SELECT * { ?b ?a TRUE }",
        "SELECT ?b ?a WHERE { ?b ?a true . }",
    )


def test_every_way_to_ask(client: httpx.Client) -> None:
    asked = {"query": CHEAP, "explain": "true"}
    body = {"Content-Type": QUERY}
    answers = [
        client.get("/sparql", params=asked),
        client.get("/sparql", params=asked, headers={"If-None-Match": "*"}),
        client.post("/sparql", data=asked),
        client.post("/sparql?explain=true", data={"query": CHEAP}),
        client.post("/sparql?explain=true", content=CHEAP, headers=body),
        client.get("/sparql", params={**asked, "min_index": 0, "timeout": 5}),
    ]
    assert [answer.status_code for answer in answers] == [200] * len(answers)
    for answer in answers:
        assert answer.json()["evaluation"]["outcome"] == "ok"
    head = client.head("/sparql", params=asked)
    assert (head.status_code, head.headers["cache-control"], head.content) == (200, "no-store", b"")


def test_an_explanation_is_never_kept_nor_taken_for_the_answer(client: httpx.Client) -> None:
    for _ in range(2):
        assert "evaluation" in explained(client, JOIN)
        answer = client.post("/sparql", data={"query": JOIN, "explain": "false"})
        assert answer.json()["head"] == {"vars": ["o"]}


@pytest.mark.parametrize("value", ["", "1", "True", "yes"])
def test_a_value_that_is_none(client: httpx.Client, value: str) -> None:
    for answer in (
        client.get("/sparql", params={"query": CHEAP, "explain": value}),
        client.post("/sparql", data={"query": CHEAP, "explain": value}),
        client.post("/sparql", params={"explain": value}, content=CHEAP, headers={"Content-Type": QUERY}),
    ):
        assert answer.status_code == 400
        assert "explain" in error_of(answer)
    assert client.get("/sparql?query=ASK{}&explain=true&explain=true").status_code == 400


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("SELECT", 400, "syntax error"),
        ("ASK { " + "?s ?p 1 . " * 60 + "}", 400, "security.max_patterns_per_group"),
        ("ASK { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", 403, "SERVICE to"),
        ("ASK { SERVICE ?where { ?s ?p ?o } }", 403, "SERVICE to"),
    ],
)
def test_what_is_refused_is_not_explained(
    client: httpx.Client, query: str, status: int, message: str
) -> None:
    answer = client.post("/sparql", data={"query": query, "explain": "true"})
    assert answer.status_code == status
    assert message in error_of(answer)


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        (Overloaded("too much is waiting", 7), 503, "overloaded"),
        (QueryTimeout("no reader was free"), 503, "timeout"),
        (HostNotAllowed("SERVICE", "http://x"), 403, "rejected"),
    ],
)
def test_what_no_reader_begins_is_not_explained(
    client: httpx.Client, backend: ScriptedBackend, error: GraphDBError, status: int, outcome: str
) -> None:
    backend.answer_with(error)
    before = outcomes(client)
    answer = client.post("/sparql", data={"query": CHEAP, "explain": "true"})
    assert answer.status_code == status
    assert outcomes(client).get(outcome, 0) == before.get(outcome, 0) + 1


@pytest.mark.parametrize(
    ("error", "outcome", "message"),
    [
        (QueryTimeout("anything"), "timeout", "the query took longer than 1.5 s and was ended"),
        (QueryMemoryExceeded("more than 64 MB"), "memory", "more than 64 MB"),
        (QueryCancelled("the query was cancelled"), "cancelled", "the query was cancelled"),
        (EvaluationFailed("the engine will not"), "failed", "the engine will not"),
        (UnavailableError("the reader ended (signal 11)"), "failed", "the reader ended (signal 11)"),
    ],
)
@pytest.mark.parametrize("counted", [True, False])
def test_what_the_evaluation_meets_is_part_of_the_explanation(
    client: httpx.Client,
    backend: ScriptedBackend,
    log_directory: Path,
    error: GraphDBError,
    outcome: str,
    message: str,
    counted: bool,
) -> None:
    stream = ScriptedStream(*([b'{"quads": [100000, null]}'] * counted), error, snapshot_index=7)
    backend.answer_with(stream)
    before = outcomes(client)
    text = f"{JOIN} # {message} {counted}"
    found = explained(client, text, timeout="1.5")
    assert found["scans"] == [
        {"pattern": "?s <http://x/p> ?o", "quads": 100_000 if counted else None, "complete": False},
        {"pattern": "?s <http://x/q> ?r", "quads": None, "complete": False},
    ]
    evaluation = found["evaluation"]
    assert (evaluation["outcome"], evaluation["error"], evaluation["rows"]) == (outcome, message, None)
    assert outcomes(client) == before | {outcome: before.get(outcome, 0) + 1}
    assert stream.is_closed
    noted = slow_query(log_directory, text)
    assert (noted["outcome"], noted["where"], noted["snapshot_index"]) == (outcome, "script", 7)


def test_a_bug_is_no_explanation(client: httpx.Client, backend: ScriptedBackend) -> None:
    backend.answer_with(ScriptedStream(RuntimeError("a bug")))
    answer = client.post("/sparql", data={"query": CHEAP, "explain": "true"})
    assert (answer.status_code, error_of(answer)) == (500, "internal server error")


def test_what_the_engine_refuses(client: httpx.Client) -> None:
    """Its message is that of the query itself, which is 400."""
    query = 'SELECT * { ?s ?p "a"@a-b-c . ?s ?q 1 }'
    asked = client.post("/sparql", data={"query": query})
    assert asked.status_code == 400
    found = explained(client, query)
    assert [scan["quads"] for scan in found["scans"]] == [None, 0]
    assert (found["evaluation"]["outcome"], found["evaluation"]["error"]) == ("failed", error_of(asked))


def test_past_the_time_limit(client: httpx.Client, backend: ScriptedBackend) -> None:
    s, p = NamedNode("http://x/s"), NamedNode("http://x/p")
    backend.store._store.extend(Quad(s, p, Literal(f"number {n}"), DefaultGraph()) for n in range(230))
    found = explained(client, SILENT, timeout="0.4")
    assert [scan["quads"] for scan in found["scans"]] == [230, 230, 230]
    assert found["evaluation"]["outcome"] == "timeout"
    assert found["evaluation"]["error"] == "the query took longer than 0.4 s and was ended"
    assert 0.1 < found["evaluation"]["seconds"] <= 0.6
    assert backend.running_queries() == []
