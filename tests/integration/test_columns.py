"""The column view of a running service: its answers over HTTP; killed and damaged, it comes back."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

COUNTED = """PREFIX : <urn:c:> SELECT ?kind (COUNT(?s) AS ?n) (SUM(?value) AS ?sum)
{ ?s :kind ?kind ; :value ?value } GROUP BY ?kind ORDER BY ?kind"""
SUBJECTS = 3_000
NOT_CACHED = {"Cache-Control": "no-cache"}


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose column view follows, with subjects of three kinds."""
    # on a busy machine a reader may well be faster
    by_form = {"GRAPHDB_COLUMNS__CHOSEN_BY_COST": "false"}
    service = Service(tmp_path_factory.mktemp("columns") / "data", environment=by_form)
    try:
        service.start()
        lines = (
            f"<urn:c:s{number}> <urn:c:kind> <urn:c:k{number % 3}> .\n"
            f'<urn:c:s{number}> <urn:c:value> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
            for number in range(SUBJECTS)
        )
        service.load("".join(lines).encode())
        service.wait_until(lambda: explained(service)["path"] == "columns", 60)
        yield service
    finally:
        service.close()


def explained(service: Service, query: str = COUNTED) -> dict[str, Any]:
    """What the service says of the way by the columns."""
    form = {"query": query, "explain": "true"}
    answer = httpx.post(f"{service.url}/sparql", data=form, timeout=HANG_S, trust_env=False)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["columns"]
    return found


def counted(service: Service, min_index: int = 0) -> tuple[list[tuple[str, int, int]], int]:
    """The rows, of min_index or later, from no cache; and the index that they are of."""
    form = {"query": COUNTED, "min_index": str(min_index)}
    answer = httpx.post(
        f"{service.url}/sparql", data=form, headers=NOT_CACHED, timeout=HANG_S, trust_env=False
    )
    assert answer.status_code == 200, answer.text
    rows = [
        {name: cell["value"] for name, cell in row.items()} for row in answer.json()["results"]["bindings"]
    ]
    found = [(row["kind"].removeprefix("urn:c:"), int(row["n"]), int(row["sum"])) for row in rows]
    return found, int(answer.headers["X-Snapshot-Index"])


def expected(service: Service) -> list[tuple[str, int, int]]:
    """What is there, counted here of the graph as it is read by pattern."""
    kinds = {row["s"]: row["o"] for row in service.select("SELECT * { ?s <urn:c:kind> ?o }")}
    values = {row["s"]: row["o"] for row in service.select("SELECT * { ?s <urn:c:value> ?o }")}
    of_kind: dict[str, list[int]] = {}
    for subject, kind in kinds.items():
        if subject in values:
            of_kind.setdefault(kind.removeprefix("urn:c:"), []).append(int(values[subject]))
    return sorted((kind, len(found), sum(found)) for kind, found in of_kind.items())


@contextmanager
def no_readers(service: Service) -> Iterator[None]:
    """Meanwhile the readers stand still: what is answered, the columns answer."""
    pids = service.pids("QueryKeeper") + service.pids("actors.readers.evaluator")
    assert pids
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_the_columns_answer_and_explain_says_so(counting: Service) -> None:
    told = explained(counting)
    assert (told["path"], told["reason"]) == ("columns", None)
    assert told["plan"]
    with no_readers(counting):
        rows, _ = counted(counting)
    assert rows == expected(counting)
    refused = explained(counting, "DESCRIBE ?s { ?s <urn:c:kind> ?kind . ?s <urn:c:value> ?value }")
    assert (refused["path"], refused["reason"]) == ("reader", "DESCRIBE")


@pytest.mark.parametrize(
    "query",
    [
        COUNTED,
        "SELECT (COUNT(*) AS ?n) { ?s <urn:c:kind> ?kind ; <urn:c:value> ?value }",  # from arrays
        "SELECT ?s ?value { ?s <urn:c:kind> <urn:c:k1> ; <urn:c:value> ?value } ORDER BY ?value",  # long
        "DESCRIBE ?s { ?s <urn:c:kind> <urn:c:k1> ; <urn:c:value> 1 }",  # by a reader
    ],
)
def test_an_answer_without_a_task_is_the_same(counting: Service, query: str) -> None:
    """A header that is not known gives a request a task (`columns.begun_at_once`)."""
    url, form = f"{counting.url}/sparql", {"Content-Type": "application/sparql-query"}
    with httpx.Client(trust_env=False, timeout=HANG_S) as client:
        answers = [
            client.post(url, content=query.replace("?s", f"?s{number % 2}"), headers=form | other)
            for number, other in enumerate([{}, {}, {}, {"X-Other": "y"} | NOT_CACHED])
        ]
    rows = [sorted(answer.content.replace(b"s1", b"s0").split(b"}")) for answer in answers]
    assert all(answer.status_code == 200 for answer in answers)
    assert all(each == rows[0] for each in rows)


def test_the_next_query_sees_an_update(counting: Service) -> None:
    for number in range(10):
        text = f"INSERT DATA {{ <urn:c:new{number}> <urn:c:kind> <urn:c:new> ; <urn:c:value> {number} }}"
        index = counting.update(text)["snapshot_index"]
        with no_readers(counting):
            rows, seen = counted(counting, index)
        assert seen >= index
        assert ("new", number + 1, sum(range(number + 1))) in rows
    counting.update("DELETE WHERE { ?s <urn:c:kind> <urn:c:new> ; <urn:c:value> ?value }")
    with no_readers(counting):
        rows, _ = counted(counting)
    assert [kind for kind, _, _ in rows] == ["k0", "k1", "k2"]
    assert rows == expected(counting)


@pytest.mark.parametrize("process", ["QueryKeeper", "actors.columns.engine"])
def test_a_view_that_is_killed_comes_back_while_queries_are_answered(counting: Service, process: str) -> None:
    before = expected(counting)
    (killed,) = counting.kill(process)
    for _ in range(5):
        assert counted(counting)[0] == before
    counting.update(f"INSERT DATA {{ <urn:c:killed:{process}> <urn:c:kind> <urn:c:k0> ; <urn:c:value> 7 }}")
    assert counted(counting)[0] == expected(counting) != before
    counting.wait_until(lambda: explained(counting)["path"] == "columns", 60)
    assert counting.pids(process) != [killed]
    with no_readers(counting):
        rows, _ = counted(counting)
    assert rows == expected(counting)


def test_a_damaged_view_is_made_anew_at_the_start(counting: Service) -> None:
    before = expected(counting)
    counting.stop()
    directory = counting.data_dir / "columns"
    database, left = directory / "view.duckdb", directory / "left"
    content = bytearray(database.read_bytes())
    third = len(content) // 3
    content[third : third + 300_000] = bytes(len(content[third : third + 300_000]))
    database.write_bytes(content)
    left.touch()  # goes with all that is in the directory when the view is made anew
    counting.start()
    assert counted(counting)[0] == before
    counting.wait_until(lambda: explained(counting)["path"] == "columns", 60)
    with no_readers(counting):
        rows, _ = counted(counting)
    assert rows == before
    assert not left.exists()
