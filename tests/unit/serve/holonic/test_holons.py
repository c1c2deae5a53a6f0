"""Declaring holons and reading them."""

from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.conftest import dump
from tests.unit.serve.holonic.conftest import A, B, C, Holons, confirmed, in_path, refused, update

NO_LAYERS: dict[str, list[Any]] = {"interior": [], "boundary": [], "context": [], "projection": []}


def test_a_holon(holons: Holons) -> None:
    confirmation = confirmed(holons.declare(A, label='A "first" holon\n\\'))
    assert confirmation["graph"] == "urn:holonic:usual:registry"
    detail = holons.detail(A)
    assert detail.pop("created_at").endswith("Z")
    assert detail == {
        "iri": A,
        "label": 'A "first" holon\n\\',
        "member_of": None,
        "tenant": "usual",
        "layers": NO_LAYERS,
    }


def test_a_member(holons: Holons) -> None:
    confirmed(holons.declare(A))
    confirmed(holons.declare(B, member_of=A, label=None))
    listed = holons.get("holons")["holons"]
    assert [(holon["iri"], holon["label"], holon["member_of"]) for holon in listed] == [
        (A, None, None),
        (B, None, A),
    ]
    assert [holon["layers"] for holon in listed] == [NO_LAYERS, NO_LAYERS]


def test_what_the_list_says_is_what_the_detail_says(holons: Holons) -> None:
    confirmed(holons.declare(A, label="A"))
    confirmed(holons.declare(C, member_of=A))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:p> 1, 2 ."))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:p> 3 .", graph_slug="more"))
    confirmed(holons.add(C, "context", "<urn:s> <urn:p> 4 ."))
    for listed in holons.get("holons")["holons"]:
        detail = holons.detail(listed["iri"])
        for graphs in detail["layers"].values():
            for graph in graphs:
                assert graph.pop("ntriples").count("\n") == graph["triples"]
        assert detail == listed


@pytest.mark.parametrize(
    ("members", "status", "reason"),
    [
        ({"iri": A}, 409, f"the holon <{A}> exists already"),
        ({"iri": A, "member_of": B}, 409, "exists already"),
        ({"iri": "urn:new", "member_of": "urn:none"}, 404, "there is no holon <urn:none> in tenant 'usual'"),
        ({"iri": "urn:new", "member_of": "urn:new"}, 409, "would be a member of itself"),
        ({}, 400, "iri: Field required"),
        ({"iri": None}, 400, "iri: has to be a string"),
        ({"iri": "a"}, 400, "iri: 'a' is not an absolute IRI"),
        ({"iri": "http://x/ y"}, 400, "is not an absolute IRI"),
        ({"iri": "http://x/> <urn:y"}, 400, "is not an absolute IRI"),
        ({"iri": "urn:" + "x" * 5000}, 400, "at most 4096"),
        ({"iri": "urn:new", "member_of": "b"}, 400, "member_of: 'b' is not an absolute IRI"),
        ({"iri": "urn:new", "label": 1}, 400, "label: Input should be a valid string"),
        ({"iri": "urn:new", "label": "x" * 70_000}, 400, "label: String should have at most"),
        ({"iri": "urn:new", "tenant": "t"}, 400, "tenant: Extra inputs are not permitted"),
    ],
)
def test_what_is_refused_leaves_nothing(
    holons: Holons, members: dict[str, Any], status: int, reason: str
) -> None:
    confirmed(holons.declare(A))
    confirmed(holons.declare(B))
    before = dump(holons.http)
    assert reason in refused(holons.http.post("/holonic/holons", json=members), status)
    assert dump(holons.http) == before


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"Content-Type": "text/turtle"}, b"{}", 415),
        ({}, b'{"iri": "urn:x"}', 415),
        ({"Content-Type": "application/json; charset=latin-1"}, b"{}", 415),
        ({"Content-Type": "application/json", "Content-Encoding": "br"}, b"{}", 415),
        ({"Content-Type": "application/json"}, b"", 400),
        ({"Content-Type": "application/json"}, b'{"iri": "urn:x"', 400),
        ({"Content-Type": "application/json"}, b'["urn:x"]', 400),
        ({"Content-Type": "application/json"}, b'{"iri": "urn:\xff"}', 400),
        ({"Content-Type": "application/json"}, b'{"iri": "urn:x", "label": "\\ud800"}', 400),
        ({"Content-Type": "application/json"}, b"[" * 100_000, 400),
        ({"Content-Type": "application/json"}, b" " * 1_000_001, 413),
    ],
)
def test_bodies_that_cannot_be_read(
    holons: Holons, headers: dict[str, str], content: bytes, status: int
) -> None:
    refused(holons.http.post("/holonic/holons", content=content, headers=headers), status)
    assert dump(holons.http) == []


