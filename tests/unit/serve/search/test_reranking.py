"""`text_similarity_reranker`, with a model behind a real socket; retrievers `pinned` and `rescorer`."""

import math
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest

from graphdb.config.service import RerankerAddress
from graphdb.search.catalog.index_settings import KNOWN
from graphdb.search.hybrid.reranker import relevance_of
from tests.support.memory_search import MemorySearch
from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.unit.serve.search.conftest import reason_of

JsonObject = dict[str, Any]
ALL: JsonObject = {"standard": {"query": {"match_all": {}}}}
BY_SIZE: JsonObject = {"standard": {"query": {"function_score": {
    "field_value_factor": {"field": "size"}, "boost_mode": "replace"}}}}  # fmt: skip
TEXTS = {"0": "ant", "1": "ant bee", "2": "ant bee cow", "3": "ant bee cow dog", "4": None}


class Model:
    """A host that says of each text how many letters it has, by a hundred."""

    def __init__(self, host: RemoteHost) -> None:
        self.host, self.factor = host, 1.0
        self.names = ("documents", "results", "relevance_score")
        host.answer = self.answer

    def asked(self, number: int = -1) -> tuple[str, JsonObject]:
        """(head, body) of a request."""
        head, _, body = self.host.requests[number].partition(b"\r\n\r\n")
        return head.decode(), orjson.loads(body)

    def answer(self, connection: socket.socket) -> None:
        given, listed, score = self.names
        found = [
            {"index": number, score: self.factor * len(text) / 100}
            for number, text in enumerate(self.asked()[1][given])
        ]
        found.reverse()  # models give the best first, or any order
        answering(orjson.dumps({listed: found} if listed else found))(connection)


@pytest.fixture
def model() -> Iterator[Model]:
    with remote_host(answering(b"")) as host:
        yield Model(host)


@pytest.fixture
def node(shards: int, monkeypatch: pytest.MonkeyPatch, model: Model) -> MemorySearch:
    setting = replace(KNOWN["number_of_shards"], default=str(shards))
    monkeypatch.setitem(KNOWN, "number_of_shards", setting)
    url = model.host.url
    return MemorySearch(
        rerankers={
            "m": RerankerAddress.model_validate({"url": url, "api_key": "secret", "model": "large"}),
            "tei": RerankerAddress(url=url, format="tei"),
            "es": RerankerAddress(url=url, format="elasticsearch"),
        }
    )


@pytest.fixture
def search(http: httpx.Client) -> Callable[..., JsonObject]:
    for index in ("a", "b"):
        http.put(f"/{index}", json={"mappings": {"properties": {"text": {"type": "text"}}}})
        for name, text in TEXTS.items():
            http.put(f"/{index}/_doc/{index}{name}", json={"text": text, "size": int(name) + 1})
    http.post("/_refresh")

    def search(retriever: JsonObject, index: str = "a", **body: Any) -> JsonObject:
        answer = http.post(f"/{index}/_search", json={"retriever": retriever, **body})
        assert answer.status_code == 200, answer.text
        found: JsonObject = answer.json()
        return found

    return search


def by_model(retriever: JsonObject = ALL, **options: Any) -> JsonObject:
    return {
        "text_similarity_reranker": {
            "retriever": retriever, "field": "text", "inference_text": "which animals?", "inference_id": "m",
            **options,
        }
    }  # fmt: skip


def scores(answer: JsonObject) -> list[tuple[str, Any]]:
    return [(hit["_id"], pytest.approx(hit["_score"])) for hit in answer["hits"]["hits"]]


def test_hits_are_in_the_order_of_the_model(search: Callable[..., JsonObject], model: Model) -> None:
    answer = search(by_model(), aggs={"s": {"sum": {"field": "size"}}})
    assert scores(answer) == [("a3", 0.15), ("a2", 0.11), ("a1", 0.07), ("a0", 0.03), ("a4", 0.0)]
    assert answer["hits"]["total"]["value"] == 5
    assert answer["hits"]["max_score"] == pytest.approx(0.15)
    assert answer["aggregations"]["s"]["value"] == 15
    head, body = model.asked()
    assert "authorization: bearer secret" in head.lower()
    assert sorted(body.pop("documents")) == sorted(filter(None, TEXTS.values()))  # not of a4, which has none
    assert body == {"query": "which animals?", "model": "large"}


