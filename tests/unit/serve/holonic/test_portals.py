"""Portals: declaring, listing and running them."""

from typing import Any

import pytest

from tests.unit.serve.conftest import dump
from tests.unit.serve.holonic.conftest import A, B, C, Holons, confirmed, in_path, refused, update

P, Q = "http://x/portal#1", "urn:x:q"
TRANSLATE = "PREFIX x: <urn:x#> CONSTRUCT { ?s x:seen ?o } WHERE { ?s x:p ?o }"
SEEN = ["<urn:s> <urn:x#seen> <urn:o1> .", "<urn:s> <urn:x#seen> <urn:o2> ."]


@pytest.fixture
def connected(holons: Holons) -> Holons:
    """a and b are declared, a's interior has two facts in two graphs, and a portal leads from a to b."""
    confirmed(holons.declare(A))
    confirmed(holons.declare(B))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:x#p> <urn:o1> ."))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:x#p> <urn:o2> .", graph_slug="more"))
    confirmed(holons.connect(P, A, B, TRANSLATE))
    return holons


def test_a_portal_is_rdf_in_the_boundary_of_its_source(connected: Holons) -> None:
    query = f"""
        PREFIX h: <urn:graphdb:holonic#>
        SELECT ?target ?query WHERE {{
            GRAPH <urn:holonic:usual:registry> {{ <{A}> h:hasBoundary ?boundary }}
            GRAPH ?boundary {{ <{P}> a h:TransformPortal ; h:targetHolon ?target ; h:constructQuery ?query }}
        }}"""
    rows = connected.http.get("/sparql", params={"query": query}).json()["results"]["bindings"]
    assert [(row["target"]["value"], row["query"]["value"]) for row in rows] == [(B, TRANSLATE)]
    assert len(connected.layer(A, "boundary")) == 5


def test_portals_are_listed(connected: Holons) -> None:
    query = TRANSLATE + ' # "quoted" \\ \n'
    boundary = confirmed(connected.connect(Q, B, "http://elsewhere/", query))["graph"]
    assert boundary == connected.detail(B)["layers"]["boundary"][0]["graph"]
    first = {"iri": P, "source": A, "target": B, "construct_query": TRANSLATE}
    second = {"iri": Q, "source": B, "target": "http://elsewhere/", "construct_query": query}
    assert connected.get("portals") == {"portals": [first, second]}
    assert connected.get("portals", source=A) == {"portals": [first]}
    assert connected.get("portals", source=B) == {"portals": [second]}
    assert connected.get("portals", "other") == {"portals": []}
    refused(connected.http.get("/holonic/portals", params={"source": C}), 404)
    refused(connected.http.get("/holonic/portals", params={"source": A, "tenant": "other"}), 404)


