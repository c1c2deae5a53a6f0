"""Ingest pipelines over HTTP: kept, tried out, and what they do to documents that are written."""

from typing import Any

import httpx
import pytest

from serve.search.documents import ingesting
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


def put(http: httpx.Client, name: str, *processors: Any, **members: Any) -> None:
    body = {"processors": list(processors), **members}
    assert http.put(f"/_ingest/pipeline/{name}", json=body).json() == {"acknowledged": True}


def source(http: httpx.Client, path: str) -> Any:
    return http.get(path).raise_for_status().json()["_source"]


def test_pipelines_are_kept_and_deleted(http: httpx.Client) -> None:
    assert http.get("/_ingest/pipeline").raise_for_status().json() == {}
    put(http, "one", {"set": {"field": "a", "value": 1}}, description="d")
    put(http, "two")
    one = {"description": "d", "processors": [{"set": {"field": "a", "value": 1}}]}
    assert http.get("/_ingest/pipeline/one").json() == {"one": one}
    assert http.get("/_ingest/pipeline").json().keys() == {"one", "two"}
    assert http.get("/_ingest/pipeline/t*").json().keys() == {"two"}
    assert http.get("/_ingest/pipeline?summary=true").json() == {"one": {}, "two": {}}
    for name in ("x", "x*"):
        assert http.get(f"/_ingest/pipeline/{name}").status_code == 404
    bad = reason_of(http.put("/_ingest/pipeline/bad", json={"processors": [{"set": {"value": 1}}]}))
    assert bad == (400, "parse_exception", "[field] required property is missing")
    assert http.delete("/_ingest/pipeline/o*").json() == {"acknowledged": True}
    assert reason_of(http.delete("/_ingest/pipeline/one"))[:2] == (404, "resource_not_found_exception")
    assert "WORD" in http.get("/_ingest/processor/grok").json()["patterns"]


def test_documents_go_through_the_pipeline_that_a_request_names(http: httpx.Client) -> None:
    put(
        http,
        "p",
        {"set": {"field": "seen", "value": "{{_index}}/{{_id}}"}},
        {"drop": {"if": "ctx.drop == true"}},
    )
    http.put("/a/_doc/1?pipeline=p", json={"x": 1})
    assert source(http, "/a/_doc/1") == {"x": 1, "seen": "a/1"}
    dropped = http.put("/a/_doc/2?pipeline=p", json={"drop": True})
    assert (dropped.status_code, dropped.json()["result"]) == (200, "noop")
    assert http.get("/a/_doc/2").status_code == 404
    lines = (
        '{"index":{"_index":"a","_id":"3"}}\n{}\n'
        '{"index":{"_index":"a","_id":"4","pipeline":"_none"}}\n{}\n'
        '{"create":{"_index":"a","_id":"5","pipeline":"none"}}\n{}\n'
        '{"update":{"_index":"a","_id":"1"}}\n{"doc":{"y":2}}\n'
        '{"index":{"_index":"a","_id":"6"}}\n{"drop":true}\n'
        '{"delete":{"_index":"a","_id":"1"}}\n'
    )
    headers = {"Content-Type": "application/x-ndjson"}
    answer = http.post("/_bulk?pipeline=p", content=lines, headers=headers).json()
    statuses = [next(iter(item.values()))["status"] for item in answer["items"]]
    assert statuses == [201, 201, 400, 200, 200, 200]
    assert answer["items"][2]["create"]["error"]["reason"] == "pipeline with id [none] does not exist"
    assert answer["items"][4]["index"]["result"] == "noop"
    assert (source(http, "/a/_doc/3"), source(http, "/a/_doc/4")) == ({"seen": "a/3"}, {})
    assert (
        reason_of(http.put("/a/_doc/7?pipeline=none", json={}))[2] == "pipeline with id [none] does not exist"
    )