def test_tenants_know_nothing_of_each_other(holons: Holons) -> None:
    confirmed(holons.declare(A, "one", label="of one"))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:p> <urn:one> .", "one"))
    assert holons.get("holons", "two") == {"holons": []}
    assert holons.get("depth", "two") == {"tenant": "two", "depth": 0, "holons": []}
    assert "in tenant 'two'" in refused(
        holons.http.get(f"/holonic/holons/{in_path(A)}", params={"tenant": "two"}), 404
    )
    refused(holons.add(A, "interior", "<urn:s> <urn:p> 1 .", "two"), 404)
    refused(holons.declare(B, "two", member_of=A), 404)
    confirmed(holons.declare(A, "two", label="of two"))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:p> <urn:two> .", "two"))
    assert holons.layer(A, "interior", "one") == ["<urn:s> <urn:p> <urn:one> ."]
    assert holons.layer(A, "interior", "two") == ["<urn:s> <urn:p> <urn:two> ."]
    assert [holon["label"] for holon in holons.get("holons", "two")["holons"]] == ["of two"]
    assert holons.get("holons") == {"holons": []}


@pytest.mark.parametrize("tenant", ["", "a:b", "a/b", "x" * 65, "ä", "a b"])
def test_no_tenant(holons: Holons, tenant: str) -> None:
    assert "tenant: " in refused(holons.declare(A, tenant), 400)
    for path in ("holons", f"holons/{in_path(A)}", "portals", "depth"):
        assert "tenant: " in refused(holons.http.get(f"/holonic/{path}", params={"tenant": tenant}), 400)


def test_two_tenants(holons: Holons) -> None:
    assert "may be given once" in refused(holons.http.get("/holonic/holons?tenant=a&tenant=b"), 400)


def test_depth(holons: Holons) -> None:
    for iri, parent in (("urn:1", None), ("urn:2", "urn:1"), ("urn:3", "urn:2"), ("urn:4", "urn:1")):
        confirmed(holons.declare(iri, member_of=parent))
    found = holons.get("depth")
    assert (found["tenant"], found["depth"]) == ("usual", 2)
    assert found["holons"] == [
        {"iri": "urn:1", "depth": 0},
        {"iri": "urn:2", "depth": 1},
        {"iri": "urn:3", "depth": 2},
        {"iri": "urn:4", "depth": 1},
    ]


def test_what_others_write_into_the_registry_does_no_harm(holons: Holons) -> None:
    confirmed(holons.declare(A))
    confirmed(holons.declare(B, member_of=A))
    confirmed(holons.declare(A, "other"))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:p> <urn:secret> .", "other"))
    update(
        holons.http,
        f"""
        PREFIX h: <urn:graphdb:holonic#>
        INSERT DATA {{ GRAPH <urn:holonic:usual:registry> {{
            <{A}> h:memberOf <{B}>, 3, _:b ; h:hasInterior <urn:nowhere>, "text" ; a 7 .
            _:b a h:Holon ; h:memberOf <{A}> . <urn:p> a h:TransformPortal .
        }} }} ;
        INSERT {{ GRAPH <urn:holonic:usual:registry> {{ <{A}> h:hasInterior ?g }} }}
        WHERE {{ GRAPH <urn:holonic:other:registry> {{ <{A}> h:hasInterior ?g }} }}
        """,
    )
    assert holons.layer(A, "interior") == []
    listed = holons.get("holons")["holons"]
    assert [holon["iri"] for holon in listed] == [A, B]
    assert all(holon["layers"] == NO_LAYERS for holon in listed)
    assert holons.get("depth")["holons"] == [{"iri": A, "depth": None}, {"iri": B, "depth": None}]
    assert holons.get("portals") == {"portals": []}
    refused(holons.run("urn:p"), 400)