@pytest.mark.parametrize(
    ("members", "status", "reason"),
    [
        ({"iri": P}, 409, f"the portal <{P}> exists already"),
        ({"iri": P, "source": B, "target": A}, 409, "exists already"),
        ({"source": C}, 404, f"there is no holon <{C}> in tenant 'usual'"),
        ({"construct_query": "SELECT * { ?s ?p ?o }"}, 400, "construct_query: is a SELECT query"),
        ({"construct_query": "ASK {}"}, 400, "construct_query: is a ASK query"),
        ({"construct_query": "INSERT DATA { <urn:a> <urn:b> 1 }"}, 400, "syntax error at line 1"),
        ({"construct_query": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p"}, 400, "syntax error at line 1"),
        ({"construct_query": ""}, 400, "syntax error"),
        (
            {"construct_query": "CONSTRUCT { ?s ?p ?o } FROM <urn:g> WHERE { ?s ?p ?o }"},
            400,
            "construct_query: has FROM",
        ),
        (
            {"construct_query": "CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }"},
            403,
            "SERVICE to http://127.0.0.1/ is not allowed",
        ),
        (
            {"construct_query": "CONSTRUCT { } WHERE {" + "{" * 100 + "}" * 100 + "}"},
            400,
            "security.max_",
        ),
        ({"source": "x y"}, 400, "source: 'x y' is not an absolute IRI"),
        ({"target": "x"}, 400, "target: 'x' is not an absolute IRI"),
        ({"iri": "<urn:x>"}, 400, "iri: '<urn:x>' is not an absolute IRI"),
        ({"construct_query": None}, 400, "construct_query: Input should be a valid string"),
        ({"label": "x"}, 400, "label: Extra inputs are not permitted"),
    ],
)
def test_what_is_refused_leaves_nothing(
    connected: Holons, members: dict[str, Any], status: int, reason: str
) -> None:
    before = dump(connected.http)
    good = {"iri": "urn:new", "source": A, "target": B, "construct_query": TRANSLATE}
    assert reason in refused(connected.http.post("/holonic/portals", json=good | members), status)
    assert dump(connected.http) == before


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/n-triples", "application/n-triples"),
        ("text/turtle", "text/turtle; charset=utf-8"),
        (
            'application/n-triples; profile="http://www.w3.org/ns/rdf-canon#c14n"',
            'application/n-triples; profile="http://www.w3.org/ns/rdf-canon#c14n"',
        ),
    ],
)
def test_what_comes_through(connected: Holons, accept: str, content_type: str) -> None:
    before = dump(connected.http)
    answer = connected.run(P, accept=accept)
    assert answer.headers["content-type"] == content_type
    assert sorted(answer.text.splitlines()) == SEEN
    assert sorted(connected.run(P).json()) == SEEN
    assert sorted(connected.run(P, format="ntriples").text.splitlines()) == SEEN
    assert dump(connected.http) == before
    refused(connected.run(P, accept="text/csv"), 406)


@pytest.mark.parametrize("way", ["parameter", "member"])
def test_what_comes_through_is_stored(connected: Holons, way: str) -> None:
    if way == "parameter":
        answer = connected.run(P, store="true")
    else:
        answer = connected.http.post(f"/holonic/portals/{in_path(P)}/run", json={"store": True})
    confirmation = confirmed(answer)
    assert confirmation["affected_triples"] == 2
    assert connected.layer(B, "projection") == SEEN
    assert connected.detail(B)["layers"]["projection"][0]["graph"] == confirmation["graph"]


def test_it_takes_the_place_of_what_came_through_before(connected: Holons) -> None:
    confirmed(connected.add(B, "projection", "<urn:other> <urn:p> 1 ."))
    graph = confirmed(connected.run(P, store="true"))["graph"]
    assert confirmed(connected.run(P, store="true"))["affected_triples"] == 0
    interior = connected.detail(A)["layers"]["interior"][0]["graph"]
    update(connected.http, f"WITH <{interior}> DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}")
    confirmed(connected.add(A, "interior", "<urn:s> <urn:x#p> <urn:o3> ."))
    assert confirmed(connected.run(P, store="true")) | {"snapshot_index": 0} == {
        "success": True,
        "message": "update applied",
        "snapshot_index": 0,
        "affected_triples": 2,
        "graph": graph,
    }
    seen = ["<urn:s> <urn:x#seen> <urn:o2> .", "<urn:s> <urn:x#seen> <urn:o3> ."]
    assert [line for line in connected.layer(B, "projection") if "seen" in line] == seen
    assert len(connected.layer(B, "projection")) == 3


def test_two_portals_to_one_holon_store_apart(connected: Holons) -> None:
    confirmed(connected.connect(Q, B, B, "CONSTRUCT { <urn:a> <urn:b> <urn:c> } WHERE {}"))
    graphs = {confirmed(connected.run(iri, store="true"))["graph"] for iri in (P, Q)}
    assert len(graphs) == 2
    assert connected.layer(B, "projection") == ["<urn:a> <urn:b> <urn:c> .", *SEEN]


def test_a_target_elsewhere(connected: Holons) -> None:
    confirmed(connected.connect(Q, A, C, TRANSLATE))
    assert sorted(connected.run(Q).json()) == SEEN
    before = dump(connected.http)
    assert f"there is no holon <{C}>" in refused(connected.run(Q, store="true"), 404)
    assert dump(connected.http) == before
    confirmed(connected.declare(C))
    confirmed(connected.run(Q, store="true"))
    assert connected.layer(C, "projection") == SEEN


