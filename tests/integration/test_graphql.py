"""GraphQL in a running service, over real data, asked by the `gql` client: the same as SPARQL says."""

import asyncio
import gzip
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from gql import Client, gql
from gql.transport.exceptions import TransportQueryError
from gql.transport.httpx import HTTPXTransport
from gql.transport.websockets import WebsocketsTransport

from benchmarks.graphql import ONTOLOGY
from tests.support.npm_peer import npm_peer, why_no_npm
from tests.support.service import Service
from tests.support.timing import HANG_S
from tests.support.transport_socket import transport_client

pytestmark = [pytest.mark.ray, pytest.mark.slow]

DATA = Path(os.environ.get("GRAPHDB_SHARED", Path(__file__).parents[2].parent / "shared")) / "data"
ONTOLOGIES = Path(__file__).parent / "ontologies"
GRAPHS = {
    "http://g.example/flights": ("openflights", ONTOLOGY),
    "http://g.example/olympics": ("olympics-medals", ONTOLOGIES / "olympics.ttl"),
    "http://g.example/bsbm": ("bsbm375k", ONTOLOGIES / "bsbm.ttl"),
}
FLIGHTS, OLYMPICS, BSBM = GRAPHS
LINES = 400_000  # of each


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    if not DATA.exists():
        pytest.skip("the data of the benchmarks is not there: ../shared/data (or $GRAPHDB_SHARED)")
    service = Service(tmp_path_factory.mktemp("graphql") / "data")
    try:
        service.start()
        with httpx.Client(base_url=service.url, timeout=300, trust_env=False) as http:
            for graph, (name, ontology) in GRAPHS.items():
                with gzip.open(DATA / f"{name}.nt.gz") as lines:
                    triples = b"".join(line for _, line in zip(range(LINES), lines, strict=False))
                put(http, graph, triples, "application/n-triples")
                put(http, f"{graph}/ontology", ontology.read_bytes(), "text/turtle")
        yield service
    finally:
        service.close()


def put(http: httpx.Client, graph: str, content: bytes, media_type: str) -> None:
    answer = http.put("/data", params={"graph": graph}, content=content, headers={"Content-Type": media_type})
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def client(running: Service) -> Client:
    transport = HTTPXTransport(f"{running.url}/graphql", timeout=HANG_S)
    return Client(transport=transport, fetch_schema_from_transport=True)


def ask(client: Client, text: str, **variables: Any) -> Any:
    query = gql(text)
    query.variable_values = variables
    return client.execute(query)


