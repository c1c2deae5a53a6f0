"""Answers that are kept: the cache by itself against a naive twin, and what a client sees of it."""

from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.config import Settings
from graphdb.errors import EvaluationFailed
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from serve.graph.caching import CacheKey, ResultCache
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.scripted_backend import ScriptedBackend, ScriptedStream
from tests.unit.serve.conftest import update

BYTES_MAX = 80_000
OVERHEAD = 1_000 + len("http://x/")


def key(number: int) -> CacheKey:
    """Every fourth is of a state of the past."""
    is_past = number % 4 == 0
    return CacheKey(f"{number:04}", "http://x/", Dataset(), ResultFormat.JSON, is_past=is_past)


class Twin:
    """The same promises, kept in a list: the least recently used first."""

    def __init__(self) -> None:
        self.index, self.kept = -1, list[tuple[CacheKey, bytes]]()

    @property
    def size(self) -> int:
        return sum(OVERHEAD + len(key.text) + len(answer) for key, answer in self.kept)

    def get(self, wanted: CacheKey, index: int) -> bytes | None:
        may_be_there = wanted.is_past or index == self.index
        found = [pair for pair in self.kept if pair[0] == wanted and may_be_there]
        for pair in found:
            self.kept.remove(pair)
            self.kept.append(pair)
        return found[0][1] if found else None

    def put(self, key: CacheKey, index: int, answer: bytes) -> None:
        is_late = index < self.index and not key.is_past
        if is_late or OVERHEAD + len(key.text) + len(answer) > BYTES_MAX // 8:
            return
        if index > self.index and not key.is_past:
            self.index, self.kept = index, [pair for pair in self.kept if pair[0].is_past]
        if all(kept != key for kept, _ in self.kept):
            self.kept.append((key, answer))
        while self.size > BYTES_MAX:
            del self.kept[0]


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 3), st.integers(0, 12_000)), max_size=60
)


@given(STEPS)
def test_the_cache_and_its_twin(steps: list[tuple[bool, int, int, int]]) -> None:
    cache, twin = ResultCache(BYTES_MAX), Twin()
    for is_put, number, index, size in steps:
        if is_put:
            answer = bytes(size)
            cache.put(key(number), index, [answer[:10], answer[10:]])
            twin.put(key(number), index, answer)
        else:
            found = cache.get(key(number), index)
            assert (None if found is None else b"".join(found)) == twin.get(key(number), index)
        assert (len(cache), cache.size) == (len(twin.kept), twin.size)
        assert cache.size <= BYTES_MAX


def test_the_graphs_of_a_dataset_take_room() -> None:
    graphs = tuple(NamedNode(f"http://x/{number}") for number in range(50))
    cache = ResultCache(BYTES_MAX)
    cache.put(CacheKey("", "", Dataset(graphs[:25], graphs[25:]), ResultFormat.JSON), 1, [b""])
    assert (len(cache), cache.size) == (0, 0)  # over 10,000 bytes, an eighth of what there is
    cache.put(CacheKey("", "", Dataset(graphs[:25]), ResultFormat.JSON), 1, [b""])
    assert (len(cache), cache.size) == (1, 1_000 + sum(200 + len(graph.value) for graph in graphs[:25]))


@pytest.mark.parametrize(
    "other",
    [
        CacheKey("0002", "http://x/", Dataset(), ResultFormat.JSON),
        CacheKey("0001", "http://y/", Dataset(), ResultFormat.JSON),
        CacheKey("0001", "http://x/", Dataset((NamedNode("http://g/1"),)), ResultFormat.JSON),
        CacheKey("0001", "http://x/", Dataset((), (NamedNode("http://g/1"),)), ResultFormat.JSON),
        CacheKey("0001", "http://x/", Dataset(), ResultFormat.PLAIN_JSON),
        CacheKey("0001", "http://x/", Dataset(), ResultFormat.JSON, "somebody's"),
    ],
)
def test_what_an_answer_depends_on(other: CacheKey) -> None:
    cache = ResultCache(BYTES_MAX)
    cache.put(key(1), 5, [b"answer"])
    assert cache.get(key(1), 5) == (b"answer",)
    assert cache.get(other, 5) is None
    assert cache.get(key(1), 4) is None
    assert cache.get(key(1), 6) is None


# Over HTTP


QUERY = "SELECT ?o { ?s ?p ?o . ?s ?q ?o } ORDER BY ?o"
CHUNK = b"x" * 65_536


@pytest.fixture(scope="module")
def backend() -> ScriptedBackend:
    return ScriptedBackend()


@pytest.fixture(scope="module")
def base_url(backend: ScriptedBackend) -> Iterator[str]:
    settings = Settings.model_validate({"readers": {"result_cache_mb": 4}})
    with serving(build_app(backend, settings)) as url:
        yield url


@pytest.fixture(autouse=True)
def data(client: httpx.Client, backend: ScriptedBackend) -> Iterator[None]:
    update(client, 'INSERT DATA { <http://x/s> <http://x/p> "a", "b" }')
    backend.forget()
    yield
    backend.forget()


