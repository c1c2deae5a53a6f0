"""`/history`: who changed what and when, page by page; `/diff`: what leads from one state to another."""

import re
from collections.abc import Iterator

import httpx
import pytest
from pyoxigraph import Quad, RdfFormat, parse

from graphdb.config import Settings
from graphdb.rdf.patch import read_patch
from serve.graph.history import DIFF_TYPE
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend

NQ = RdfFormat.N_QUADS


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    """It waits for an index of the future for a few seconds."""
    settings = Settings.model_validate({"server": {"query_timeout_seconds": 5}})
    with serving(build_app(backend, settings)) as url:
        yield url


@pytest.fixture
def start(client: httpx.Client, backend: MemoryBackend) -> int:
    """The index before the changes of a story."""
    index = backend.snapshot_index()
    for text in (
        "INSERT DATA { <urn:a> <urn:p> 1 . GRAPH <urn:g> { <urn:b> <urn:q> <urn:a> } }",
        "DELETE DATA { <urn:a> <urn:p> 1 } ; INSERT DATA { <urn:a> <urn:p> 2 }",
        "INSERT DATA { <urn:c> <urn:p> 'x' } ; CREATE GRAPH <urn:empty>",
        "DROP GRAPH <urn:g>",
        "DELETE DATA { <urn:a> <urn:p> 2 } ; INSERT DATA { <urn:a> <urn:p> 1 }",
    ):
        client.post("/update", data={"update": text}).raise_for_status()
    return index


def history(client: httpx.Client, query: str = "", **headers: str) -> httpx.Response:
    answer = client.get(f"/history?{query}", headers=headers)
    answer.raise_for_status()
    return answer


def indexes(client: httpx.Client, query: str, start: int) -> list[int]:
    query = query if "from=" in query else f"{query}&from={start}"
    return [entry["index"] - start for entry in history(client, query).json()["entries"]]


def test_everything_is_told_the_newest_first(client: httpx.Client, start: int) -> None:
    told = history(client, f"from={start}").json()
    assert [entry["index"] for entry in told["entries"]] == [start + number for number in (5, 4, 3, 2, 1)]
    assert told["entries"][3] == {
        "index": start + 2,
        "timestamp": told["entries"][3]["timestamp"],
        "author": "basic:ann",
        "interface": "sparql-update",
        "removed": ['<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'],
        "added": ['<urn:a> <urn:p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .'],
        "dropped_graphs": [],
        "created_graphs": [],
    }
    assert (told["cursor"], told["oldest_index"], told["snapshot_index"]) == (None, 0, start + 5)
    assert told["entries"][1]["dropped_graphs"] == ["urn:g"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("resource=urn:a", [5, 4, 2, 1]),
        ("resource=%3Curn:b%3E", [4, 1]),
        ("resource=urn:g", [4, 1]),
        ("resource=urn:none", []),
        ("graph=urn:g", [4, 1]),
        ("graph=urn:empty", [3]),
        ("default", [5, 3, 2, 1]),
        ("subject=urn:a", [5, 2, 1]),
        ("predicate=urn:q", [4, 1]),
        ("object=urn:a", [4, 1]),
        ("object=%22x%22", [3]),
        ("subject=urn:a&object=%222%22%5E%5E%3Chttp://www.w3.org/2001/XMLSchema%23integer%3E", [5, 2]),
        ("subject=urn:a&graph=urn:g", []),
    ],
)
def test_a_pattern_chooses(client: httpx.Client, start: int, query: str, expected: list[int]) -> None:
    assert indexes(client, query, start) == expected


def test_only_what_was_asked_for_is_told(client: httpx.Client, start: int) -> None:
    [_, first] = history(client, f"resource=urn:b&from={start}").json()["entries"]
    assert first["added"] == ["<urn:b> <urn:q> <urn:a> <urn:g> ."]


def test_a_span_of_indexes_or_times(client: httpx.Client, start: int) -> None:
    assert indexes(client, f"from={start + 1}&to={start + 3}", start) == [3, 2]
    entries = history(client).json()["entries"]
    time = entries[2]["timestamp"].replace("+", "%2B")
    assert indexes(client, f"to={time}", start)[0] == 3
    assert indexes(client, f"from={time}", start) == [5, 4]


