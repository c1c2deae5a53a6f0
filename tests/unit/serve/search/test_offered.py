"""What clients ask of the node itself, and settings that are kept without an effect."""

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


@pytest.mark.parametrize(
    ("asked", "supported"),
    [
        ("method=GET&path=/_capabilities", True),
        ("method=GET&path=/_capabilities&parameters=method,path,parameters,capabilities", True),
        ("method=GET&path=/_capabilities&parameters=unknown", False),
        ("method=POST&path=/{index}/_search&parameters=size,error_trace", True),
        ("method=POST&path=/a/_search", True),
        ("method=PUT&path=/_search", False),
        ("method=GET&path=/_nothing/at/all", False),
        ("method=GET&path=/_nothing", False),
        ("method=POST&path=/_search&capabilities=something_named", False),
    ],
)
def test_which_operations_there_are(http: httpx.Client, asked: str, supported: bool) -> None:
    assert http.get(f"/_capabilities?{asked}").json()["supported"] is supported


def test_information_about_the_cluster(http: httpx.Client) -> None:
    every = http.get("/_info/_all").json()
    assert every.keys() == {"cluster_name", "http", "ingest", "script", "thread_pool"}
    assert http.get("/_info/ingest,thread_pool").json().keys() == {"cluster_name", "ingest", "thread_pool"}
    assert reason_of(http.get("/_info/_all,http"))[1:] == (
        "illegal_argument_exception",
        "request [/_info/_all,http] contains _all and individual target [_all,http]",
    )
    assert reason_of(http.get("/_info/http,foo"))[2] == (
        "request [/_info/http,foo] contains unrecognized target: [foo]"
    )


def test_what_there_is_none_of(http: httpx.Client) -> None:
    assert http.get("/_features").json() == {"features": []}
    assert http.get("/_dangling").json()["dangling_indices"] == []
    assert http.get("/_nodes/hot_threads").headers["content-type"].startswith("text/plain")
    assert reason_of(http.get("/_nodes/hot_threads?type=foo"))[2] == "type not supported [foo]"


def test_cluster_settings_that_are_kept_without_an_effect(http: httpx.Client) -> None:
    settings = {"cluster.max_shards_per_node": 2000, "cluster.routing.allocation.disk.watermark.low": "85%"}
    answer = http.put("/_cluster/settings", json={"persistent": settings}).json()
    assert answer["persistent"]["cluster"]["max_shards_per_node"] == "2000"
    shown = http.get("/_cluster/settings?flat_settings=true").json()["persistent"]
    assert shown == {name: str(value) for name, value in settings.items()}
    unset = http.get("/_cluster/settings?include_defaults=true&flat_settings=true").json()["defaults"]
    assert settings.keys().isdisjoint(unset)
    disk = "cluster.routing.allocation.disk"
    assert (unset[f"{disk}.threshold_enabled"], unset[f"{disk}.watermark.high"]) == ("false", "90%")
    assert http.put("/_cluster/settings", json={"persistent": {"cluster.*": None}}).status_code == 200
    assert http.get("/_cluster/settings").json()["persistent"] == {}
    assert reason_of(http.put("/_cluster/settings", json={}))[2] == (
        "Validation Failed: 1: no settings to update;"
    )
    assert reason_of(http.put("/_cluster/settings"))[1] == "parse_exception"


def test_times_are_times_with_every_operation(http: httpx.Client) -> None:
    for name in ("timeout", "master_timeout"):
        assert f"[{name}] with value [x]" in reason_of(http.put(f"/a?{name}=x"))[2]
    assert http.head("/a").status_code == 404


def test_settings_of_closed_indexes_are_set_with_a_reopening(http: httpx.Client) -> None:
    http.put("/a")
    body = {"index.analysis.analyzer.mine.type": "standard"}
    assert http.put("/a/_settings", json=body).status_code == 400
    assert http.put("/a/_settings?reopen=true", json={"index.number_of_shards": 3}).status_code == 400
    assert http.put("/a/_doc/1", json={}).status_code == 201  # it is open again
    assert http.put("/a/_settings?reopen=true", json=body).json() == {"acknowledged": True}
    assert http.post("/a/_analyze", json={"analyzer": "mine", "text": "x"}).status_code == 200