def test_the_window_is_what_the_model_sees(search: Callable[..., JsonObject], model: Model) -> None:
    found = search(by_model(BY_SIZE, rank_window_size=3), size=3)
    assert scores(found) == [("a3", 0.15), ("a2", 0.11), ("a4", 0.0)]
    assert len(model.asked()[1]["documents"]) == 2
    assert found["hits"]["total"]["value"] == 5
    found = search(by_model(BY_SIZE, rank_window_size=5, min_score=0.1), size=5)
    assert scores(found) == [("a3", 0.15), ("a2", 0.11)]


@pytest.mark.parametrize(
    ("name", "names"),
    [("tei", ("texts", "", "score")), ("es", ("input", "rerank", "relevance_score"))],
)
def test_other_formats(
    search: Callable[..., JsonObject], model: Model, name: str, names: tuple[str, str, str]
) -> None:
    model.names = names
    assert [one for one, _ in scores(search(by_model(inference_id=name)))] == ["a3", "a2", "a1", "a0", "a4"]
    assert model.asked()[1]["query"] == "which animals?"


def test_negative_scores_are_moved_in_their_order(search: Callable[..., JsonObject], model: Model) -> None:
    model.factor = -100
    found = scores(search(by_model()))
    expected = [(f"a{place}", math.exp(-(3 + 4 * place))) for place in range(4)]
    assert found == [*expected, ("a4", 0.0)]


def test_within_other_retrievers(search: Callable[..., JsonObject], model: Model) -> None:
    both = {"retrievers": [by_model(), BY_SIZE], "filter": {"range": {"size": {"lte": 3}}}}
    assert scores(search({"rrf": both})) == [("a2", 2 / 61), ("a1", 2 / 62), ("a0", 2 / 63)]
    assert len(model.asked()[1]["documents"]) == 3  # the filter is for what the model sees, too
    weighed = {"retrievers": [{"retriever": by_model(), "weight": 2}, {"retriever": ALL}]}
    found = search({"linear": weighed})
    assert scores(found)[0] == ("a3", 1.3)
    twice = by_model(by_model(BY_SIZE, rank_window_size=4), rank_window_size=2)
    assert [one for one, _ in scores(search(twice, size=2))] == ["a3", "a2"]


def test_several_indexes_are_one_list(search: Callable[..., JsonObject], model: Model) -> None:
    found = search(by_model(), "a,b", size=4)
    assert {(hit["_index"], hit["_id"]) for hit in found["hits"]["hits"]} == {
        ("a", "a3"), ("b", "b3"), ("a", "a2"), ("b", "b2"),
    }  # fmt: skip
    assert found["hits"]["total"]["value"] == 10


def test_in_a_multi_search(search: Callable[..., JsonObject], http: httpx.Client) -> None:
    body = b"\n".join(map(orjson.dumps, ({"index": "a"}, {"retriever": by_model(), "size": 1}))) + b"\n"
    headers = {"Content-Type": "application/x-ndjson"}
    (answer,) = http.post("/_msearch", content=body, headers=headers).json()["responses"]
    assert scores(answer) == [("a3", 0.15)]


@pytest.mark.parametrize(
    ("retriever", "expected"),
    [
        (by_model(inference_id="none"), (404, "resource_not_found_exception")),
        (by_model(inference_id=None), (404, "resource_not_found_exception")),  # which of the three?
        (by_model(inference_text=None), (400, "illegal_argument_exception")),
        (by_model(field=None), (400, "illegal_argument_exception")),
        (by_model(more=1), (400, "x_content_parse_exception")),
        (by_model(rank_window_size=5), (400, "action_request_validation_exception")),
        (by_model(retriever={"none": {}}), (400, "parsing_exception")),
        ({"pinned": {"retriever": ALL}}, (400, "illegal_argument_exception")),
        ({"pinned": {"retriever": ALL, "docs": ["a1"]}}, (400, "parsing_exception")),
        ({"rescorer": {"retriever": ALL}}, (400, "illegal_argument_exception")),
        ({"rrf": {"retrievers": [{"rescorer": {}}, ALL]}}, (400, "illegal_argument_exception")),
    ],
)
def test_refusals(
    search: Callable[..., JsonObject], http: httpx.Client, retriever: JsonObject, expected: tuple[int, str]
) -> None:
    assert reason_of(http.post("/a/_search", json={"retriever": retriever}))[:2] == expected


def test_a_scroll_is_refused(search: Callable[..., JsonObject], http: httpx.Client) -> None:
    answer = http.post("/a/_search?scroll=1m", json={"retriever": by_model()})
    assert "without [scroll]" in reason_of(answer)[2]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"overloaded", 529, "answers 529: overloaded"),
        (b"<html>", 200, "cannot be read"),
        (b'{"results": [{"index": 99, "relevance_score": 1}]}', 200, "cannot be read"),
        (b'{"message": "no"}', 200, "it has no list"),
    ],
)
def test_a_model_that_fails(
    search: Callable[..., JsonObject], http: httpx.Client, model: Model, body: bytes, status: int, reason: str
) -> None:
    model.host.answer = answering(body, status=status)
    code, _, said = reason_of(http.post("/a/_search", json={"retriever": by_model()}))
    assert code == 503
    assert "reranker [m]" in said
    assert reason in said


