"""Mappings, settings, templates, aliases, pipelines and analyzers that come new: what Elasticsearch answers.

`definition_answers.json` has requests and the last answer of Elasticsearch 8.19.21 to each: the status
with what it shows, or the type of its error. `{i}` stands for the name of the case's own index.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import SETTINGS, one_shard, reason_of

CASES = json.loads(Path(__file__).with_name("definition_answers.json").read_text())
OF_THE_MOMENT = {"index.uuid", "index.creation_date", "index.version.created", "index.provided_name"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with (
        serving(build_search_app(MemorySearch(), SETTINGS)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


def shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shown(one) for name, one in value.items() if name not in OF_THE_MOMENT}
    return [shown(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("number", range(len(CASES)))
def test_elasticsearch_answers_so(client: httpx.Client, number: int) -> None:
    name = f"case{number}"
    steps, (status, expected) = json.loads(json.dumps(CASES[number]).replace("{i}", name))
    for method, path, *body in steps:
        answer = client.request(method, path, **({"json": body[0]} if body else {}))
        if answer.is_error:
            break
    for kind, prefix in (("", ""), ("_index_template/", "t"), ("_index_template/", "u"), ("_template/", "l")):
        client.delete(f"/{kind}{prefix}{name}")
    found = answer.json()
    if answer.is_error:
        assert (answer.status_code, found["error"]["type"]) == (status, expected)
    else:
        assert (answer.status_code, json.dumps(shown(found))) == (status, json.dumps(expected))
    if len(steps) == 2 and not steps[0][1].startswith(f"/{name}"):
        client.delete(steps[0][1])


@one_shard
def test_dynamic_templates_of_an_update_take_the_place_of_all(http: httpx.Client) -> None:
    def templates(*names: str) -> Any:
        return {"dynamic_templates": [{one: {"match": one, "mapping": {"type": "keyword"}}} for one in names]}

    http.put("/i", json={"mappings": templates("a", "b")})
    http.put("/i/_mapping", json=templates("c")).raise_for_status()
    assert http.get("/i/_mapping").json()["i"]["mappings"] == templates("c")
    http.put("/i/_mapping", json={"date_detection": False}).raise_for_status()
    assert http.get("/i/_mapping").json()["i"]["mappings"] == {**templates("c"), "date_detection": False}


@one_shard
@pytest.mark.parametrize(
    "field",
    [
        {"type": "text", "search_analyzer": "simple"},
        {"type": "text", "index_prefixes": {}, "analyzer": "default"},
        {"type": "keyword", "null_value": True},
        {"type": "float", "null_value": "1"},
        {"type": "geo_point", "null_value": [1, 2]},
        {"type": "completion", "contexts": [{"name": "a", "type": "category"}]},
        {"type": "date", "locale": "en-US"},
        {"type": "dense_vector", "dims": 8},
    ],
)
def test_a_mapping_that_is_shown_may_be_put_again(http: httpx.Client, field: Any) -> None:
    http.put("/i", json={"mappings": {"properties": {"f": field}}}).raise_for_status()
    mappings = http.get("/i/_mapping").json()["i"]["mappings"]
    http.put("/i/_mapping", json=mappings).raise_for_status()
    http.put("/j", json={"mappings": mappings}).raise_for_status()
    for name in "ij":
        assert http.get(f"/{name}/_mapping").json()[name]["mappings"] == mappings


@one_shard
def test_modes_of_indexes(http: httpx.Client) -> None:
    for mode in ("standard", "logsdb", "lookup"):
        http.put(f"/{mode}", json={"settings": {"index.mode": mode}}).raise_for_status()
    refused = http.put("/i", json={"settings": {"index.mode": "time_series", "index.routing_path": ["a"]}})
    status, kind, reason = reason_of(refused)
    assert (status, kind) == (400, "illegal_argument_exception")
    assert "[time_series] is not supported" in reason
