"""The SPARQL query behind an operation goes the way of `/sparql`: readers, limits, levels, what fails."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import EvaluationFailed, OutcomeUnknown, Overloaded, QueryTimeout, ShapesViolated
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.scripted_backend import HANG, ScriptedBackend, ScriptedStream
from tests.support.timing import HANG_S
from tests.unit.serve.graphql.conftest import LIBRARY, Port

TITLES = "{ books { edges { node { title } } } }"
NEW = {"Accept": "application/graphql-response+json"}


@pytest.fixture(scope="module")
def served() -> Iterator[Port]:
    backend = ScriptedBackend()
    settings = Settings.model_validate({"readers": {"result_cache_mb": 0}})
    with (
        serving(build_app(backend, settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as http,
    ):
        port = Port(http, backend)
        port.update(f"INSERT DATA {{ {LIBRARY} }}")
        yield port


@pytest.fixture
def scripted(served: Port) -> Iterator[ScriptedBackend]:
    assert isinstance(served.backend, ScriptedBackend)
    yield served.backend
    served.backend.forget()


def test_one_operation_is_one_query(served: Port, scripted: ScriptedBackend) -> None:
    served.data("{ books { totalCount edges { node { title author { name } } } } persons { totalCount } }")
    (request,) = scripted.requests
    assert request.query.form == "SELECT"
    assert request.timeout_s > 25


def test_the_answer_tells_its_index(served: Port) -> None:
    answer = served.post(TITLES)
    assert answer.headers["x-snapshot-index"] == str(served.backend.snapshot_index())
    assert served.post("{ __typename }").headers["x-snapshot-index"] == str(served.backend.snapshot_index())


@pytest.mark.parametrize("error", [Overloaded("busy", 7), QueryTimeout("late", 7)])
def test_what_may_work_later_is_503(served: Port, scripted: ScriptedBackend, error: Exception) -> None:
    scripted.answer_with(error)
    for headers in (NEW, {}):
        answer = served.http.post("/graphql", json={"query": TITLES}, headers=headers)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == ("7" if isinstance(error, Overloaded) else "1")
        assert answer.json()["errors"][0]["extensions"]["code"] == "SPARQL_ERROR"


def test_a_query_that_fails_is_sparql_error(served: Port, scripted: ScriptedBackend) -> None:
    scripted.answer_with(EvaluationFailed("no"))
    assert served.codes(TITLES) == ["SPARQL_ERROR"]


def test_an_answer_that_breaks_off_is_no_answer(served: Port, scripted: ScriptedBackend) -> None:
    scripted.answer_with(ScriptedStream(b"?b\t?s\t?v\n", b"0\t<http://e/emma>\t", QueryTimeout("late")))
    answer = served.post(TITLES)
    assert answer.status_code == 503
    assert answer.json()["data"] is None


def test_the_time_limit_may_be_shortened(served: Port, scripted: ScriptedBackend) -> None:
    scripted.answer_with(ScriptedStream(HANG))
    answer = served.http.post("/graphql?timeout=0.2", json={"query": TITLES}, headers=NEW)
    assert answer.status_code == 503
    assert "0.2 s" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize("bound", ["timeout=x", "min_index=-1", "consistency=strong"])
def test_a_bound_that_means_nothing_is_400(served: Port, bound: str) -> None:
    answer = served.http.post(f"/graphql?{bound}", json={"query": TITLES}, headers=NEW)
    assert answer.status_code == 400
    assert bound.partition("=")[0] in answer.json()["error"]


def test_min_index_is_waited_for(served: Port) -> None:
    now = served.backend.snapshot_index()
    assert served.http.post(f"/graphql?min_index={now}", json={"query": TITLES}).status_code == 200
    late = served.http.post(f"/graphql?min_index={now + 5}&timeout=0.2", json={"query": TITLES})
    assert late.status_code == 503


def test_the_graph_alone_counts_never_the_parameters_of_sparql(served: Port) -> None:
    asked = "/graphql?default-graph-uri=http://e/other&format=json"
    assert served.http.post(asked, json={"query": TITLES}).json()["data"]["books"]["edges"] != []


def test_refused_operations_are_counted(opened: Callable[..., Port]) -> None:
    port = opened()
    port.post("{")
    port.post("{ cats }")
    found = [line for line in port.http.get("/metrics").text.splitlines() if 'outcome="rejected"' in line]
    assert [line.split()[-1] for line in found if "quer" in line][:1] == ["2.0"]


def test_what_is_stored_but_cannot_be_read_is_told_as_such(served: Port, scripted: ScriptedBackend) -> None:
    scripted.answer_with(QueryTimeout("late"))
    answer = served.post('mutation { createPerson(input: {id: "http://e/new", name: "New"}) { name } }')
    assert answer.status_code == 200
    found = answer.json()
    assert found["data"] is None
    [error] = found["errors"]
    assert error["message"].startswith("The change is stored")
    assert error["extensions"]["code"] == "SPARQL_ERROR"
    assert found["extensions"]["affected_triples"] == 2
    assert found["extensions"]["snapshot_index"] == served.backend.snapshot_index()
    scripted.forget()
    assert served.data('mutation { deletePerson(id: "http://e/new") { success } }')


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ShapesViolated("the write violates the shapes"), 200, "VALIDATION_FAILED"),
        (Overloaded("busy", 7), 503, "SPARQL_ERROR"),
        (OutcomeUnknown("the leader is gone"), 503, "SPARQL_ERROR"),
    ],
)
def test_a_write_that_fails(
    served: Port, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    async def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(served.backend, "edit", fail)
    answer = served.post('mutation { createPerson(input: {name: "New"}) { name } }')
    assert answer.status_code == status
    assert answer.json()["data"] is None
    [found] = answer.json()["errors"]
    assert (found["extensions"]["code"], str(error) in found["message"]) == (code, True)
