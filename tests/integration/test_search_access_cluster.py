"""Protected documents on the search ports of two real services that are one cluster: the same at each."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from graphdb.access.api_keys import key_digest
from tests.support.cluster_service import ClusterService
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SOON_S = 60.0
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
name = "inner"
key_sha256 = "{inner}"
roles = ["writer"]
sids = ["S-1-5-21-7"]

[[authentication.api_keys]]
name = "outer"
key_sha256 = "{outer}"
roles = ["writer"]
sids = ["S-1-5-21-8"]
"""
DOCUMENTS: dict[str, dict[str, Any]] = {
    "open": {"title": "zebra"},
    "inner": {"title": "zeal", "_allow_sids": ["S-1-5-21-7"]},
    "nobody": {"title": "zed", "_allow_sids": []},
}
SEEN = {"admin": set(DOCUMENTS), "inner": {"open", "inner"}, "outer": {"open"}}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    """The leader, and the other."""
    directory = tmp_path_factory.mktemp("cluster")
    (directory / "graphdb.toml").write_text(CONFIGURATION.format(**{name: key_digest(name) for name in SEEN}))
    cluster = ClusterService(directory, size=2, search=True)
    try:
        cluster.start()
        leader = cluster.leader()
        found = [cluster.nodes[leader], *(cluster.nodes[number] for number in cluster.followers())]
        for node in found:
            node.wait_until(lambda node=node: ask(node, "admin", "GET", "/").status_code == 200, SOON_S)
        for doc_id, document in DOCUMENTS.items():  # through the one that follows
            answer = ask(found[1], "admin", "PUT", f"/logs/_doc/{doc_id}?refresh=true", document)
            assert answer.status_code == 201, answer.text
        for node in found:
            node.wait_until(lambda node=node: found_ids(node, "admin", {}) == set(DOCUMENTS), SOON_S)
        yield found
    finally:
        cluster.close()


def ask(node: Service, key: str, method: str, path: str, body: Any = None) -> httpx.Response:
    return httpx.request(
        method,
        node.search_url + path,
        json=body,
        headers={"X-API-Key": key},
        timeout=HANG_S,
        trust_env=False,
    )


def ids_of(answer: httpx.Response) -> set[str]:
    return {hit["_id"] for hit in answer.json()["hits"]["hits"]}


def found_ids(node: Service, key: str, body: Any) -> set[str]:
    answer = ask(node, key, "GET", "/logs/_search", body)
    return ids_of(answer) if answer.status_code == 200 else set()


def test_each_node_shows_everyone_what_is_theirs(nodes: list[Service]) -> None:
    words = {"query": {"match_phrase_prefix": {"title": {"query": "ze", "max_expansions": 1}}}}
    for node in nodes:
        for key, seen in SEEN.items():
            assert found_ids(node, key, {}) == seen
            assert ask(node, key, "GET", "/logs/_count").json()["count"] == len(seen)
            (row,) = ask(node, key, "GET", "/_cat/indices/logs?format=json").json()
            assert (row["docs.count"], row["docs.deleted"]) == (str(len(seen)), "0")
            for doc_id in DOCUMENTS:
                status = ask(node, key, "GET", f"/logs/_doc/{doc_id}").status_code
                assert status == (200 if doc_id in seen else 404)
        assert found_ids(node, "outer", words) == {"open"}
        assert found_ids(node, "inner", words) == {"inner"}


def test_nothing_hidden_is_written_through_any_node(nodes: list[Service]) -> None:
    for number, node in enumerate(nodes):
        hidden, never = (ask(node, "outer", "DELETE", f"/logs/_doc/{one}") for one in ("inner", "never"))
        assert (hidden.status_code, never.status_code) == (404, 404)
        assert hidden.json()["_version"] == never.json()["_version"] == number + 1
        assert ask(node, "outer", "PUT", "/logs/_doc/inner", {}).status_code == 403
        assert ask(node, "outer", "POST", "/logs/_update/inner", {"doc": {"x": 1}}).status_code == 404
        assert ask(node, "outer", "PUT", "/logs/_doc/new", {"_allow_sids": []}).status_code == 403
        source = ask(node, "admin", "GET", "/logs/_source/inner").json()
        assert source == DOCUMENTS["inner"]
        copy = {"source": {"index": "logs", "_source": ["title"]}, "dest": {"index": "copy"}}
        assert [one["id"] for one in ask(node, "inner", "POST", "/_reindex", copy).json()["failures"]] == [
            "inner"
        ]


def test_points_in_time_go_on_at_the_other_node_for_their_opener_alone(nodes: list[Service]) -> None:
    opened = {key: ask(nodes[0], key, "POST", "/logs/_pit?keep_alive=1m").json()["id"] for key in SEEN}
    for key, pit in opened.items():
        for asking in ("inner", "outer"):
            answer = ask(nodes[1], asking, "GET", "/_search", {"pit": {"id": pit}})
            if asking == key:
                assert ids_of(answer) == SEEN[key]
            else:
                assert answer.status_code == 404, answer.text
