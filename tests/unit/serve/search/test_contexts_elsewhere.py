"""Scrolls and points in time that are asked for at another node than the one that has them."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from elasticsearch import Elasticsearch, NotFoundError
from elasticsearch.helpers import scan

from graphdb.config import Settings
from graphdb.errors import LogUnavailable
from graphdb.node import ClusterMember, NodeStatus
from graphdb.search.catalog.catalog_commands import CreateIndex, IntroduceNode, WriteDocuments
from graphdb.search.contexts import RANDOM_BYTES, SearchContexts, make_context_id
from serve.search.frame import peer_requests
from serve.search.frame.peer_requests import PeerRequests
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.unit.search.catalog.catalogs import put


class Member(MemorySearch):
    """One of two nodes that have the same documents."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.contexts = SearchContexts(self.now_ms, lambda: make_context_id(number, os.urandom(RANDOM_BYTES)))
        self._apply(IntroduceNode(1, "one", "127.0.0.1:9201", "uuid"))
        self._apply(IntroduceNode(2, "two", "127.0.0.1:9202", "uuid"))
        self._apply(CreateIndex("books", "u1"))
        books = tuple(put("books", str(number), b'{"number": %d}' % number) for number in range(25))
        self._apply(WriteDocuments(books, refresh=True))

    def status(self) -> NodeStatus:
        members = tuple(ClusterMember(number, "127.0.0.1:7002", "follower", True) for number in (1, 2))
        return NodeStatus("healthy", "follower", self._number, 5, 1, members, 0, True, 3)


@pytest.fixture
def nodes() -> dict[int, Member]:
    return {1: Member(1), 2: Member(2)}


@pytest.fixture
def urls(nodes: dict[int, Member]) -> Iterator[list[str]]:
    with ExitStack() as stack:
        urls = []
        for number, node in nodes.items():
            settings = Settings.model_validate({"cluster": {"enabled": True, "node_id": number}})
            app = build_search_app(node, settings)
            urls.append(stack.enter_context(serving(app)))
            nodes[3 - number].others[number] = PeerRequests(app).perform
        yield urls


def asked(url: str, method: str, path: str, body: Any) -> httpx.Response:
    return httpx.request(method, url + path, json=body, trust_env=False)


def test_a_client_that_asks_all_nodes_in_turn_reads_everything_once(urls: list[str]) -> None:
    with Elasticsearch(urls) as client:
        for kind in (
            {"size": 4},
            {"size": 4, "scroll": "1m", "query": {"query": {"range": {"number": {"gte": 9}}}}},
        ):
            found = sorted(int(hit["_id"]) for hit in scan(client, index="books", **kind))
            assert found == list(range(9 if "query" in kind else 0, 25))


def test_a_scroll_and_a_point_in_time_at_the_other_node(urls: list[str], nodes: dict[int, Member]) -> None:
    first, second = urls
    page = asked(first, "POST", "/books/_search?scroll=1m", {"size": 10, "sort": ["number"]}).json()
    scroll_id = page["_scroll_id"]
    path = "/_search/scroll?rest_total_hits_as_int=true&filter_path=hits.total,hits.hits._id"
    page = asked(second, "POST", path, {"scroll_id": scroll_id, "scroll": "5m"}).json()
    assert page == {"hits": {"total": 25, "hits": [{"_id": str(number)} for number in range(10, 20)]}}
    pit_id = asked(first, "POST", "/books/_pit?keep_alive=1m", None).json()["id"]
    body = {"pit": {"id": pit_id, "keep_alive": "2m"}, "size": 1, "sort": [{"number": "desc"}]}
    answer = asked(
        second, "POST", "/_search?typed_keys=true", {**body, "aggs": {"n": {"max": {"field": "number"}}}}
    )
    assert (answer.json()["pit_id"], answer.json()["hits"]["hits"][0]["_id"]) == (pit_id, "24")
    assert answer.json()["aggregations"] == {"max#n": {"value": 24.0}}
    lines = f'{{}}\n{{"pit": {{"id": "{pit_id}"}}, "size": 0}}\n'
    headers = {"Content-Type": "application/x-ndjson"}
    (item,) = httpx.post(f"{second}/_msearch", content=lines, headers=headers).json()["responses"]
    assert (item["status"], item["hits"]["total"]["value"]) == (200, 25)
    ids = [scroll_id, make_context_id(2, bytes(RANDOM_BYTES))]
    freed = asked(second, "DELETE", "/_search/scroll", {"scroll_id": ids})
    assert (freed.status_code, freed.json()) == (200, {"succeeded": True, "num_freed": 1})
    freed = asked(second, "DELETE", "/_pit", {"id": pit_id})
    assert (freed.status_code, freed.json()["num_freed"]) == (200, 1)
    assert len(nodes[1].contexts) == 0