def test_a_portal_reads_the_layers_of_its_source_and_nothing_else(connected: Holons) -> None:
    confirmed(connected.add(A, "context", "<urn:context> <urn:x#p> <urn:o> ."))
    confirmed(connected.add(B, "interior", "<urn:b> <urn:x#p> <urn:o> ."))
    confirmed(connected.declare(A, "other"))
    confirmed(connected.add(A, "interior", "<urn:other> <urn:x#p> <urn:o> .", "other"))
    update(connected.http, "INSERT DATA { <urn:default> <urn:x#p> <urn:o> }")
    everything = (
        "CONSTRUCT { ?s <urn:in> ?g } WHERE { { GRAPH ?g { ?s <urn:x#p> ?o } } UNION { ?s <urn:x#p> ?g } }"
    )
    confirmed(connected.connect(Q, A, B, everything))
    subjects = {line.split()[0] for line in connected.run(Q).json()}
    assert subjects == {"<urn:s>", "<urn:context>"}


def test_a_source_that_holds_nothing(connected: Holons) -> None:
    update(connected.http, "INSERT DATA { <urn:default> <urn:x#p> <urn:o> }")
    confirmed(connected.connect(Q, B, A, TRANSLATE))
    assert connected.run(Q).json() == []
    assert confirmed(connected.run(Q, store="true"))["affected_triples"] == 0
    assert connected.detail(A)["layers"]["projection"] == []


def test_blank_nodes_that_come_through_are_others(connected: Holons) -> None:
    confirmed(connected.add(A, "interior", "<urn:s> <urn:x#p> [] ."))
    confirmed(connected.run(P, store="true"))
    inside = {
        word for line in connected.layer(A, "interior") for word in line.split() if word.startswith("_:")
    }
    outside = {
        word for line in connected.layer(B, "projection") for word in line.split() if word.startswith("_:")
    }
    assert (len(inside), len(outside), inside & outside) == (1, 1, set())


@pytest.mark.parametrize(
    ("options", "body", "reason"),
    [
        ({"store": "yes"}, b"", "store: 'yes' is neither true nor false"),
        ({"store": "true"}, b'{"store": true}', "store: given in the query string and in the body"),
        ({}, b'{"store": 1}', "store: Input should be a valid boolean"),
        ({}, b'{"to": "x"}', "to: Extra inputs are not permitted"),
        ({"query": TRANSLATE}, b"", "names a query or a dataset"),
        ({"default-graph-uri": "urn:holonic:other:registry"}, b"", "names a query or a dataset"),
        ({"timeout": "0"}, b"", "timeout: "),
    ],
)
def test_runs_that_cannot_mean_anything(
    connected: Holons, options: dict[str, str], body: bytes, reason: str
) -> None:
    answer = connected.http.post(
        f"/holonic/portals/{in_path(P)}/run",
        params=options,
        content=body,
        headers={"Content-Type": "application/json"},
    )
    assert reason in refused(answer, 400)


def test_a_portal_that_is_not_there(connected: Holons) -> None:
    assert f"there is no portal <{Q}> in tenant 'usual'" in refused(connected.run(Q), 404)
    refused(connected.run(P, "other"), 404)
    refused(connected.run(P, "other", store="true"), 404)


def test_a_query_that_somebody_has_changed_is_no_way_out(connected: Holons) -> None:
    boundary = connected.detail(A)["layers"]["boundary"][0]["graph"]
    for text in (
        "SELECT * { ?s ?p ?o }",
        "CONSTRUCT { ?s ?p ?o } FROM <urn:holonic:usual:registry> { ?s ?p ?o }",
    ):
        update(
            connected.http,
            f"""
            PREFIX h: <urn:graphdb:holonic#> WITH <{boundary}>
            DELETE {{ <{P}> h:constructQuery ?old }} INSERT {{ <{P}> h:constructQuery '{text}' }}
            WHERE {{ <{P}> h:constructQuery ?old }}
            """,
        )
        for options in ({}, {"store": "true"}):
            assert "construct_query: " in refused(connected.run(P, **options), 400)