def test_indexes_name_their_pipelines(http: httpx.Client) -> None:
    put(http, "own", {"set": {"field": "own", "value": 1}})
    put(http, "last", {"append": {"field": "last", "value": "{{own}}"}})
    put(http, "move", {"set": {"field": "_index", "value": "other"}})
    settings = {"index": {"default_pipeline": "own", "final_pipeline": "last"}}
    http.put("/_template/t", json={"index_patterns": ["a*"], "settings": settings})
    http.put("/a/_doc/1", json={})  # makes the index
    http.put("/a/_doc/2?pipeline=_none", json={})
    assert (source(http, "/a/_doc/1"), source(http, "/a/_doc/2")) == (
        {"own": 1, "last": ["1"]},
        {"last": [""]},
    )
    for kind, name in (("default", "own"), ("final", "last")):
        refused = reason_of(http.delete(f"/_ingest/pipeline/{name}"))
        assert refused[2].endswith(f"because it is the {kind} pipeline for 1 index(es) including [a]")
    moved = http.put("/a/_doc/3?pipeline=move", json={}).json()
    assert moved["_index"] == "other"
    http.put("/b", json={"settings": {"index": {"final_pipeline": "move"}}})
    assert "can't change the target index" in reason_of(http.put("/b/_doc/1", json={}))[2]
    http.put("/b/_settings", json={"index.final_pipeline": None})
    http.put("/b/_doc/1?refresh=true", json={"x": 1})
    http.post("/_reindex", json={"source": {"index": "b"}, "dest": {"index": "c", "pipeline": "own"}})
    assert source(http, "/c/_doc/1") == {"x": 1, "own": 1}
    assert http.post("/b/_update_by_query?pipeline=own").json()["updated"] == 1
    assert source(http, "/b/_doc/1") == {"x": 1, "own": 1}


def test_simulations(http: httpx.Client) -> None:
    put(http, "p", {"set": {"field": "a", "value": "{{b}}", "tag": "t"}}, {"lowercase": {"field": "c"}})
    docs = [{"_source": {"b": "x", "c": "Y"}}, {"_index": "i", "_source": {}}]
    found = http.post("/_ingest/pipeline/p/_simulate", json={"docs": docs}).json()["docs"]
    assert found[0]["doc"]["_source"] == {"b": "x", "c": "y", "a": "x"}
    assert (found[0]["doc"]["_index"], found[0]["doc"]["_id"]) == ("_index", "_id")
    assert found[1]["error"]["reason"] == "field [c] not present as part of path [c]"
    verbose = http.post("/_ingest/pipeline/p/_simulate?verbose=true", json={"docs": docs}).json()["docs"]
    assert [step["status"] for step in verbose[1]["processor_results"]] == ["success", "error"]
    assert verbose[0]["processor_results"][0]["tag"] == "t"
    own = {"pipeline": {"processors": [{"drop": {}}]}, "docs": docs[:1]}
    assert http.post("/_ingest/pipeline/_simulate", json=own).json() == {"docs": [None]}
    for body in ({}, {"docs": docs}, {"docs": [{}], "pipeline": {"processors": []}}):
        assert reason_of(http.post("/_ingest/pipeline/_simulate", json=body))[0] == 400


def test_a_simulation_tells_why_and_where(http: httpx.Client) -> None:
    put(http, "inner", {"set": {"field": "a", "value": 1}}, {"rename": {"field": "no", "target_field": "b"}})
    skipped = {"drop": {"if": "ctx.x == 2"}}
    failing = {
        "rename": {
            "field": "gone",
            "target_field": "b",
            "tag": "t",
            "on_failure": [{"set": {"field": "f", "value": "{{_ingest.on_failure_processor_tag}}"}}],
        }
    }
    body = {
        "pipeline": {"processors": [skipped, failing, {"pipeline": {"name": "inner"}}]},
        "docs": [{"_source": {"x": 1}}],
    }
    steps = http.post("/_ingest/pipeline/_simulate?verbose=true", json=body).json()["docs"][0][
        "processor_results"
    ]
    assert [(step["processor_type"], step["status"]) for step in steps] == [
        ("drop", "skipped"),
        ("rename", "error"),
        ("set", "success"),
        ("pipeline", "success"),
        ("set", "success"),
        ("rename", "error"),
    ]
    assert steps[0]["if"] == {"condition": "ctx.x == 2", "result": False}
    assert steps[2]["doc"]["_source"]["f"] == "t"
    assert steps[2]["doc"]["_ingest"]["on_failure_processor_tag"] == "t"
    assert steps[4]["doc"]["_ingest"]["pipeline"] == "inner"
    body["pipeline"] = {"processors": [skipped]}
    (plain,) = http.post("/_ingest/pipeline/_simulate", json=body).json()["docs"]
    assert list(plain["doc"]["_ingest"]) == ["timestamp"]
    error = http.post("/_ingest/pipeline/_simulate", json={"docs": body["docs"]}).json()["error"]
    assert error["property_name"] == "pipeline"


