"""`/changes`: lines of what was written, from a place in the log on, as JSON lines or Server-Sent Events."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from graphdb.model import ChangeSet
from graphdb.rdf.patch import read_patch
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.conftest import error_of, update

S, P, Q = "<http://x/s>", "<http://x/p>", "<http://x/q>"


def lines(client: httpx.Client, **parameters: Any) -> list[dict[str, Any]]:
    answer = client.get("/changes", params={"follow": "false", **parameters})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def told(client: httpx.Client, **parameters: Any) -> list[tuple[list[str], list[str]]]:
    return [(line["removed"], line["added"]) for line in lines(client, **parameters) if "added" in line]


@pytest.fixture
def start(client: httpx.Client, backend: MemoryBackend) -> int:
    return backend.snapshot_index()


def test_each_write_is_a_line_with_what_it_really_changed(client: httpx.Client, start: int) -> None:
    update(client, f"INSERT DATA {{ {S} {P} 1 . GRAPH <http://g/1> {{ {S} {P} 'a\\nb'@en }} }}")
    update(client, f"DELETE {{ {S} {P} 1 }} INSERT {{ {S} {P} 2 }} WHERE {{}}")
    update(client, f"INSERT DATA {{ {S} {P} 2 }}")  # no change
    begin, first, second = lines(client, since=start)
    assert begin == {"index": start}
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    assert sorted(first.pop("added")) == sorted(
        [f'{S} {P} "1"{integer} .', f'{S} {P} "a\\nb"@en <http://g/1> .']
    )
    assert first.pop("timestamp").startswith("2023-11-14T22:13:20.")
    assert first == {
        "index": start + 1,
        "removed": [],
        "dropped_graphs": [],
        "created_graphs": ["http://g/1"],
    }
    assert (second["index"], second["removed"], second["added"]) == (
        start + 2,
        [f'{S} {P} "1"{integer} .'],
        [f'{S} {P} "2"{integer} .'],
    )


def test_resuming_gives_what_is_behind_the_index(client: httpx.Client, start: int) -> None:
    for value in "abc":
        update(client, f"INSERT DATA {{ {S} {P} '{value}' }}")
    assert [line["index"] for line in lines(client, since=start + 1)] == [start + 1, start + 2, start + 3]
    assert [line["index"] for line in lines(client, since=start + 3)] == [start + 3]
    assert [line["index"] for line in lines(client)] == [start + 3]


def test_filters(client: httpx.Client, start: int) -> None:
    update(client, f"INSERT DATA {{ {S} {P} 1 . GRAPH <http://g/1> {{ {S} {P} 2 . {S} {Q} 3 }} }}")
    update(client, "DROP GRAPH <http://g/1>")

    def count(**parameters: Any) -> list[tuple[int, int]]:
        return [(len(removed), len(added)) for removed, added in told(client, since=start, **parameters)]

    assert count() == [(0, 3), (2, 0)]
    assert count(graph="http://g/1") == [(0, 2), (2, 0)]
    assert count(default="") == [(0, 1)]
    assert count(default="", graph="http://g/1", predicate="http://x/p") == [(0, 2), (1, 0)]
    assert count(predicate=["http://x/q"]) == [(0, 1), (1, 0)]
    assert count(graph="http://g/none") == []
    # who asked for nothing of it learns all the same how far the log was read
    assert lines(client, since=start, graph="http://g/none")[-1] == {"index": start + 2}


def test_a_large_change_comes_in_pieces(client: httpx.Client, backend: MemoryBackend) -> None:
    update(client, "INSERT DATA { <http://x/a> <http://x/p> 1 . <http://x/a> <http://x/q> 2 }")
    whole = backend.logged.changes[-1].change
    backend.logged.changes.pop()
    index = backend.snapshot_index()
    backend.logged.note(index, [ChangeSet(added=whole.added[:1]), ChangeSet(added=whole.added[1:])])
    assert [line.get("more") for line in lines(client, since=index - 1)] == [None, True, None]
    for quad in whole.added:  # an entry of which only a part is asked for has an end as well
        found = lines(client, since=index - 1, predicate=quad.predicate.value)[1:]
        assert [line.get("more") for line in found][-1] is None


@contextmanager
def streaming(client: httpx.Client, headers: dict[str, str], query: str = "") -> Iterator[Iterator[str]]:
    with client.stream("GET", f"/changes{query}", headers=headers) as answer:
        assert answer.status_code == 200
        yield answer.iter_lines()


def test_changes_are_pushed_as_they_happen(client: httpx.Client, start: int) -> None:
    with streaming(client, {}) as stream:
        assert json.loads(next(stream)) == {"index": start}
        with httpx.Client(base_url=client.base_url, trust_env=False) as writer:
            update(writer, f"INSERT DATA {{ {S} {P} 'new' }}")
        assert json.loads(next(stream))["added"] == [f'{S} {P} "new" .']


def test_server_sent_events_carry_ids_that_resume(client: httpx.Client, start: int) -> None:
    for value in "ab":
        update(client, f"INSERT DATA {{ {S} {P} '{value}' }}")
    events = {"Accept": "text/event-stream"}
    with streaming(client, events, f"?since={start}") as stream:
        assert [next(stream) for _ in range(3)] == [f"id: {start}", "", f"id: {start + 1}"]
        assert json.loads(next(stream).removeprefix("data: "))["added"] == [f'{S} {P} "a" .']
    # the header that a browser sends wins over the address that it began with
    with streaming(client, events | {"Last-Event-ID": str(start + 1)}, f"?since={start}") as stream:
        assert [next(stream) for _ in range(3)] == [f"id: {start + 1}", "", f"id: {start + 2}"]


def test_what_the_log_has_forgotten_is_gone(client: httpx.Client, backend: MemoryBackend) -> None:
    update(client, f"INSERT DATA {{ {S} {P} 'x' }}")
    first, backend.logged.first_index = backend.logged.first_index, backend.snapshot_index()
    try:
        answer = client.get("/changes?since=0")
        assert answer.status_code == 410
        body = answer.json()
        assert (body["code"], body["first_index"]) == ("resnapshot", backend.snapshot_index())
        assert lines(client, since=backend.snapshot_index() - 1)[-1]["added"] == [f'{S} {P} "x" .']
    finally:
        backend.logged.first_index = first


def test_a_reader_that_the_log_leaves_behind_is_told_so(client: httpx.Client, backend: MemoryBackend) -> None:
    update(client, f"INSERT DATA {{ {S} {P} 'x' }}")
    first = backend.logged.first_index
    try:
        with streaming(client, {}) as stream:
            next(stream)
            backend.logged.forget_before(backend.snapshot_index() + 5)
            assert json.loads(next(stream))["error"]["code"] == "resnapshot"
            assert list(stream) == []
    finally:
        backend.logged.first_index = first


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("since=-1", 400),
        ("since=", 400),
        ("since=1e3", 400),
        ("since=٣", 400),
        ("since=99999999999999999999", 400),
        ("since=1&since=2", 400),
        ("graph=no-iri", 400),
        ("predicate=%3Cx%3E", 400),
        ("default=http://x", 400),
        ("follow=perhaps", 400),
        ("since=%zz", 400),
    ],
)
def test_refused(client: httpx.Client, query: str, status: int) -> None:
    answer = client.get(f"/changes?{query}")
    assert answer.status_code == status
    error_of(answer)


def test_an_unknown_format_is_406(client: httpx.Client) -> None:
    assert client.get("/changes", headers={"Accept": "text/turtle"}).status_code == 406


def test_a_client_that_leaves_lets_go_of_its_place(client: httpx.Client, backend: MemoryBackend) -> None:
    with streaming(client, {}) as stream:
        next(stream)
        source = backend.logged.streams[-1]
        assert not source.closed
    gone = threading.Event()
    for _ in range(200):
        if source.closed:
            break
        gone.wait(0.01)
    assert source.closed


def patch(client: httpx.Client, **parameters: Any) -> list[str]:
    headers = {"Accept": "application/rdf-patch"}
    answer = client.get("/changes", params={"follow": "false", **parameters}, headers=headers)
    assert answer.headers["content-type"] == "application/rdf-patch"
    return answer.text.splitlines()


def header(index: int) -> str:
    return f'H index "{index}"^^<http://www.w3.org/2001/XMLSchema#integer> .'


def test_changes_as_rdf_patch(client: httpx.Client, start: int) -> None:
    update(client, f"INSERT DATA {{ {S} {P} 'a' . GRAPH <http://g/1> {{ {S} {P} 'b' }} }}")
    update(client, f"DELETE DATA {{ {S} {P} 'a' }}")
    rows = [row for row in patch(client, since=start) if not row.startswith("H timestamp")]
    assert rows[:3] == [header(start), header(start + 1), "TX ."]
    assert sorted(rows[3:5]) == [f'A {S} {P} "a" .', f'A {S} {P} "b" <http://g/1> .']
    assert rows[5:] == ["TC .", header(start + 2), "TX .", f'D {S} {P} "a" .', "TC ."]
    assert read_patch("\n".join(rows).encode()).added == (
        Quad(NamedNode("http://x/s"), NamedNode("http://x/p"), Literal("b"), NamedNode("http://g/1")),
    )


def test_the_pieces_of_a_change_are_one_transaction(
    client: httpx.Client, backend: MemoryBackend, start: int
) -> None:
    quads = [Quad(NamedNode(f"http://x/{n}"), NamedNode("http://x/p"), Literal(n)) for n in range(3)]
    backend._apply([ChangeSet(added=(quad,)) for quad in quads])
    rows = patch(client, since=start)
    assert [row.split()[0] for row in rows] == ["H", "H", "H", "TX", "A", "A", "A", "TC"]
    assert read_patch("\n".join(rows).encode()).added == tuple(quads)