def pages(client: httpx.Client, query: str) -> Iterator[dict[str, object]]:
    address = f"/history?{query}"
    while address:
        answer = client.get(address)
        answer.raise_for_status()
        yield from answer.json()["entries"]
        assert ("next" in answer.links) == (answer.json()["cursor"] is not None)
        address = answer.links.get("next", {}).get("url", "")


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6])
def test_pages_put_together_are_the_whole(client: httpx.Client, start: int, limit: int) -> None:
    whole = history(client, f"from={start}").json()["entries"]
    assert [*pages(client, f"limit={limit}&from={start}")] == whole


def test_a_large_entry_goes_over_several_pages(client: httpx.Client, start: int) -> None:
    data = " ".join(f"<urn:s{number}> <urn:large> {number} ." for number in range(2_500))
    client.post("/update", data={"update": f"INSERT DATA {{ {data} }}"}).raise_for_status()
    told = [*pages(client, "predicate=urn:large")]
    assert [entry.get("more") for entry in told] == [True, True, None]
    quads = [line for entry in told for line in entry["added"]]  # type: ignore[attr-defined]
    assert len(quads) == len(set(quads)) == 2_500


def test_provenance(client: httpx.Client, start: int) -> None:
    answer = history(client, f"resource=urn:b&from={start}", Accept="application/n-triples")
    assert answer.headers["content-type"] == "application/n-triples"
    text = re.sub(r"_:\S+", "_:s", answer.text)
    activity, prov = f"<urn:graphdb:entry:{start + 1}>", "<http://www.w3.org/ns/prov#"
    for line in (
        f"{activity} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> {prov}Activity> .",
        f"{activity} {prov}wasAssociatedWith> <urn:graphdb:principal:basic:ann> .",
        f"_:s {prov}wasGeneratedBy> {activity} .",
        "_:s <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <urn:b> <urn:q> <urn:a> )>> .",
        "_:s <urn:graphdb:history#graph> <urn:g> .",
    ):
        assert line in text
    assert f"{prov}wasInvalidatedBy>" in text
    for syntax in ("text/turtle", "application/trig", "application/n-quads"):
        assert history(client, "resource=urn:b", Accept=syntax).headers["content-type"] == syntax


def state(client: httpx.Client) -> set[Quad]:
    return set(parse(client.get("/data?dataset=all", headers={"Accept": NQ.media_type}).content, format=NQ))


def test_a_difference_leads_from_one_state_to_the_other(client: httpx.Client, start: int) -> None:
    now = state(client)
    for low, high in (
        (start, start + 5),
        (start + 1, start + 4),
        (start + 5, start + 5),
        (start + 1, start + 5),
    ):
        told = client.get(f"/diff?from={low}&to={high}").json()
        assert (told["from_index"], told["to_index"]) == (low, high)
        back = client.get(f"/diff?from={high}&to={low}").json()
        assert (back["removed"], back["added"]) == (told["added"], told["removed"])
    patch = read_patch(client.get(f"/diff?from={start}", headers={"Accept": "application/rdf-patch"}).content)
    assert set(patch.added) == now
    assert patch.removed == ()
    lines = client.get(f"/diff?from={start + 1}", headers={"Accept": DIFF_TYPE}).text.splitlines()
    assert sorted(line[0] for line in lines) == ["+", "-"]
    assert all(line.endswith(" .") for line in lines)
    told = client.get(f"/diff?from={start + 1}").json()  # the 1 that went and came again is in neither
    assert told["removed"] == ["<urn:b> <urn:q> <urn:a> <urn:g> ."]
    assert told["added"] == ['<urn:c> <urn:p> "x" .']
    assert (told["dropped_graphs"], told["created_graphs"]) == (["urn:g"], ["urn:empty"])