def test_processors_may_set_the_conditions_of_the_write(http: httpx.Client) -> None:
    sets = [{"set": {"field": "_if_seq_no", "value": 0}}, {"set": {"field": "_if_primary_term", "value": 1}}]
    put(http, "guarded", *sets)
    assert reason_of(http.put("/books/_doc/1?pipeline=guarded", json={}))[0] == 409
    assert http.put("/books/_doc/1", json={}).json()["_seq_no"] == 0
    assert http.put("/books/_doc/1?pipeline=guarded", json={}).json()["_seq_no"] == 1
    assert reason_of(http.put("/books/_doc/1?pipeline=guarded", json={}))[0] == 409
    versions = [
        {"set": {"field": "_version", "value": 7}},
        {"set": {"field": "_version_type", "value": "external"}},
    ]
    put(http, "versioned", *versions)
    assert http.put("/books/_doc/2?pipeline=versioned", json={}).json()["_version"] == 7
    assert reason_of(http.put("/books/_doc/2?pipeline=versioned", json={}))[0] == 409
    put(http, "wrong", {"set": {"field": "_version", "value": "new"}})
    assert "must be a whole number" in reason_of(http.put("/books/_doc/3?pipeline=wrong", json={}))[2]
    unchanged = http.put("/books/_doc/2?version=9&version_type=external&pipeline=none", json={})
    assert unchanged.status_code == 400
    put(http, "plain", {"set": {"field": "a", "value": 1}})
    assert (
        http.put("/books/_doc/2?version=9&version_type=external&pipeline=plain", json={}).json()["_version"]
        == 9
    )
    assert (
        reason_of(http.put("/books/_doc/2?if_seq_no=0&if_primary_term=1&pipeline=plain", json={}))[0] == 409
    )


def test_a_pattern_that_fits_no_pipeline_deletes_none(http: httpx.Client) -> None:
    status, kind, _ = reason_of(http.delete("/_ingest/pipeline/mine_*"))
    assert (status, kind) == (404, "resource_not_found_exception")
    assert http.delete("/_ingest/pipeline/*").json() == {"acknowledged": True}
    (node,) = http.get("/_nodes/ingest").json()["nodes"].values()
    assert {"type": "grok"} in node["ingest"]["processors"]


