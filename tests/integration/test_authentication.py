"""The running service with authentication on, as its clients meet it, and its own processes each other."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from elasticsearch import AuthenticationException, AuthorizationException, Elasticsearch
from gql import Client, gql
from gql.transport.exceptions import TransportServerError
from gql.transport.httpx import HTTPXTransport

from graphdb.access.api_keys import key_digest
from graphdb.access.passwords import hash_password
from tests.support.live_socket import live_client
from tests.support.service import COMMAND, Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIGURATION = """
[server]
public_probes = true  # by which the test knows that it is ready

[authentication]
enabled = true
rate_limiting = {{max_attempts = 5, lockout_duration = 60}}

[authentication.basic]
enabled = true
users = [
    {{username = "ada", password_hash = "{ada}", roles = ["admin"]}},
    {{username = "rob", password_hash = "{rob}", roles = ["reader"]}},
]

[[authentication.api_keys]]
name = "robot"
key_sha256 = "{robot}"
roles = ["writer"]
"""
ADA, ROB = ("ada", "of ada"), ("rob", "of rob")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("authentication")
    text = CONFIGURATION.format(
        ada=hash_password(ADA[1]), rob=hash_password(ROB[1]), robot=key_digest("gdb_key")
    )
    (directory / "graphdb.toml").write_text(text)
    running = Service(directory / "data", search=True)
    try:
        yield running.start()
    finally:
        running.close()


def update(service: Service, text: str) -> None:
    key = {"X-API-Key": "gdb_key"}
    answer = httpx.post(f"{service.url}/update", data={"update": text}, headers=key, trust_env=False)
    assert answer.status_code == 200, answer.text


def test_elasticsearch_s_client(service: Service) -> None:
    with (
        Elasticsearch(service.search_url, basic_auth=ADA) as ada,
        Elasticsearch(service.search_url, api_key="gdb_key") as robot,
        Elasticsearch(service.search_url, api_key=("any", "gdb_key")) as also_robot,
        Elasticsearch(service.search_url, basic_auth=ROB) as rob,
        Elasticsearch(service.search_url) as nobody,
    ):
        ada.indices.create(index="books", mappings={"properties": {"title": {"type": "text"}}})
        robot.index(index="books", id="urn:emma", document={"title": "Emma"}, refresh=True)
        assert also_robot.count(index="books")["count"] == 1
        with pytest.raises(AuthorizationException):
            robot.indices.delete(index="books")
        with pytest.raises(AuthorizationException):
            rob.index(index="books", document={"title": "Persuasion"})
        with pytest.raises(AuthenticationException):
            nobody.info()
        ask = {"sparql_filter": {"ask": "ASK { <{id}> <urn:by> <urn:austen> }"}}
        json_type = {"content-type": "application/json"}
        asked = {"query": {"match": {"title": "emma"}}, "_ext": ask}
        assert (
            rob.perform_request("POST", "/books/_search", headers=json_type, body=asked)["hits"]["hits"] == []
        )
        update(service, "INSERT DATA { <urn:emma> <urn:by> <urn:austen> }")
        assert (
            len(rob.perform_request("POST", "/books/_search", headers=json_type, body=asked)["hits"]["hits"])
            == 1
        )


def test_an_index_that_follows_the_graph_is_the_node_s_own_work(service: Service) -> None:
    with Elasticsearch(service.search_url, basic_auth=ADA) as ada:
        shape = {"query": "SELECT ?id ?name { ?id <urn:name> ?name }"}
        ada.indices.create(index="named", settings={"graph": {"shape": shape}})
        update(service, "INSERT DATA { <urn:y> <urn:name> 'Ypsilon' }")
        matched = {"match": {"name": "ypsilon"}}
        service.wait_until(lambda: ada.count(index="named", query=matched)["count"] == 1, 60)


def test_a_client_of_graphql(service: Service) -> None:
    url = f"{service.url}/graphql"
    with Client(transport=HTTPXTransport(url, auth=ROB)) as session:
        assert session.execute(gql("{ __typename }")) == {"__typename": "Query"}
    with pytest.raises(TransportServerError, match="401"), Client(transport=HTTPXTransport(url)) as session:
        session.execute(gql("{ __typename }"))


def test_a_client_of_live_queries(service: Service) -> None:
    with live_client(service.url) as live:
        assert live.ask("ping")["error"]["code"] == "unauthorized"
        assert live.ask("signin", {"user": ROB[0], "password": ROB[1]})["result"] is None
        live.live("LIVE SELECT * FROM <urn:Thing>")
        update(service, "INSERT DATA { <urn:x> a <urn:Thing> }")
        assert live.told(1)[0]["action"] == "CREATE"


def test_the_command_line(service: Service, tmp_path: Path) -> None:
    def run(*arguments: str, **credentials: str) -> tuple[int, str]:
        environment = os.environ | {"GRAPHDB_ENDPOINT": service.url} | credentials
        done = subprocess.run(
            [COMMAND, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
        return done.returncode, done.stdout + done.stderr

    ask = ("query", "ASK { ?s ?p ?o }", "--format", "json")
    assert run(*ask) == (1, "graphdb: the service answered 401: this needs credentials\n")
    assert run(*ask, GRAPHDB_API_KEY="gdb_key")[0] == 0
    assert run(*ask, GRAPHDB_USER="rob", GRAPHDB_PASSWORD=ROB[1])[0] == 0
    code, said = run("update", "CLEAR ALL", GRAPHDB_USER="rob", GRAPHDB_PASSWORD=ROB[1])
    assert (code, "403: rob does not have the permission Write" in said) == (1, True)


def test_a_port_locks_out_for_the_other_one(service: Service) -> None:
    """The last test: whoever comes from here is out then."""
    for number in range(5):
        url = (service.url, service.search_url)[number % 2]
        assert httpx.get(url, auth=("rob", "wrong"), trust_env=False).status_code == 401
    for url in (service.url, service.search_url):
        answer = httpx.get(url, auth=ADA, trust_env=False)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert httpx.get(f"{service.url}/health", trust_env=False).status_code == 200
