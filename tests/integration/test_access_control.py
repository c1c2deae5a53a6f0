"""The running service with access control: two readers of one graph, who see different parts of it."""

from collections.abc import Iterator

import httpx
import pytest

from graphdb.access.api_keys import key_digest
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIGURATION = """
[server]
public_probes = true  # by which the test knows that it is ready

[authentication]
enabled = true

[[authentication.api_keys]]
name = "admin"
key_sha256 = "{admin}"
roles = ["admin"]

[[authentication.api_keys]]
name = "restorer"
key_sha256 = "{restorer}"
roles = ["reader", "inner"]
sids = ["S-1-5-21-7"]

[[authentication.api_keys]]
name = "visitor"
key_sha256 = "{visitor}"
roles = ["reader"]
sids = ["S-1-5-21-8"]

[acl.contexts.all]
visible_graphs = ["**"]

[acl.contexts.public]
visible_graphs = ["urn:public:*"]
visible_default_graph = true

[acl.role_contexts]
inner = "all"
reader = "public"
"""
DATA = """PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#>
INSERT DATA {
  :harbour a :Work ; :title "Harbour" ; :insured 250000 {| acl:allowedSid "S-1-5-21-7" |} .
  GRAPH <urn:public:loans> { :harbour :lentTo :oslo } GRAPH <urn:private:bids> { :harbour :bid 90000 }
}"""
ALL = "SELECT ?p { { <urn:x:harbour> ?p ?o } UNION { GRAPH ?g { <urn:x:harbour> ?p ?o } } }"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("access")
    keys = {name: key_digest(name) for name in ("admin", "restorer", "visitor")}
    (directory / "graphdb.toml").write_text(CONFIGURATION.format(**keys))
    running = Service(directory / "data")
    try:
        running.start()
        update(running, DATA)
        yield running
    finally:
        running.close()


def asked(service: Service, key: str, path: str, **options: object) -> httpx.Response:
    headers = {"X-API-Key": key, "Accept": "*/*"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=HANG_S, trust_env=False) as client:
        return client.request("GET", path, **options)  # type: ignore[arg-type]


def update(service: Service, text: str) -> None:
    answer = httpx.post(
        f"{service.url}/update",
        content=text,
        headers={"X-API-Key": "admin", "Content-Type": "application/sparql-update"},
        timeout=HANG_S,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text


def properties(service: Service, key: str) -> set[str]:
    answer = asked(service, key, "/sparql", params={"query": ALL, "format": "csv"})
    assert answer.status_code == 200, answer.text
    return {row.removeprefix("urn:x:") for row in answer.text.split()[1:] if row.startswith("urn:x:")}


def test_each_sees_the_part_that_is_theirs(service: Service) -> None:
    everything = {"title", "insured", "lentTo", "bid"}
    assert properties(service, "admin") == everything
    assert properties(service, "restorer") == everything
    assert properties(service, "visitor") == {"title", "lentTo"}


def test_a_graph_that_is_not_seen_is_unknown(service: Service) -> None:
    hidden, unknown = (
        asked(service, "visitor", "/data", params={"graph": f"urn:private:{name}"})
        for name in ("bids", "none")
    )
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.json()["error"].replace("bids", "none") == unknown.json()["error"]
    assert asked(service, "restorer", "/data", params={"graph": "urn:private:bids"}).status_code == 200


def test_a_dump_holds_what_is_seen_and_no_annotation(service: Service) -> None:
    for key, others in (("visitor", 0), ("restorer", 2)):
        lines = asked(service, key, "/data?dataset=all&format=nquads").text
        assert "allowedSid" not in lines
        assert sum("insured" in line or "bid" in line for line in lines.splitlines()) == others


def test_tags_are_those_of_one_view(service: Service) -> None:
    tags = {key: asked(service, key, "/data?default").headers["etag"] for key in ("restorer", "visitor")}
    assert len(set(tags.values())) == 2
    answer = httpx.get(
        f"{service.url}/data?default",
        headers={"X-API-Key": "visitor", "If-None-Match": tags["restorer"]},
        trust_env=False,
    )
    assert answer.status_code == 200
    assert "250000" not in answer.text


def test_what_is_annotated_later_is_hidden_at_once(service: Service) -> None:
    update(service, 'INSERT DATA { <urn:x:harbour> <urn:x:owner> "Voss" }')
    assert "owner" in properties(service, "visitor")
    update(
        service,
        "INSERT DATA { _:r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> "
        '<<( <urn:x:harbour> <urn:x:owner> "Voss" )>> ; <urn:graphdb:acl#allowedSid> "S-1-5-21-7" }',
    )
    assert "owner" not in properties(service, "visitor")
    assert "owner" in properties(service, "restorer")
    update(service, "DELETE WHERE { ?r <urn:graphdb:acl#allowedSid> ?sid }")
    assert {"owner", "insured"} <= properties(service, "visitor")
    assert "bid" not in properties(service, "visitor")