def test_a_simulation_shows_nothing_of_pipelines_that_call_each_other_in_a_circle(
    http: httpx.Client,
) -> None:
    """But for a document that a condition keeps out of it."""
    first, second = {"set": {"field": "a", "value": 1}}, {"set": {"field": "b", "value": 2}}
    again = {"pipeline": {"name": "one", "if": "ctx.again == true"}}
    put(http, "one", first, {"pipeline": {"name": "two", "tag": "t"}})
    put(http, "two", second, again)
    put(http, "ignoring", {"pipeline": {"name": "two", "ignore_failure": True}}, first)

    def steps(name: str, source: dict[str, Any]) -> list[dict[str, Any]]:
        body = {"docs": [{"_source": source}]}
        (doc,) = http.post(f"/_ingest/pipeline/{name}/_simulate?verbose=true", json=body).json()["docs"]
        results: list[dict[str, Any]] = doc["processor_results"]
        return results

    def told(results: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [(step["processor_type"], step["status"]) for step in results]

    circle = steps("one", {"again": True})
    assert told(circle) == [("set", "success"), ("pipeline", "error")]
    assert circle[1]["tag"] == "t"
    assert circle[1]["error"]["reason"] == "Cycle detected for pipeline: one"
    ignored = steps("ignoring", {"again": True})
    assert told(ignored) == [("pipeline", "error_ignored"), ("set", "success")]
    assert ignored[1]["doc"]["_source"] == {"again": True, "a": 1}
    assert told(steps("one", {})) == [
        ("set", "success"), ("pipeline", "success"), ("set", "success"), ("pipeline", "skipped")
    ]  # fmt: skip


def test_who_sees_a_document_stays(http: httpx.Client) -> None:
    http.put("/_ingest/pipeline/keep", json={"processors": [{"remove": {"keep": ["a"]}}]})
    http.put("/books/_doc/1?pipeline=keep", json={"a": 1, "b": 2, "_allow_sids": ["x"]})
    assert http.get("/books/_doc/1").json()["_source"] == {"a": 1, "_allow_sids": ["x"]}


def test_a_trace_shows_only_so_much(http: httpx.Client) -> None:
    steps = [{"set": {"field": "n", "value": number}} for number in range(200)]
    body = {"pipeline": {"processors": steps}, "docs": [{"_source": {"a": "x" * 1_000_000}}]}
    answer = http.post("/_ingest/pipeline/_simulate?verbose=true", json=body)
    results = answer.json()["docs"][0]["processor_results"]
    assert len(results) < 30
    assert "more than a pipeline may" in results[-1]["error"]["reason"]


@pytest.mark.parametrize("at_once", [1, 3, 1 << 24])
def test_many_documents_are_written_in_their_order(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Whatever the pipelines make of them, and however much of that is in memory at a time."""
    monkeypatch.setattr(ingesting, "_MADE_BYTES", at_once)
    put(http, "p", {"set": {"field": "long", "value": "x" * 50}}, {"drop": {"if": "ctx.drop == true"}})
    put(http, "q", {"fail": {"message": "no"}})
    lines = []
    for number in range(8):
        lines += [
            f'{{"index":{{"_id":"{number}"}}}}\n{{"n":{number}}}\n',
            f'{{"index":{{"_id":"same","pipeline":"_none"}}}}\n{{"n":{number}}}\n',
            f'{{"update":{{"_id":"same"}}}}\n{{"doc":{{"more":{number}}},"upsert":{{"n":0}}}}\n',
            f'{{"create":{{"_id":"dropped{number}"}}}}\n{{"drop":true}}\n',
            f'{{"create":{{"_id":"failed{number}","pipeline":"q"}}}}\n{{}}\n',
            f'{{"delete":{{"_id":"{number - 1}"}}}}\n',
        ]
    headers = {"content-type": "application/x-ndjson"}
    answer = http.post("/many/_bulk?pipeline=p", content="".join(lines), headers=headers).json()
    statuses = [next(iter(item.values()))["status"] for item in answer["items"]]
    first = [201, 201, 200, 200, 500, 404]
    assert statuses == first + [201, 200, 200, 200, 500, 200] * 7
    assert source(http, "/many/_doc/7") == {"n": 7, "long": "x" * 50}
    assert source(http, "/many/_doc/same") == {"n": 7, "more": 7}


def test_what_an_update_inserts_goes_through_pipelines(http: httpx.Client) -> None:
    put(http, "mark", {"set": {"field": "marked", "value": True}}, {"drop": {"if": "ctx.gone == true"}})
    http.put("/a", json={"settings": {"index.default_pipeline": "mark"}})
    inserted = http.post("/a/_update/1", json={"doc": {"x": 1}, "upsert": {"x": 0}})
    assert inserted.status_code == 201
    assert http.get("/a/_doc/1").json()["_source"] == {"x": 0, "marked": True}
    http.post("/a/_update/2", json={"doc": {"x": 2}, "doc_as_upsert": True})
    assert http.get("/a/_doc/2").json()["_source"] == {"x": 2, "marked": True}
    scripted = {"script": "ctx._source.x += 1", "upsert": {"x": 5}}
    http.post("/a/_update/3", json=scripted)
    http.post("/a/_update/3", json=scripted)
    assert http.get("/a/_doc/3").json()["_source"] == {"x": 6, "marked": True}
    dropped = http.post("/a/_update/4", json={"doc": {}, "upsert": {"gone": True}}).json()
    assert dropped["result"] == "noop"
    assert http.get("/a/_doc/4").status_code == 404
    http.put("/a/_doc/5?pipeline=_none", json={"x": 1})
    http.post("/a/_update/5", json={"doc": {"x": 2}})  # nothing that could be inserted
    assert http.get("/a/_doc/5").json()["_source"] == {"x": 2}
    lines = '{"update":{"_id":"6"}}\n{"upsert":[1]}\n{"update":{"_id":"7"}}\n{"upsert":\n'
    headers = {"content-type": "application/x-ndjson"}
    items = http.post("/a/_bulk", content=lines, headers=headers).json()["items"]
    assert [item["update"]["status"] for item in items] == [400, 400]


def test_a_pipeline_is_replaced_only_where_its_version_is_the_wanted_one(http: httpx.Client) -> None:
    def replaced(wanted: str, **members: int) -> tuple[int, str]:
        answer = http.put(f"/_ingest/pipeline/p?if_version={wanted}", json={"processors": [], **members})
        return answer.status_code, "" if answer.status_code == 200 else reason_of(answer)[2]

    conflict = "version conflict, required version [3] for pipeline [p] but"
    assert replaced("3") == (400, f"{conflict} no pipeline was found")
    put(http, "p", version=3)
    assert replaced("3", version=4) == (200, "")
    assert replaced("3", version=5) == (400, f"{conflict} current version is [4]")
    assert replaced("4", version=4) == (400, "cannot update pipeline [p] with the same version [4]")
    assert replaced("4") == (200, "")
    assert http.get("/_ingest/pipeline/p").json()["p"]["version"] == 5
    assert replaced("x")[0] == 400


def test_a_document_goes_on_in_the_index_that_it_is_rerouted_to(http: httpx.Client) -> None:
    there = {"reroute": {"dataset": ["{{app}}", "other"]}}
    put(
        http, "first", {"set": {"field": "first", "value": 1}}, there, {"set": {"field": "never", "value": 1}}
    )
    put(http, "second", {"set": {"field": "second", "value": 1}})
    put(http, "last", {"set": {"field": "last", "value": "{{_index}}"}})
    for name, own in (("logs-generic-x", "first"), ("logs-shop_one-x", "second")):
        settings = {"index.default_pipeline": own, "index.final_pipeline": "last"}
        http.put(f"/{name}", json={"settings": settings})
    answer = http.put("/logs-generic-x/_doc/1", json={"app": "Shop-One", "event": {"dataset": "old"}}).json()
    assert answer["_index"] == "logs-shop_one-x"
    assert source(http, "/logs-shop_one-x/_doc/1") == {
        "app": "Shop-One", "first": 1, "second": 1, "last": "logs-shop_one-x",
        "event": {"dataset": "shop_one"},
        "data_stream": {"type": "logs", "dataset": "shop_one", "namespace": "x"},
    }  # fmt: skip
    assert http.put("/logs-generic-x/_doc/2", json={}).json()["_index"] == "logs-other-x"


def test_a_document_is_not_rerouted_in_a_circle(http: httpx.Client) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        put(http, f"to_{there}", {"reroute": {"destination": there}})
        http.put(f"/{here}", json={"settings": {"index.default_pipeline": f"to_{there}"}})
    status, kind, reason = reason_of(http.put("/a/_doc/1", json={}))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason.endswith("for document [1]: [a, b, a]")


def test_a_simulation_of_all_pipelines(http: httpx.Client) -> None:
    put(http, "one", {"set": {"field": "a", "value": 1}}, {"pipeline": {"name": "two"}})
    put(http, "two", {"set": {"field": "b", "value": "x"}})
    http.put("/i", json={
        "settings": {"index.default_pipeline": "one"}, "mappings": {"properties": {"b": {"type": "long"}}}
    })  # fmt: skip
    docs = [{"_index": "i", "_id": "7", "_source": {}}, {"_source": {"c": 1}}]
    made = http.post("/_ingest/new/_simulate", json={"docs": docs}).json()["docs"]
    assert made[1]["doc"] == {
        "_id": "<n/a>", "_index": "new", "_version": -3, "_source": {"c": 1}, "executed_pipelines": []
    }  # fmt: skip
    assert made[0]["doc"]["executed_pipelines"] == ["one", "two"]
    assert made[0]["doc"]["error"]["type"] == "document_parsing_exception"
    two = {"processors": [{"set": {"field": "b", "value": 3}}]}
    body = {
        "docs": docs, "pipeline_substitutions": {"two": two},
        "index_template_substitutions": {"t": {"index_patterns": ["ne*"], "composed_of": ["c"]}},
        "component_template_substitutions": {
            "c": {"template": {"settings": {"index.default_pipeline": "two"}}}
        },
    }  # fmt: skip
    made = http.post("/_ingest/new/_simulate", json=body).json()["docs"]
    assert [one["doc"]["_source"] for one in made] == [{"a": 1, "b": 3}, {"c": 1, "b": 3}]
    assert http.get("/_cat/indices?h=index").text == "i\n"
    assert http.get("/_index_template").json() == {"index_templates": []}
    refused: list[Any] = [None, {}, {"docs": []}, {"docs": [{}]}, {"docs": docs, "mapping_addition": {}}]
    for bad in refused:
        assert http.post("/_ingest/new/_simulate", json=bad).status_code == 400