def rows(running: Service, graph: str, query: str) -> list[list[str]]:
    """What SPARQL says of a graph."""
    prefixes = (
        "PREFIX f: <http://openflights.example/ont#> PREFIX o: <http://wallscope.co.uk/ontology/olympics/> "
        "PREFIX b: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/> "
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX dbp: <http://dbpedia.org/property/> "
        "PREFIX rev: <http://purl.org/stuff/rev#> PREFIX foaf: <http://xmlns.com/foaf/0.1/> "
    )
    answer = httpx.post(
        f"{running.url}/sparql",
        params={"default-graph-uri": graph},
        content=prefixes + query,
        headers={"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"},
        timeout=HANG_S,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return [
        [one[name]["value"] if name in one else "" for name in found["head"]["vars"]]
        for one in found["results"]["bindings"]
    ]


def shown(node: dict[str, str] | None, name: str) -> str:
    return (node or {}).get(name) or ""


def test_three_levels_of_flights(running: Service, client: Client) -> None:
    wrong = '{ airports(filter: {iata: {gte: "A"}}) { totalCount } }'
    with pytest.raises(Exception, match="gte"):  # the client knows the schema, and so what a String can do
        ask(client, wrong)
    found = ask(
        client,
        """query ($graph: String!) {
          airports(graph: $graph, first: 100, orderBy: {field: "iata"},
                   filter: {iata: {startsWith: "F"}, country: {name: {eq: "Germany"}}}) {
            totalCount
            edges { node { iata departures(filter: {stops: {eq: 0}}) { to { iata } airline { name } } } }
          }
        }""",
        graph=FLIGHTS,
    )["airports"]
    ours = sorted(
        [
            edge["node"]["iata"],
            (route["to"] or {}).get("iata") or "",
            (route["airline"] or {}).get("name") or "",
        ]
        for edge in found["edges"]
        for route in edge["node"]["departures"] or ()
    )
    theirs = rows(
        running,
        FLIGHTS,
        """SELECT ?iata ?to ?airline { ?airport a f:Airport ; f:iata ?iata ; f:country/rdfs:label "Germany" .
        FILTER(STRSTARTS(?iata, "F")) ?route f:from ?airport ; f:stops 0 .
        OPTIONAL { ?route f:to/f:iata ?to } OPTIONAL { ?route f:airline/rdfs:label ?airline } }""",
    )
    assert ours == sorted(theirs)
    assert found["totalCount"] == len(found["edges"]) > 0


def test_pages_of_medals_are_all_of_them(running: Service, client: Client) -> None:
    text = """query ($graph: String!, $after: String) {
      olympicses: olympics(graph: $graph) { id }
      medals: instances(graph: $graph, first: 100, after: $after, orderBy: {field: "id", direction: DESC},
          filter: {games: {year: {eq: 1896}}}) {
        totalCount edges { node { id medal athlete { age } games { year } } }
        pageInfo { hasNextPage endCursor }
      } }"""
    seen: list[list[str]] = []
    after = None
    while True:
        found = ask(client, text, graph=OLYMPICS, after=after)["medals"]
        seen += [[one["node"]["id"], one["node"]["medal"]] for one in found["edges"]]
        if not found["pageInfo"]["hasNextPage"]:
            break
        after = found["pageInfo"]["endCursor"]
    theirs = rows(
        running,
        OLYMPICS,
        """SELECT ?i ?medal { ?i o:games/dbp:year ?year ; o:medal ?medal FILTER(?year = 1896) }
        ORDER BY DESC(?i)""",
    )
    assert seen == theirs
    assert found["totalCount"] == len(seen) > 100


def test_products_with_offers_and_reviews(running: Service, client: Client) -> None:
    found = ask(
        client,
        """query ($graph: String!) {
          products(graph: $graph, first: 10, orderBy: [{field: "numeric", direction: DESC}],
                   filter: {reviews: {rating: {gte: 9}}, not: {offers: {deliveryDays: {lt: 2}}}}) {
            totalCount
            edges { node { id numeric offers { product { id } } reviews(filter: {rating: {gte: 9}}) { id } } }
          } }""",
        graph=BSBM,
    )["products"]
    numbers = rows(running, BSBM, "SELECT ?p ?n { ?p a b:Product ; b:productPropertyNumeric1 ?n }")
    good = Counter(
        product
        for (product,) in rows(
            running, BSBM, "SELECT ?p { ?r b:reviewFor ?p ; b:rating1 ?rating FILTER(?rating >= 9) }"
        )
    )
    soon = rows(running, BSBM, "SELECT DISTINCT ?p { ?o b:product ?p ; b:deliveryDays ?d FILTER(?d < 2) }")
    theirs = sorted(
        ([one, number, str(good[one])] for one, number in numbers if good[one] and [one] not in soon),
        key=lambda row: (-int(row[1]), row[0]),
    )
    ours = [
        [node["id"], str(node["numeric"]), str(len(node["reviews"]))]
        for node in (one["node"] for one in found["edges"])
    ]
    assert found["totalCount"] == len(theirs) > 0
    assert ours == theirs[:10]


def test_a_type_of_two_ontologies_is_one(client: Client) -> None:
    assert client.schema is None or "Person" in client.schema.type_map
    found = ask(client, "query ($g: String!) { persons(graph: $g) { totalCount } }", g=OLYMPICS)
    assert found["persons"]["totalCount"] > 1000


def test_errors_come_with_their_codes(client: Client) -> None:
    raw = Client(transport=client.transport)
    with pytest.raises(TransportQueryError) as caught:
        ask(raw, "{ spaceships { totalCount } }")
    assert caught.value.errors is not None
    assert [one["extensions"]["code"] for one in caught.value.errors] == ["UNKNOWN_TYPE"]


CREW = """
PREFIX : <http://ship.example/> PREFIX sh: <http://www.w3.org/ns/shacl#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:SailorShape a sh:NodeShape ; sh:targetClass :Sailor ; sh:property
    [ sh:path :name ; sh:datatype xsd:string ; sh:minCount 1 ; sh:maxCount 1 ],
    [ sh:path :mate ; sh:class :Sailor ; sh:maxCount 1 ] ;
    sh:sparql [ sh:message "nobody is called Jonah" ;
        sh:select "SELECT $this { $this <http://ship.example/name> 'Jonah' }" ] .
"""


@pytest.fixture(scope="module")
def crew(running: Service) -> Client:
    """Shapes with SPARQL among them, which readers validate."""
    with httpx.Client(base_url=running.url, timeout=HANG_S, trust_env=False) as http:
        put(http, "http://g.example/crew", CREW.encode(), "text/turtle")
    return Client(
        transport=HTTPXTransport(f"{running.url}/graphql", timeout=HANG_S), fetch_schema_from_transport=True
    )


def refusal(client: Client, text: str, **variables: Any) -> list[tuple[Any, str]]:
    with pytest.raises(TransportQueryError) as caught:
        ask(client, text, **variables)
    return [(one["path"], one["extensions"]["code"]) for one in caught.value.errors or ()]


def test_mutations_are_what_sparql_then_sees(running: Service, crew: Client) -> None:
    text = """mutation ($ann: CreateSailorInput!, $bob: CreateSailorInput!, $g: String!) {
        ann: createSailor(input: $ann, graph: $g) { id }
        bob: createSailor(input: $bob, graph: $g) { name mate { name } } }"""
    ann, bob, graph = "http://ship.example/ann", "http://ship.example/bob", "http://g.example/ship"
    members = {"ann": {"id": ann, "name": "Ann"}, "bob": {"id": bob, "name": "Bob", "mate": ann}}
    made = ask(crew, text, **members, g=graph)
    assert made == {"ann": {"id": ann}, "bob": {"name": "Bob", "mate": {"name": "Ann"}}}
    query = "SELECT ?name { ?s <http://ship.example/name> ?name } ORDER BY ?name"
    assert rows(running, graph, query) == [["Ann"], ["Bob"]]
    renaming = """mutation ($id: ID!, $name: String, $at: SnapshotIndex, $g: String) {
        updateSailor(input: {id: $id, name: $name}, ifSnapshot: $at, graph: $g) { name } }"""
    assert refusal(crew, renaming, id=ann, name="Jonah", g=graph) == [(["updateSailor"], "VALIDATION_FAILED")]
    assert refusal(crew, renaming, id=ann, name="Eve", at=0, g=graph) == [(["updateSailor"], "CONFLICT")]
    assert refusal(crew, renaming, id=ann, name="Eve") == [(["updateSailor"], "NOT_FOUND")]
    assert ask(crew, renaming, id=ann, name="Eve", g=graph) == {"updateSailor": {"name": "Eve"}}
    removal = "mutation ($id: ID!, $g: String) { deleteSailor(id: $id, graph: $g) { success } }"
    assert refusal(crew, removal, id=ann, g=graph) == [(["deleteSailor"], "VALIDATION_FAILED")]  # Bob's mate
    assert ask(crew, removal, id=bob, g=graph) == {"deleteSailor": {"success": True}}
    assert ask(crew, removal, id=ann, g=graph) == {"deleteSailor": {"success": True}}
    assert rows(running, graph, query) == []


COUNTERS = """@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix : <urn:counters:> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Counter a owl:Class .
:count a owl:FunctionalProperty ; rdfs:domain :Counter ; rdfs:range xsd:integer .
:after a owl:FunctionalProperty ; rdfs:domain :Counter ; rdfs:range :Counter ."""
COUNT = "PREFIX : <urn:counters:> DELETE WHERE {{ :c :count ?n }} ; INSERT DATA {{ :c :count {number} }}"


@pytest.fixture(scope="module")
def counters(running: Service) -> Service:
    with httpx.Client(base_url=running.url, trust_env=False, timeout=HANG_S) as http:
        put(http, "urn:counters:ontology", COUNTERS.encode(), "text/turtle")
    running.update("PREFIX : <urn:counters:> INSERT DATA { :c a :Counter ; :count 0 }")
    return running


def test_gql_hears_subscriptions_over_its_websocket(counters: Service) -> None:
    async def hear() -> list[Any]:
        transport = WebsocketsTransport(  # made within a loop, else it makes one that nobody closes
            f"{counters.url.replace('http', 'ws')}/graphql/ws",
            subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
            answer_pings=True,
        )
        async with Client(transport=transport, fetch_schema_from_transport=True) as session:
            text = """subscription { counterChanged(filter: {after: {count: {gte: 7}}}) {
                mutationType node { id after { count } } } }"""
            found = [await session.execute(gql("{ counter { count } }"))]
            events = session.subscribe(gql(text)).__aiter__()
            told = asyncio.ensure_future(anext(events))
            await asyncio.to_thread(counters.wait_until, lambda: telling(counters), 30)
            await asyncio.to_thread(
                counters.update, "PREFIX : <urn:counters:> INSERT DATA { :d a :Counter ; :after :c }"
            )
            for number in (7, 8, 6):  # of another resource, which is shown, and filtered by
                await asyncio.to_thread(counters.update, COUNT.format(number=number))
                found.append(await told)
                told = asyncio.ensure_future(anext(events))
            told.cancel()
            return found

    def event(kind: str, count: int) -> Any:
        return {
            "counterChanged": {
                "mutationType": kind,
                "node": {"id": "urn:counters:d", "after": {"count": count}},
            }
        }

    before, *events = asyncio.run(hear())
    assert before == {"counter": [{"count": 0}]}
    assert events == [event("CREATED", 7), event("UPDATED", 8), event("DELETED", 8)]


def telling(service: Service) -> int:
    health = httpx.get(f"{service.url}/health", trust_env=False).json()
    return int(health["embedded_store"]["active_listener_count"])


COUNTED = 'subscription { counterChanged(filter: {id: {eq: "urn:counters:c"}}) { node { count } } }'


def test_graphql_ws_of_npm_hears_what_it_missed_and_what_comes(counters: Service) -> None:
    if reason := why_no_npm():
        pytest.skip(reason)
    since = counters.update(COUNT.format(number=100))["snapshot_index"]
    acknowledged = {}
    with npm_peer(counters.url, COUNTED, since) as peer:
        for number in range(101, 121):
            acknowledged[counters.update(COUNT.format(number=number))["snapshot_index"]] = number
        while len(peer.heard) < len(acknowledged):
            peer.wait("next")
        peer.end()
        assert [
            (one["extensions"]["index"], one["data"]["counterChanged"]["node"]["count"]) for one in peer.heard
        ] == list(acknowledged.items())
    counters.wait_until(lambda: not telling(counters), HANG_S)


def test_a_subscription_resumes_after_a_kill(counters: Service) -> None:
    since = counters.update(COUNT.format(number=200))["snapshot_index"]
    with transport_client(counters.url) as client:
        client.initialise(since=since)
        client.subscribe("c", COUNTED)
        counters.update(COUNT.format(number=201))
        first = client.receive()["payload"]
        counters.update(COUNT.format(number=202))
        counters.kill()
    counters.start()
    last = counters.update(COUNT.format(number=203))["snapshot_index"]
    with transport_client(counters.url) as client:
        client.initialise(since=first["extensions"]["index"])
        client.subscribe("c", COUNTED)
        found = [first, *(client.receive()["payload"] for _ in range(2))]
    assert [one["data"]["counterChanged"]["node"]["count"] for one in found] == [201, 202, 203]
    assert found[-1]["extensions"]["index"] == last


def test_a_kill_of_the_port_leaves_the_schema_to_the_log(running: Service, client: Client) -> None:
    """Nothing of GraphQL is kept anywhere but in the graph."""
    before = httpx.get(f"{running.url}/graphql/schema", trust_env=False, timeout=HANG_S).text
    running.stop()
    running.start()
    assert httpx.get(f"{running.url}/graphql/schema", trust_env=False, timeout=HANG_S).text == before