def test_errors_of_the_other_node_are_its_own(urls: list[str]) -> None:
    first, second = urls
    with Elasticsearch(second) as client, pytest.raises(NotFoundError) as raised:
        client.scroll(scroll_id=make_context_id(1, bytes(RANDOM_BYTES)))
    assert raised.value.message == "search_context_missing_exception" or raised.value.status_code == 404
    gone = make_context_id(1, bytes(RANDOM_BYTES))
    pit_id = asked(first, "POST", "/books/_pit?keep_alive=1m", None).json()["id"]
    for path, body in (
        ("/_search/scroll", {"scroll_id": gone}),
        ("/_search", {"pit": {"id": gone}}),
        ("/_search", {"pit": {"id": pit_id}, "query": {"nonsense": {}}}),
        ("/_search/scroll", {"scroll_id": pit_id}),
    ):
        answers = [asked(url, "POST", path, body) for url in urls]
        assert answers[0].json() == answers[1].json()
        assert answers[0].status_code == answers[1].status_code >= 400


def test_a_node_that_does_not_answer(urls: list[str], nodes: dict[int, Member]) -> None:
    first, second = urls
    scroll_id = asked(first, "POST", "/books/_search?scroll=1m", {"size": 10}).json()["_scroll_id"]
    pit_id = asked(first, "POST", "/books/_pit?keep_alive=1m", None).json()["id"]

    async def away(request: bytes) -> bytes:
        raise LogUnavailable("it is gone")

    nodes[2].others[1] = away
    for path, body in (("/_search/scroll", {"scroll_id": scroll_id}), ("/_search", {"pit": {"id": pit_id}})):
        answer = asked(second, "POST", path, body)
        error = answer.json()["error"]
        assert (answer.status_code, error["type"]) == (404, "search_phase_execution_exception")
        (cause,) = error["root_cause"]
        assert cause["type"] == "search_context_missing_exception"
        assert "it is of node [one] at [127.0.0.1:9201], which does not answer" in cause["reason"]
    freed = asked(second, "DELETE", "/_search/scroll", {"scroll_id": scroll_id})
    assert (freed.status_code, freed.json()) == (404, {"succeeded": True, "num_freed": 0})


def test_a_page_that_is_too_large_for_another_node(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_requests, "_ANSWER_BYTES_MAX", 1000)
    first, second = urls
    scroll_id = asked(first, "POST", "/books/_search?scroll=1m", {"size": 12}).json()["_scroll_id"]
    answer = asked(second, "POST", "/_search/scroll", {"scroll_id": scroll_id})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "illegal_argument_exception")
    assert "[1000] is the most: ask for fewer hits" in answer.json()["error"]["reason"]
    answer = asked(second, "POST", "/_search/scroll", {"scroll_id": scroll_id})
    assert [hit["_id"] for hit in answer.json()["hits"]["hits"]] == ["24"], "the last page is small"


@pytest.mark.parametrize(
    "context_id", [make_context_id(7, bytes(RANDOM_BYTES)), "c29tZXRoaW5nIGVsc2U", "x" * 68]
)
def test_ids_of_no_node(urls: list[str], context_id: str) -> None:
    answer = asked(urls[0], "POST", "/_search/scroll", {"scroll_id": context_id})
    assert answer.status_code == 404
    assert (
        answer.json()["error"]["root_cause"][0]["reason"] == f"No search context found for id [{context_id}]"
    )


def test_tasks_of_the_other_node(urls: list[str]) -> None:
    first, second = urls
    slow = "/books/_update_by_query?wait_for_completion=false&scroll_size=5&requests_per_second=0.001"
    task = asked(first, "POST", slow, {}).json()["task"]
    node = task.partition(":")[0]
    for url in urls:
        listed = asked(url, "GET", "/_tasks?actions=*byquery", None).json()
        assert [list(one["tasks"]) for one in listed["nodes"].values()] == [[task]]
        assert asked(url, "GET", f"/_tasks/{task}", None).json()["completed"] is False
    assert len(asked(second, "GET", "/_tasks?actions=*lists", None).json()["nodes"]) == 2
    path = f"/_update_by_query/{task}/_rethrottle?requests_per_second=0.002"
    assert node in asked(second, "POST", path, None).json()["nodes"]
    ended = asked(second, "POST", f"/_tasks/{task}/_cancel?wait_for_completion=true", None).json()
    assert ended["nodes"][node]["tasks"][task]["cancelled"] is True
    answer = asked(second, "GET", f"/_tasks/{task}?wait_for_completion=true", None).json()
    assert answer["response"]["canceled"] == "by user request"
    gone = asked(second, "GET", f"/_tasks/{node}:999999", None)
    assert (gone.status_code, gone.json()["error"]["type"]) == (404, "resource_not_found_exception")


def test_an_asynchronous_search_of_the_other_node(urls: list[str]) -> None:
    first, second = urls
    path = "/books/_async_search?keep_on_completion=true&wait_for_completion_timeout=5m"
    begun = asked(first, "POST", path, {"size": 1}).json()
    assert asked(second, "GET", f"/_async_search/{begun['id']}", None).json() == begun
    status = asked(second, "GET", f"/_async_search/status/{begun['id']}", None).json()
    assert status["completion_status"] == 200
    assert asked(second, "DELETE", f"/_async_search/{begun['id']}", None).json() == {"acknowledged": True}
    assert asked(first, "GET", f"/_async_search/{begun['id']}", None).status_code == 404