def test_a_model_that_is_gone(search: Callable[..., JsonObject], http: httpx.Client, model: Model) -> None:
    model.host.answer = lambda connection: None
    code, _, said = reason_of(http.post("/a/_search", json={"retriever": by_model()}))
    assert (code, "does not answer" in said) == (503, True)


def test_pinned_documents_come_first(search: Callable[..., JsonObject]) -> None:
    found = search({"pinned": {"retriever": BY_SIZE, "ids": ["a1", "none", "a3"]}})
    assert [one for one, _ in scores(found)] == ["a1", "a3", "a4", "a2", "a0"]
    docs = [{"_id": "b1", "_index": "b"}, {"_id": "a1", "_index": "b"}, {"_id": "a3"}]
    found = search({"pinned": {"retriever": BY_SIZE, "docs": docs}}, "a,b", size=3)
    assert [one for one, _ in scores(found)][:2] == ["b1", "a3"]
    found = search({"pinned": {"retriever": by_model(), "ids": ["a0"]}})
    assert [one for one, _ in scores(found)] == ["a0", "a3", "a2", "a1", "a4"]


def test_rescorer_is_a_search_with_rescore(search: Callable[..., JsonObject], http: httpx.Client) -> None:
    rescore = {"window_size": 10, "query": {"rescore_query": {"match": {"text": "cow"}}}}
    found = search({"rescorer": {"retriever": BY_SIZE, "rescore": rescore}})
    body = {"query": BY_SIZE["standard"]["query"], "rescore": rescore}
    assert found["hits"]["hits"] == http.post("/a/_search", json=body).json()["hits"]["hits"]


def test_a_model_is_asked_alone(http: httpx.Client, model: Model) -> None:
    body: JsonObject = {"query": "which?", "input": ["ant", "ant bee", "bee"], "top_n": 2}
    assert http.post("/_inference/rerank/m", json=body).json() == {
        "rerank": [{"index": 1, "relevance_score": 0.07}, {"index": 0, "relevance_score": 0.03}]
    }
    body = {"query": "which?", "input": "ant", "return_documents": True}
    (found,) = http.post("/_inference/m", json=body).json()["rerank"]
    assert found == {"index": 0, "relevance_score": 0.03, "text": "ant"}


def test_models_are_listed_without_their_secrets(http: httpx.Client) -> None:
    listed = http.get("/_inference").json()["endpoints"]
    assert [one["inference_id"] for one in listed] == ["es", "m", "tei"]
    assert http.get("/_inference/rerank/m").json()["endpoints"] == listed[1:2]
    assert listed[1]["service_settings"] == {"model_id": "large"}
    assert "secret" not in http.get("/_inference/_all").text
    assert reason_of(http.get("/_inference/none"))[:2] == (404, "resource_not_found_exception")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/_inference/m", {}),
        ("/_inference/m", {"query": "a"}),
        ("/_inference/m", {"query": "a", "input": []}),
        ("/_inference/m", {"query": "a", "input": [1]}),
        ("/_inference/m", {"query": "a", "input": "b", "more": 1}),
        ("/_inference/m", {"query": "a", "input": "b", "top_n": 0}),
        ("/_inference/text_embedding/m", {"query": "a", "input": "b"}),
    ],
)
def test_questions_that_are_refused(http: httpx.Client, path: str, body: JsonObject) -> None:
    assert reason_of(http.post(path, json=body))[0] == 400


@pytest.mark.parametrize("answer", [b"[]", b'{"results": []}', b'{"data": []}'])
def test_texts_without_a_score(answer: bytes) -> None:
    assert relevance_of(answer, 2) == [-math.inf, -math.inf]


@pytest.mark.parametrize("score", [b"null", b"true", b'"1"', b"1e999"])
def test_scores_are_numbers(score: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        relevance_of(b'[{"index": 0, "score": ' + score + b"}]", 1)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "ftp://models.example/"},
        {"url": "http://user@models.example/"},
        {"url": "http://models.example/", "api_key": "secret"},
        {"url": "https://models.example/", "timeout_seconds": 0},
    ],
)
def test_addresses_that_are_refused(given: JsonObject) -> None:
    with pytest.raises(ValueError, match=r"."):
        RerankerAddress.model_validate(given)