def ask(client: httpx.Client, query: str = QUERY, **headers: str) -> httpx.Response:
    answer = client.get("/sparql", params={"query": query}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def test_the_same_again(client: httpx.Client, backend: ScriptedBackend) -> None:
    first, second = ask(client), ask(client)
    assert second.content == first.content
    names = ("content-type", "content-length", "etag", "x-snapshot-index", "vary", "cache-control")
    assert {name: second.headers[name] for name in names} == {name: first.headers[name] for name in names}
    assert first.headers["cache-control"] == "no-cache"
    by_form = client.post("/sparql", data={"query": QUERY})
    assert by_form.content == first.content
    assert "etag" not in by_form.headers
    assert len(backend.requests) == 1


def test_another_state(client: httpx.Client, backend: ScriptedBackend) -> None:
    before = ask(client)
    update(client, 'INSERT DATA { <http://x/s> <http://x/p> "c" }')
    after = ask(client)
    assert len(after.json()["results"]["bindings"]) == len(before.json()["results"]["bindings"]) + 1 == 3
    assert int(after.headers["x-snapshot-index"]) == int(before.headers["x-snapshot-index"]) + 1
    assert len(backend.requests) == 2


def test_what_makes_another_request(client: httpx.Client, backend: ScriptedBackend) -> None:
    for parameters, headers in (
        ({"query": QUERY}, {}),
        ({"query": QUERY + " "}, {}),
        ({"query": QUERY, "format": "csv"}, {}),
        ({"query": QUERY, "default-graph-uri": "http://g/1"}, {}),
        ({"query": QUERY, "named-graph-uri": "http://g/1"}, {}),
        ({"query": QUERY}, {"Host": "other.example"}),
    ):
        for _ in range(2):
            assert client.get("/sparql", params=parameters, headers=headers).status_code == 200
    assert len(backend.requests) == 6


@pytest.mark.parametrize(
    ("headers", "evaluations"),
    [
        ({"Cache-Control": "no-cache"}, 2),
        ({"Cache-Control": "max-age=0, No-Cache"}, 2),
        ({"Cache-Control": "no-store"}, 2),
        ({"Pragma": "no-cache"}, 2),
        ({"Cache-Control": "max-age=0"}, 1),
    ],
)
def test_a_client_that_wants_it_fresh(
    client: httpx.Client, backend: ScriptedBackend, headers: dict[str, str], evaluations: int
) -> None:
    assert ask(client).content == ask(client, **headers).content
    assert len(backend.requests) == evaluations


def test_a_fresh_answer_is_kept_unless_it_must_not(client: httpx.Client, backend: ScriptedBackend) -> None:
    for headers, evaluations in (({"Cache-Control": "no-store"}, 2), ({"Cache-Control": "no-cache"}, 3)):
        ask(client, **headers)
        ask(client)
        assert len(backend.requests) == evaluations


@pytest.mark.parametrize(
    "query", ["SELECT ?o (RAND() AS ?x) { ?s ?p ?o }", "SELECT ?o (NOW() AS ?n) { ?s ?p ?o }"]
)
def test_what_is_not_repeatable(client: httpx.Client, backend: ScriptedBackend, query: str) -> None:
    assert ask(client, query).content != ask(client, query).content
    assert len(backend.requests) == 2


def test_a_long_answer(client: httpx.Client, backend: ScriptedBackend) -> None:
    """More than one piece, and less than an eighth of 4 MB."""
    s, p = NamedNode("http://x/s"), NamedNode("http://x/p")
    quads = (Quad(s, p, Literal(f"{n:0500}"), DefaultGraph()) for n in range(500))
    backend.store._store.extend(quads)
    first, second = ask(client), ask(client)
    assert len(first.content) > 3 * len(CHUNK)
    assert second.content == first.content
    assert int(second.headers["content-length"]) == len(first.content)
    assert len(backend.requests) == 1


def now(backend: ScriptedBackend) -> int:
    return backend.snapshot_index()


def test_an_answer_too_long(client: httpx.Client, backend: ScriptedBackend) -> None:
    for _ in range(2):
        backend.answer_with(ScriptedStream(*[CHUNK] * 8, snapshot_index=now(backend)))
        assert len(ask(client).content) == 8 * len(CHUNK)
    assert len(backend.requests) == 2


def test_an_answer_of_uncertain_state(client: httpx.Client, backend: ScriptedBackend) -> None:
    for _ in range(2):
        backend.answer_with(ScriptedStream(b"abc", snapshot_index=now(backend), is_exact=False))
        assert "etag" not in ask(client).headers
    assert len(backend.requests) == 2


def test_an_answer_that_fails(client: httpx.Client, backend: ScriptedBackend) -> None:
    for steps in ([b"abc"], [CHUNK, CHUNK]):
        for _ in range(2):
            stream = ScriptedStream(*steps, EvaluationFailed("no"), snapshot_index=now(backend))
            backend.answer_with(stream)
            if len(steps) == 1:
                assert client.get("/sparql", params={"query": QUERY}).status_code == 400
            else:
                with pytest.raises(httpx.RemoteProtocolError):
                    client.get("/sparql", params={"query": QUERY})
    assert len(backend.requests) == 4


def test_while_a_change_is_applied(client: httpx.Client, backend: ScriptedBackend) -> None:
    ask(client)
    backend.exact_indexes = [None] * 4
    ask(client)
    assert len(backend.requests) == 2


def test_a_cache_of_no_size(backend: ScriptedBackend) -> None:
    app = build_app(backend, Settings.model_validate({"readers": {"result_cache_mb": 0}}))
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert ask(client).content == ask(client).content
    assert len(backend.requests) == 2