def test_a_difference_of_one_graph_or_resource(client: httpx.Client, start: int) -> None:
    assert client.get(f"/diff?from={start + 1}&graph=urn:g").json()["added"] == []
    assert client.get(f"/diff?from={start}&to={start + 4}&resource=urn:a").json()["added"] == [
        '<urn:a> <urn:p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    ]


PAGED = ("limit=0", "limit=1001", "limit=-1", "limit=x", "cursor=", "cursor=1", "cursor=1.2.-3")


@pytest.mark.parametrize(
    "query",
    [
        "resource=no iri",
        "resource=%22text%22",
        "predicate=_:b",
        "graph=%22text%22",
        "graph=urn:g&default",
        "default=x",
        "object=%22unclosed",
        "resource=urn:a&resource=urn:b",
        "from=-1",
        "from=1.5",
        "from=99999999999999999999999",
        "from=2026-11-27",
        "from=2026-13-27T08:00:00Z",
        "from=2026-11-27T08:00:00",
        "to=0000-00-00T00:00:00Z",
        "to=yesterday",
    ],
)
@pytest.mark.parametrize("path", ["/history", "/diff"])
def test_what_cannot_be_meant_is_refused(client: httpx.Client, start: int, path: str, query: str) -> None:
    answer = client.get(f"{path}?{query}" + ("&from=0" if path == "/diff" and "from=" not in query else ""))
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("query", [*PAGED, "cursor=99999999999999999999.0.0"])
def test_a_page_that_cannot_be_is_refused(client: httpx.Client, query: str) -> None:
    assert client.get(f"/history?{query}").status_code == 400


def test_an_index_of_the_future_is_refused(client: httpx.Client, start: int) -> None:
    for path in (f"/history?to={start + 100}", f"/diff?from=0&to={start + 100}"):
        assert client.get(path).status_code == 400
    assert client.get("/diff").status_code == 400
    assert history(client, f"cursor={start + 100}.0.0").json()["entries"][0]["index"] == start + 5


def test_what_is_no_longer_kept_is_gone(client: httpx.Client, backend: MemoryBackend, start: int) -> None:
    backend.logged.forget_before(start + 3)
    told = history(client).json()
    assert (told["oldest_index"], told["entries"][-1]["index"]) == (start + 2, start + 3)
    for path in (f"/history?from={start}", f"/diff?from={start + 1}", "/diff?from=1999-01-01T00:00:00Z"):
        answer = client.get(path)
        assert answer.status_code == 410, path
        assert answer.json()["oldest_index"] == start + 2
    assert client.get(f"/diff?from={start + 2}").status_code == 200


def test_other_formats_are_refused(client: httpx.Client, start: int) -> None:
    for path in ("/history", "/diff?from=0"):
        assert client.get(path, headers={"Accept": "image/png"}).status_code == 406


def revert(client: httpx.Client, query: str, **headers: str) -> httpx.Response:
    return client.post(f"/revert?{query}", headers=headers)


def test_a_revert_makes_the_earlier_state_by_one_entry(client: httpx.Client, start: int) -> None:
    before = state(client)
    for text in (
        "INSERT DATA { <urn:new> <urn:p> 1 }",
        "DELETE WHERE { <urn:c> ?p ?o }",
        "CREATE GRAPH <urn:h>",
    ):
        client.post("/update", data={"update": text}).raise_for_status()
    answer = revert(client, f"to={start + 5}", **{"Idempotency-Key": f'"back {start}"'})
    assert answer.status_code == 200, answer.text
    assert answer.json()["snapshot_index"] == start + 9
    assert answer.json()["affected_triples"] == 2
    assert state(client) == before
    assert client.get(f"/diff?from={start + 5}").json()["created_graphs"] == []
    again = revert(client, f"to={start + 5}", **{"Idempotency-Key": f'"back {start}"'})
    assert (again.json()["snapshot_index"], again.json()["message"]) == (start + 9, "applied before")


def test_a_revert_of_a_graph_or_resource_leaves_the_rest(client: httpx.Client, start: int) -> None:
    now = state(client)
    assert revert(client, f"to={start + 1}&graph=urn:g").json()["affected_triples"] == 1
    assert {str(quad) for quad in state(client) - now} == {"<urn:b> <urn:q> <urn:a> <urn:g>"}
    assert revert(client, f"to={start + 2}&resource=urn:a").json()["affected_triples"] == 2
    assert indexes(client, "subject=urn:a", start)[0] == 7


def test_a_revert_says_where_to(client: httpx.Client, backend: MemoryBackend, start: int) -> None:
    assert revert(client, "").status_code == 400
    assert revert(client, "to=yesterday").status_code == 400
    assert revert(client, f"to={start + 50}").status_code == 400
    assert client.get(f"/revert?to={start}").status_code == 405
    backend.logged.forget_before(start + 3)
    assert revert(client, f"to={start}").status_code == 410
