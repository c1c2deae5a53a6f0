"""What a notebook gets: whole answers, whichever way they are evaluated, or a named error."""

import asyncio
import json
from typing import Any

import pytest

import serve.graph.notebook_answers as notebook_answers
from graphdb.config.limits import GateLimits
from graphdb.errors import (
    InvalidParameter,
    LimitExceeded,
    QuerySyntaxError,
    QueryTimeout,
    RdfSyntaxError,
    UnknownGraph,
)
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.scripted_backend import HANG, ScriptedBackend, ScriptedStream

CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
NOT_CHEAP = "SELECT ?o { ?s ?p ?o . ?s ?q ?o }"


@pytest.fixture
def backend() -> ScriptedBackend:
    backend = ScriptedBackend()
    asyncio.run(
        backend.update(parse_update('INSERT DATA { <http://x/s> <http://x/p> "a" }', None), Dataset())
    )
    return backend


def answer(backend: ScriptedBackend, text: str, form: str = "SELECT", timeout_s: float = 10) -> bytes:
    return asyncio.run(notebook_answers.answer(backend, text, form, GateLimits(), timeout_s))


@pytest.mark.parametrize(("query", "readers"), [(CHEAP, 0), (NOT_CHEAP, 1)])
def test_rows(backend: ScriptedBackend, query: str, readers: int) -> None:
    rows = b'{"head":{"vars":["o"]},"results":{"bindings":[{"o":{"type":"literal","value":"a"}}]}}'
    assert answer(backend, query) == rows
    assert len(backend.requests) == readers
    assert backend.running_queries() == []


def test_other_forms(backend: ScriptedBackend) -> None:
    triple = b'<http://x/s> <http://x/p> "a" .\n'
    assert answer(backend, "ASK {}", "ASK") == b'{"head":{},"boolean":true}'
    assert answer(backend, "CONSTRUCT WHERE { ?s ?p ?o }", "CONSTRUCT") == triple
    assert answer(backend, "DESCRIBE <http://x/s>", "CONSTRUCT") == triple


def test_a_cheap_query_with_a_long_answer(backend: ScriptedBackend) -> None:
    values = ", ".join(f'"{number:01000}"' for number in range(200))
    update = parse_update(f"INSERT DATA {{ <http://x/s> <http://x/p> {values} }}", None)
    asyncio.run(backend.update(update, Dataset()))
    assert answer(backend, CHEAP).count(b'"value"') == 201
    assert len(backend.requests) == 1


@pytest.mark.parametrize(
    ("text", "form", "error"),
    [
        ("SELECT", "SELECT", QuerySyntaxError),
        ("ASK {}", "SELECT", InvalidParameter),
        ("SELECT * {}", "CONSTRUCT", InvalidParameter),
        ("SELECT * {" + "{" * 100 + "}" * 100 + "}", "SELECT", LimitExceeded),
    ],
)
def test_what_is_refused(backend: ScriptedBackend, text: str, form: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        answer(backend, text, form)


def test_an_answer_too_large(backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_answers, "RESULT_BYTES_MAX", 10)
    stream = ScriptedStream(b"12345", b"67890", b"1")
    backend.answer_with(stream)
    with pytest.raises(LimitExceeded):
        answer(backend, NOT_CHEAP)
    assert stream.is_closed


def test_a_reader_that_hangs(backend: ScriptedBackend) -> None:
    stream = ScriptedStream(b"12345", HANG)
    backend.answer_with(stream)
    with pytest.raises(QueryTimeout):
        answer(backend, NOT_CHEAP, timeout_s=0.1)
    assert stream.is_closed


SHAPES = """PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX x: <http://x/>
x:S sh:targetSubjectsOf x:p ; sh:property [ sh:path x:p ; sh:nodeKind sh:IRI ] .
"""


def report(
    backend: ScriptedBackend,
    shapes: str | None = SHAPES,
    shapes_graph: str | None = None,
    graph: str = "default",
    timeout_s: float = 10,
) -> dict[str, Any]:
    found = asyncio.run(notebook_answers.report(backend, shapes, shapes_graph, graph, timeout_s))
    parsed: dict[str, Any] = json.loads(found)
    return parsed


def test_a_report(backend: ScriptedBackend) -> None:
    [result] = report(backend)["results"]
    assert (result["focusNode"], result["resultPath"]) == ("http://x/s", "http://x/p")
    assert not report(backend, graph="union")["conforms"]
    copy = parse_update("INSERT DATA { GRAPH <http://x/g> { <http://x/n> <http://x/o> 1 } }", None)
    asyncio.run(backend.update(copy, Dataset()))
    assert report(backend, graph="http://x/g")["conforms"]
    assert report(backend, None, "http://x/g")["conforms"]
    assert backend.running_queries() == []


@pytest.mark.parametrize(
    ("shapes", "shapes_graph", "graph", "error"),
    [
        (None, None, "default", InvalidParameter),
        (SHAPES, "http://x/g", "default", InvalidParameter),
        (None, "g", "default", InvalidParameter),
        (SHAPES, None, "all", InvalidParameter),
        (SHAPES, None, "http://x/none", UnknownGraph),
        (SHAPES[:-5], None, "default", RdfSyntaxError),
    ],
)
def test_what_is_no_report(
    backend: ScriptedBackend, shapes: str | None, shapes_graph: str | None, graph: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        report(backend, shapes, shapes_graph, graph)
    assert backend.running_queries() == []
