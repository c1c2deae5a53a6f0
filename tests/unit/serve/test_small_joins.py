"""Queries that are small joins are answered at once, by what the store holds; the others go to a reader."""

from collections.abc import Iterator

import httpx
import pytest
from pyoxigraph import QuerySolutions

from graphdb.config import Settings
from graphdb.config.service import Columns
from graphdb.node import Evaluated
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import SmallJoin
from serve.graph import query_answers
from serve.graph.query_answers import answer_here
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend

PREFIX = "PREFIX : <urn:> "
QUERY = {"Content-Type": "application/sparql-query"}
DATA = (
    PREFIX
    + "INSERT DATA { :a :knows :b , :c . :b :name 'B' . :c :name 'C' ; :nick 'c' . "
    + (" ".join(f":hub :knows :{n} . :{n} :name {n} ." for n in range(100)) + "}")
)


@pytest.fixture
def backend() -> MemoryBackend:
    backend = MemoryBackend()
    backend.entries_at_once = 128
    return backend


@pytest.fixture
def client(backend: MemoryBackend) -> Iterator[httpx.Client]:
    with (
        serving(build_app(backend, Settings())) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        update = {"Content-Type": "application/sparql-update"}
        assert client.post("/update", content=DATA, headers=update).status_code == 200
        yield client


def readers_asked(client: httpx.Client, backend: MemoryBackend, text: str) -> tuple[int, httpx.Response]:
    """How many queries went to a reader for this one, and its answer."""
    asked = 0
    start = backend.start_query

    async def counted(request):  # type: ignore[no-untyped-def]
        nonlocal asked
        asked += 1
        return await start(request)

    backend.start_query = counted  # type: ignore[method-assign]
    try:
        answer = client.get("/sparql", params={"query": PREFIX + text})
    finally:
        del backend.start_query
    assert answer.status_code == 200, answer.text
    return asked, answer


@pytest.mark.parametrize(
    ("text", "readers", "rows"),
    [
        (":a :knows ?x . ?x :name ?n", 0, 2),
        (":a :knows ?x . ?x :name ?n OPTIONAL { ?x :nick ?k } FILTER(?n > 'A')", 0, 2),
        (":hub :knows ?x . ?x :name ?n", 1, 100),
        (":a :knows ?x . ?x :name ?n FILTER(REGEX(?n, 'B'))", 1, 1),
    ],
)
def test_by_what_the_store_holds(
    client: httpx.Client, backend: MemoryBackend, text: str, readers: int, rows: int
) -> None:
    asked, answer = readers_asked(client, backend, f"SELECT * {{ {text} }}")
    assert (asked, len(answer.json()["results"]["bindings"])) == (readers, rows)


def test_it_grows_too_large(client: httpx.Client, backend: MemoryBackend) -> None:
    query = "SELECT (COUNT(*) AS ?n) { :a :knows ?x . ?x :name ?n }"
    assert readers_asked(client, backend, query)[0] == 0
    many = PREFIX + "INSERT DATA { " + " ".join(f":b :name {n} ." for n in range(200)) + " }"
    assert client.post("/update", data={"update": many}).status_code == 200
    assert readers_asked(client, backend, query)[0] == 1


def test_a_dataset_of_the_request_is_not_judged(client: httpx.Client, backend: MemoryBackend) -> None:
    fields = {"query": PREFIX + "SELECT * { :a :knows ?x . ?x :name ?n }", "default-graph-uri": "urn:none"}
    assert client.get("/sparql", params=fields).json()["results"]["bindings"] == []


def test_construct(client: httpx.Client, backend: MemoryBackend) -> None:
    asked, answer = readers_asked(
        client, backend, "CONSTRUCT { ?x :called ?n } { :a :knows ?x . ?x :name ?n }"
    )
    assert (asked, sorted(answer.json())) == (
        0,
        ['<urn:b> <urn:called> "B" .', '<urn:c> <urn:called> "C" .'],
    )


def test_what_is_too_large_is_looked_at_once_for_each_state(
    client: httpx.Client, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, looked = "SELECT * { :hub :knows ?x . ?x :name ?n }", list[int]()
    answer = SmallJoin.answer

    def counted(join: SmallJoin, store: QuadStore, entries_max: int) -> QuerySolutions | None:
        looked.append(entries_max)
        return answer(join, store, entries_max)

    monkeypatch.setattr(SmallJoin, "answer", counted)
    assert [readers_asked(client, backend, query)[0] for _ in range(3)] == [1, 0, 0], "then it is kept"
    assert len(looked) == 1
    assert client.post("/update", data={"update": PREFIX + "DELETE WHERE { :hub ?p ?o }"}).status_code == 200
    assert [readers_asked(client, backend, query)[0] for _ in range(3)] == [0, 0, 0]
    assert len(looked) == 4


@pytest.mark.parametrize("by_names", [True, False])
def test_what_is_too_long_is_made_here_once_for_all_names(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch, by_names: bool
) -> None:
    made = list[bool]()  # for each answer that was made on the event loop, whether it was short

    def noted(evaluated: Evaluated, fmt: ResultFormat) -> bytes | None:
        body = answer_here(evaluated, fmt)
        made.append(body is not None)
        return body

    monkeypatch.setattr(query_answers, "answer_here", noted)
    settings = Settings(columns=Columns(plans_kept=by_names))
    many = PREFIX + "INSERT DATA { " + " ".join(f":s{n} :many {n} ." for n in range(2000)) + " }"
    with (
        serving(build_app(backend, settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):

        def asked(name: str, limit: int) -> list[bool]:
            made.clear()
            text = f"SELECT ?{name} ?{name}o {{ ?{name} :many ?{name}o }} LIMIT {limit}"
            answer = client.post("/sparql", content=PREFIX + text, headers=QUERY).json()
            assert answer["head"]["vars"] == [name, f"{name}o"]
            assert len(answer["results"]["bindings"]) == limit
            assert all(row.keys() == {name, f"{name}o"} for row in answer["results"]["bindings"])
            return made.copy()

        again = [] if by_names else [False]
        for change in range(2):
            assert client.post("/update", data={"update": many}).status_code == 200
            assert asked(f"a{change}", 1000) == [False]
            assert asked(f"b{change}", 1000) == again
            assert asked(f"c{change}", 10) == [True]
            assert asked(f"d{change}", 10) == [True]
            assert asked(f"e{change}", 1000) == again
            assert asked(f"b{change}", 1000) == []  # from the cache, or known to be long
            many = PREFIX + "INSERT DATA { :s0 :many :other }"