def test_head(holons: Holons) -> None:
    confirmed(holons.declare(A))
    for path in ("holons", f"holons/{in_path(A)}", "portals", "depth", "health"):
        answer = holons.http.head(f"/holonic/{path}")
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"] == "application/json"
    assert holons.http.head(f"/holonic/holons/{in_path(B)}").status_code == 404


def test_answers_say_of_which_state_they_are(holons: Holons) -> None:
    index = confirmed(holons.declare(A))["snapshot_index"]
    for path in ("holons", f"holons/{in_path(A)}", "portals", "depth"):
        answer = holons.http.get(f"/holonic/{path}")
        assert answer.headers["X-Snapshot-Index"] == str(index)
        assert answer.headers["Cache-Control"] == "no-cache"
    assert holons.declare(A).headers["X-Snapshot-Index"] == str(index)


def test_health(client: httpx.Client) -> None:
    answer = client.get("/holonic/health")
    assert (answer.status_code, answer.json()) == (200, {"available": True, "default_tenant": "usual"})
    assert client.post("/holonic/health").status_code == 405


def test_where_it_is_not_enabled_there_is_only_the_health() -> None:
    app = build_app(MemoryBackend(), Settings())
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False) as http:
        answer = http.get("/holonic/health")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.text == "holonic is not configured: [holonic] enabled is false\n"
        for path in (
            "holons",
            "holons/urn:x",
            "holons/urn:x/interior",
            "portals",
            "depth",
            "portals/urn:x/run",
        ):
            for method in ("GET", "POST"):
                refused(http.request(method, f"/holonic/{path}"), 404)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "holons/", 404),
        ("GET", "nothing", 404),
        ("GET", "holons/http://x/a", 404),
        ("GET", "holons/urn:x/nothing", 404),
        ("GET", "holons/urn:x/interior/more", 404),
        ("GET", "portals/urn:x", 404),
        ("GET", "holons/x", 400),
        ("GET", "holons/%20", 400),
        ("GET", "holons/urn:%3E", 400),
        ("GET", "holons/urn:%FF", 400),
        ("GET", "holons/urn:%zz", 400),
        ("GET", "holons/%252Fx", 400),
        ("POST", "holons/urn:%3Cx/interior", 400),
        ("POST", "portals/no%20iri/run", 400),
        ("GET", "portals?source=a", 400),
        ("PUT", "holons", 405),
        ("DELETE", "holons/urn:x", 405),
        ("POST", "holons/urn:x", 405),
        ("GET", "holons/urn:x/interior", 405),
        ("GET", "portals/urn:x/run", 405),
        ("POST", "depth", 405),
    ],
)
def test_paths(client: httpx.Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, f"/holonic/{path}")
    message = refused(answer, status)
    if status == 404:
        assert "percent-encoded" in message


def test_an_iri_in_the_path_is_decoded_once(holons: Holons) -> None:
    iri = "http://x/%2F/a%20b/interior"
    confirmed(holons.declare(iri))
    confirmed(holons.add(iri, "interior", "<urn:s> <urn:p> 1 ."))
    assert holons.detail(iri)["iri"] == iri
    refused(holons.http.get(f"/holonic/holons/{in_path('http://x///a b/interior')}"), 400)
