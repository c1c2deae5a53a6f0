"""What a line of `_bulk` may say besides where its document goes: templates of fields, streams, pipelines."""

from typing import Any

import httpx
import pytest

from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteDocuments
from graphdb.search.catalog.command_codec import decode_command, encode_command
from graphdb.search.segments.operations import Action, Operation
from tests.unit.serve.search.conftest import one_shard, reason_of
from tests.unit.serve.search.test_bulk import lines, send

pytestmark = one_shard

TEMPLATES = [{"place": {"mapping": {"type": "geo_point"}}}, {"word": {"mapping": {"type": "keyword"}}}]


@pytest.fixture
def places(http: httpx.Client) -> httpx.Client:
    http.put("/places", json={"mappings": {"dynamic_templates": TEMPLATES}})
    return http


def line(doc_id: str, templates: Any, action: str = "index") -> dict[str, Any]:
    return {action: {"_index": "places", "_id": doc_id, "dynamic_templates": templates}}


def test_a_new_field_gets_the_template_that_its_line_names(places: httpx.Client) -> None:
    body = lines(
        line("1", {"at": "place", "o.n": "word"}), {"at": "41.12,-71.34", "o": {"n": "x"}, "free": "y"}
    )
    assert send(places, body).json()["errors"] is False
    fields = places.get("/places/_mapping").json()["places"]["mappings"]["properties"]
    assert (fields["at"], fields["o"]["properties"]["n"]) == ({"type": "geo_point"}, {"type": "keyword"})
    assert fields["free"]["type"] == "text"
    # of a field that is there the template is not looked for, nor of one that the document does not have
    body = lines(line("2", {"at": "none", "gone": "none"}), {"at": [-71.34, 41.12]})
    assert send(places, body).json()["errors"] is False


def test_a_template_that_is_not_there_spoils_its_document_only(places: httpx.Client) -> None:
    body = lines(line("1", {"a": "none"}), {"a": "x"}, line("2", {"a": "word"}, "create"), {"a": "x"})
    first, second = send(places, body).json()["items"]
    assert first["index"]["error"] == {
        "type": "document_parsing_exception",
        "reason": "Can't find dynamic template for dynamic template name [none] of field [a]",
    }
    assert second["create"]["status"] == 201


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lines(line("1", {"a": "b"}, "update"), {"doc": {}}), "Update request in line [1] does not accept"),
        (lines(line("1", {"a": "b"}, "delete")), "Delete request in line [1] does not accept"),
        (lines(line("1", {"a": 1}), {}), "expected an object of names for field [dynamic_templates]"),
        (lines(line("1", ["a"]), {}), "expected an object of names for field [dynamic_templates]"),
    ],
)
def test_templates_that_cannot_be(places: httpx.Client, body: bytes, reason: str) -> None:
    status, kind, said = reason_of(send(places, body))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason in said


def test_they_are_in_the_log() -> None:
    operation = Operation(Action.INDEX, "1", b"{}", dynamic_templates={"a.b": "word"})
    command = WriteDocuments((DocumentWrite("a", operation, require_data_stream=True),))
    assert decode_command(encode_command(command)) == command


STREAM = {"index_patterns": ["logs-*"], "data_stream": {}}
NO_STREAM = (
    "no such index [other] and the index creation request requires a data stream, but no matching index "
    "template with data stream template was found for it"
)


def test_only_data_streams_are_written_where_that_is_required(http: httpx.Client) -> None:
    http.put("/_index_template/logs", json=STREAM)
    http.put("/there")
    body = lines(
        {"create": {"_index": "logs-a"}}, {"@timestamp": "2026-01-01"},
        {"create": {"_index": "other"}}, {},
        {"create": {"_index": "there"}}, {},
        {"create": {"_index": "free", "require_data_stream": False}}, {},
    )  # fmt: skip
    items = send(http, body, "/_bulk?require_data_stream=true").json()["items"]
    assert [item["create"]["status"] for item in items] == [201, 404, 404, 201]
    assert items[1]["create"]["error"]["reason"] == NO_STREAM
    assert items[2]["create"]["error"]["type"] == "resource_not_found_exception"
    assert http.head("/other").status_code == 404
    refused = http.put("/other/_doc/1?require_data_stream=true", json={})
    assert reason_of(refused) == (404, "index_not_found_exception", NO_STREAM)


def test_pipelines_that_have_run_are_listed(http: httpx.Client) -> None:
    inner = {"processors": [{"set": {"field": "a", "value": 1}}]}
    http.put("/_ingest/pipeline/inner", json=inner)
    http.put("/_ingest/pipeline/outer", json={"processors": [{"pipeline": {"name": "inner"}}]})
    body = lines(
        {"index": {"_index": "a", "pipeline": "outer"}}, {},
        {"index": {"_index": "a"}}, {},
        {"update": {"_index": "a", "_id": "u"}}, {"doc": {}, "doc_as_upsert": True},
    )  # fmt: skip
    answer = send(http, body, "/_bulk?list_executed_pipelines=true").json()
    assert answer["ingest_took"] >= 0
    listed = [next(iter(item.values())).get("executed_pipelines") for item in answer["items"]]
    assert listed == [["outer", "inner"], [], None]
    plain = send(http, lines({"index": {"_index": "a"}}, {})).json()
    assert "ingest_took" not in plain
    assert "executed_pipelines" not in plain["items"][0]["index"]


@pytest.mark.parametrize(
    ("action", "conditions", "reason"),
    [
        ("index", {"if_seq_no": 3}, "ifSeqNo is set, but primary term is [0]"),
        (
            "create",
            {"if_seq_no": 3, "if_primary_term": 1},
            "create operations do not support compare and set",
        ),
        ("update", {"version": 3}, "internal versioning can not be used for optimistic concurrency control"),
    ],
)
def test_conditions_that_cannot_be_spoil_the_whole(
    http: httpx.Client, action: str, conditions: dict[str, int], reason: str
) -> None:
    body = lines(
        {"index": {"_index": "a"}}, {}, {action: {"_index": "a", "_id": "1", **conditions}}, {"doc": {}}
    )
    status, kind, said = reason_of(send(http, body))
    assert (status, kind) == (400, "action_request_validation_exception")
    assert reason in said
    assert http.head("/a").status_code == 404


def test_an_update_of_what_is_missing_says_where(http: httpx.Client) -> None:
    http.put("/a")
    bodies: list[dict[str, Any]] = [{"doc": {}}, {"script": "ctx.op = 'none'"}]
    for body in bodies:
        error = http.post("/a/_update/1", json=body).json()["error"]
        assert (error["type"], error["index"], error["shard"]) == ("document_missing_exception", "a", "0")
