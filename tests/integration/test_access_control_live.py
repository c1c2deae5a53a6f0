"""The running service with `[acl]`: live queries, the stream of changes, alerts and the search port."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import orjson
import pytest
from elasticsearch import AuthorizationException, Elasticsearch, NotFoundError
from websockets import Subprotocol
from websockets.sync.client import ClientConnection, connect

from graphdb.access.api_keys import key_digest
from graphdb.sparql.search_requests import CONNECTORS
from tests.support.live_socket import live_client
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ONE = "S-1-5-21-1"
CONFIGURATION = """
[server]
public_probes = true

[authentication]
enabled = true

[acl.contexts.some]
visible_graphs = ["urn:open"]
visible_default_graph = true
visible_indexes = ["open-*"]

[acl.role_contexts]
writer = "some"
"""
KEY = """
[[authentication.api_keys]]
name = "{name}"
key_sha256 = "{digest}"
roles = ["{role}"]
sids = [{sids}]
"""
KEYS = {"root": ("admin", ""), "one": ("writer", f'"{ONE}"'), "none": ("writer", "")}
STATEMENT = "LIVE SELECT ?s ?n WHERE { ?s <urn:n> ?n }"
PREFIX = "PREFIX acl: <urn:graphdb:acl#> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("acl")
    keys = (
        KEY.format(name=name, digest=key_digest(name), role=role, sids=sids)
        for name, (role, sids) in KEYS.items()
    )
    (directory / "graphdb.toml").write_text(CONFIGURATION + "".join(keys))
    running = Service(directory / "data", search=True)
    try:
        yield running.start()
    finally:
        running.close()


def key(name: str) -> dict[str, str]:
    return {"X-API-Key": name}


def ask(service: Service, who: str, method: str, path: str, **options: object) -> httpx.Response:
    with httpx.Client(base_url=service.url, headers=key(who), trust_env=False, timeout=HANG_S) as http:
        return http.request(method, path, **options)  # type: ignore[arg-type]


def update(service: Service, text: str) -> int:
    answer = ask(service, "root", "POST", "/update", data={"update": PREFIX + text})
    assert answer.status_code == 200, answer.text
    index: int = answer.json()["snapshot_index"]
    return index


def test_who_may_not_see_a_triple_hears_nothing_of_it(service: Service) -> None:
    since = update(
        service,
        "INSERT DATA { <urn:a> <urn:n> 1 . "
        f'<urn:r> rdf:reifies <<( <urn:a> <urn:n> 1 )>> ; acl:allowedSid "{ONE}" }}',
    )
    with (
        live_client(service.url, additional_headers=key("one")) as one,
        live_client(service.url, additional_headers=key("none")) as none,
    ):
        one.live(STATEMENT)
        none.live(STATEMENT)
        update(service, "DELETE DATA { <urn:a> <urn:n> 1 }")
        update(service, "INSERT DATA { GRAPH <urn:shut> { <urn:x> <urn:n> 1 } }")
        update(service, "INSERT DATA { <urn:b> <urn:n> 2 }")
        heard, other = [one.receive() for _ in range(2)], none.receive()
        assert [message["action"] for message in heard] == ["DELETE", "CREATE"]
        assert (other["action"], other["result"]["s"]) == ("CREATE", "urn:b")
    # the view is of that index: what was before, nobody has followed
    refused = ask(service, "none", "GET", f"/changes?since={since - 1}&follow=false")
    assert (refused.status_code, refused.json()["code"]) == (410, "resnapshot")
    assert ask(service, "root", "GET", f"/changes?since={since}&follow=false").status_code == 200


def test_a_subscription_of_graphql_tells_what_its_subscriber_sees(service: Service) -> None:
    update(
        service,
        "PREFIX owl: <http://www.w3.org/2002/07/owl#> INSERT DATA { <urn:o#Thing> a owl:Class . "
        f'<urn:k> rdf:reifies <<( <urn:t1> a <urn:o#Thing> )>> ; acl:allowedSid "{ONE}" }}',
    )
    with subscribed(service, "one") as one, subscribed(service, "none") as none:
        update(service, "INSERT DATA { <urn:t1> a <urn:o#Thing> }")
        update(service, "DELETE DATA { <urn:t1> a <urn:o#Thing> }")
        update(service, "INSERT DATA { <urn:t2> a <urn:o#Thing> }")
        heard = [told(one) for _ in range(3)]
        assert heard == [("CREATED", "urn:t1"), ("DELETED", "urn:t1"), ("CREATED", "urn:t2")]
        assert told(none) == ("CREATED", "urn:t2")


@contextmanager
def subscribed(service: Service, who: str) -> Iterator[ClientConnection]:
    """A socket whose subscription is open: changes from now on are told."""
    with connect(
        f"{service.url.replace('http', 'ws', 1)}/graphql/ws",
        additional_headers=key(who),
        subprotocols=[Subprotocol("graphql-transport-ws")],
        proxy=None,
    ) as socket:
        index = ask(service, "root", "GET", "/health").json()["snapshot_index"]
        query = "subscription { thingChanged { mutationType node { id } } }"
        socket.send(orjson.dumps({"type": "connection_init"}).decode())
        assert orjson.loads(socket.recv(timeout=HANG_S))["type"] == "connection_ack"
        payload = {"query": query, "extensions": {"since": index}}
        socket.send(orjson.dumps({"id": "1", "type": "subscribe", "payload": payload}).decode())
        yield socket


def told(socket: ClientConnection) -> tuple[str, str]:
    message = orjson.loads(socket.recv(timeout=HANG_S))
    assert message["type"] == "next", message
    changed = message["payload"]["data"]["thingChanged"]
    return changed["mutationType"], changed["node"]["id"]


def test_an_alert_is_its_maker_s(service: Service) -> None:
    body = {
        "name": "many",
        "query": "SELECT * { ?s <urn:n> ?n }",
        "condition": "result > 100",
        "interval_seconds": 1,
        "webhook": "https://1.1.1.1/",
    }
    made = ask(service, "none", "POST", "/alerts", json=body)
    assert made.status_code == 200, made.text
    place = f"/alerts/{made.json()['id']}"
    for path in (place, "/alerts/many", f"{place}/history"):
        assert ask(service, "one", "GET", path).status_code == 404
        assert ask(service, "none", "GET", path).status_code == 200
        assert ask(service, "root", "GET", path).status_code == 200
    assert ask(service, "one", "GET", "/alerts").json() == {"alerts": []}
    assert ask(service, "one", "DELETE", place).status_code == 404
    assert ask(service, "none", "DELETE", place).status_code == 200


def test_the_search_port(service: Service) -> None:
    url = service.search_url
    listing = f"{url}/_cat/indices"
    service.wait_until(
        lambda: httpx.get(listing, headers=key("root"), trust_env=False).status_code == 200, 60
    )
    with (
        Elasticsearch(url, api_key="root") as root,
        Elasticsearch(url, api_key="one") as one,
        Elasticsearch(url, api_key="none") as none,
    ):
        for index in ("open-a", "shut-a"):
            root.index(index=index, id="1", document={"n": 1}, refresh=True)
            root.index(index=index, id="2", document={"n": 2, "_allow_sids": [ONE]}, refresh=True)
        assert (root.count()["count"], one.count()["count"], none.count()["count"]) == (4, 2, 1)
        for client in (one, none):
            with pytest.raises(NotFoundError):
                client.search(index="shut-a")
            with pytest.raises(AuthorizationException):
                client.index(index="shut-b", document={})
        assert one.get(index="open-a", id="2")["_source"] == {"n": 2}
        with pytest.raises(NotFoundError):
            none.get(index="open-a", id="2")
        # what a search asks of the graph is asked as whoever searches
        hides = "<urn:q> rdf:reifies <<( <urn:c> <urn:by> <urn:d> )>> ; acl:allowedSid"
        update(service, f'INSERT DATA {{ {hides} "{ONE}" }}')
        update(service, "INSERT DATA { <urn:c> <urn:by> <urn:d> }")
        root.index(index="open-c", id="urn:c", document={"t": "c"}, refresh=True)
        asked = {"_ext": {"sparql_filter": {"ask": "ASK { <{id}> <urn:by> <urn:d> }"}}}
        found = {}
        for name in KEYS:
            answer = httpx.post(
                f"{url}/open-c/_search",
                content=orjson.dumps(asked),
                trust_env=False,
                headers={**key(name), "Content-Type": "application/json"},
                timeout=HANG_S,
            )
            found[name] = answer.json()["hits"]["total"]["value"]
        assert found == {"root": 1, "one": 1, "none": 0}


SEARCHES = {
    "service": """SELECT * {{ SERVICE <search:{index}> {{ [] search:query "*" ; search:totalHits ?total ;
        search:hit [ search:entity ?id ; search:source ?source ] }} }}""",
    "nearest": """SELECT * {{ SERVICE <search:{index}> {{ [] search:knn (1 0) ; search:field "at" ;
        search:hit [ search:entity ?id ; search:source ?source ] }} }}""",
    "like a document": """SELECT * {{ SERVICE <search:{index}> {{ [] search:knn <urn:d1> ; search:field "at" ;
        search:hit [ search:entity ?id ; search:source ?source ] }} }}""",
    "like a hidden document": """SELECT * {{ SERVICE <search:{index}> {{ [] search:knn <urn:d2> ;
        search:field "at" ; search:hit [ search:entity ?id ; search:source ?source ] }} }}""",
    "aggregated": """SELECT * {{ SERVICE <search:{index}> {{ [] search:query "{{\\"match_all\\": {{}}}}" ;
        search:limit 1 ; search:totalHits ?total }} }}""",
    "connector": """SELECT * {{ ?x a <http://www.ontotext.com/connectors/elasticsearch/instance#{index}> ;
        con:query "*" ; con:totalHits ?total ; con:entities ?id . ?id con:score ?score }}""",
    "explained": """SELECT * {{ SERVICE <search:{index}> {{ [] search:query "*" ;
        search:hit [ search:entity ?id ] }} }}""",
}


def searched(service: Service, who: str, name: str, index: str) -> tuple[int, str]:
    """The status and what an answer has, without what differs from one run to the next."""
    query = SEARCHES[name].format(index=index)
    prefixes = f"PREFIX search: <urn:graphdb:search#> PREFIX con: <{CONNECTORS[0]}> "
    explained = {"explain": "true"} if name == "explained" else {}
    answer = ask(service, who, "POST", "/sparql", data={"query": prefixes + query, **explained})
    if explained and answer.status_code == 200:
        return 200, str([(one["hits"], one["rows"]) for one in answer.json()["lookups"]])
    return answer.status_code, answer.text


def test_a_search_in_a_query_finds_what_its_caller_may_find(service: Service) -> None:
    """By each spelling, and by the tool of agents: hidden documents and indexes are as if they were not."""
    listing = f"{service.search_url}/_cat/indices"
    service.wait_until(
        lambda: httpx.get(listing, headers=key("root"), trust_env=False).status_code == 200, 60
    )
    mappings = {"properties": {"at": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}}}
    with Elasticsearch(service.search_url, api_key="root") as root:
        for index in ("open-v", "open-twin", "shut-v"):
            root.indices.create(index=index, mappings=mappings)
            root.index(index=index, id="urn:d1", document={"at": [1, 0], "t": "wine"}, refresh=True)
            root.index(index=index, id="urn:d3", document={"at": [0, 1], "t": "beer"}, refresh=True)
        hidden = {"at": [1, 0.1], "t": "water", "_allow_sids": [ONE]}
        root.index(index="open-v", id="urn:d2", document=hidden, refresh=True)
    for name in SEARCHES:
        all_of_it = searched(service, "one", name, "open-v")
        visible, twin = (searched(service, "none", name, index) for index in ("open-v", "open-twin"))
        assert (visible[0], visible[1].replace("open-v", "open-twin")) == twin, name
        assert all_of_it != visible, name
        assert "water" not in visible[1], name
        for who in ("one", "none"):
            refused = searched(service, who, name, "shut-v")
            missing = searched(service, who, name, "gone-v")
            assert (refused[0], refused[1].replace("shut-v", "gone-v")) == missing, name
        assert searched(service, "root", name, "shut-v")[0] in (200, 400), name
        if "like" in name:
            continue  # of one index, whose document it is
        pattern = searched(service, "none", name, "*-v")
        assert (pattern[0], pattern[1].replace("*-v", "open-v")) == visible, name
    assert agent_finds(service, "one", "open-v", "water") == ["open-v urn:d2"]
    assert agent_finds(service, "none", "open-v", "water") == ["nothing was found"]
    assert agent_finds(service, "none", "shut-v", "wine") == ["no such index [shut-v]"]
    assert agent_finds(service, "none", "*-v", "wine") == ["open-v urn:d1"]


def agent_finds(service: Service, who: str, index: str, words: str) -> list[str]:
    """What the tool `search` of /mcp says, each line up to its score."""
    call = {"name": "search", "arguments": {"index": index, "words": words}}
    answer = ask(
        service,
        who,
        "POST",
        "/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        headers={"Accept": "application/json, text/event-stream"},
    )
    text: str = answer.json()["result"]["content"][0]["text"]
    return [line.partition(" (score")[0] for line in text.splitlines()]
