"""/geospatial/evaluate: a function and its arguments in, its result out."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import QueryTimeout
from serve.backend import FunctionCall
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.leaving_client import leave
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import wait_until
from tests.unit.serve.conftest import error_of

METRE = "http://www.opengis.net/def/uom/OGC/1.0/metre"
XSD = "http://www.w3.org/2001/XMLSchema#"
EVALUATE = "/geospatial/evaluate"


@pytest.mark.parametrize(
    "function", ["distance", "geof:distance", "http://www.opengis.net/def/function/geosparql/distance"]
)
def test_a_distance(client: httpx.Client, function: str) -> None:
    answer = client.post(
        EVALUATE, json={"function": function, "args": ["POINT(-73.8 40.6)", "POINT(-0.5 51.6)", METRE]}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "function": "geof:distance",
        "result": pytest.approx(5551759.400, rel=1e-8),
        "datatype": XSD + "double",
    }


@pytest.mark.parametrize(
    ("function", "args", "result"),
    [
        ("sfWithin", ["POINT(1 1)", "POLYGON((0 0,2 0,2 2,0 2,0 0))"], True),
        ("numGeometries", ["MULTIPOINT(1 1,2 2)"], 2),
        ("centroid", ["<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 2)"],
         "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT (1 2)"),
        ("asGeoJSON", ["POINT(1 2)"], '{"type":"Point","coordinates":[1.0,2.0]}'),
        ("isEmpty", ['{"type":"Point","coordinates":[]}'], True),
        ("envelope", ["POINT(1 2)", ], "POINT (1 2)"),
    ],
)  # fmt: skip
def test_results(client: httpx.Client, function: str, args: list[str], result: object) -> None:
    found = client.post(EVALUATE, json={"function": function, "args": args}).json()["result"]
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"function": "nothing", "args": []}, "no function nothing"),
        ({"function": "sfwithin", "args": []}, "perhaps geof:sfWithin"),
        ({"function": "distance", "args": ["POINT(0 0)"]}, "geof:distance takes 3"),
        ({"function": "distance", "args": ["POINT(0 0)", "POINT(0 1)", "http://example.org/"]}, "not known"),
        ({"function": "isEmpty", "args": ["POINT(0"]}, "malformed WKT"),
        ({"function": "isEmpty", "args": ["GEOMETRYCOLLECTION(" * 100]}, "nested"),
        ({"function": "isEmpty", "args": ["<http://example.org/> POINT(0 0)"]}, "reference system"),
        ({"function": "isEmpty", "args": [5]}, "args.0"),
        ({"function": "isEmpty", "args": "POINT(0 0)"}, "args"),
        ({"function": "isEmpty", "args": ["x"] * 101}, "args"),
        ({"function": 5, "args": []}, "function"),
        ({"args": []}, "function"),
        ({"function": "isEmpty"}, "args"),
        ({"function": "isEmpty", "args": [], "unit": "m"}, "unit"),
        ([], "body"),
    ],
)
def test_what_is_refused(client: httpx.Client, body: Any, words: str) -> None:
    answer = client.post(EVALUATE, json=body)
    assert answer.status_code == 400
    assert words in error_of(answer)


def test_bodies_that_are_none(client: httpx.Client) -> None:
    for headers, content, status in (
        ({"Content-Type": "application/json"}, b"{", 400),
        ({"Content-Type": "application/json"}, b"\xff", 400),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
        ({"Content-Type": "application/json"}, b" " * 1_000_001, 413),
    ):
        answer = client.post(EVALUATE, content=content, headers=headers)
        assert (answer.status_code, bool(error_of(answer))) == (status, True)
    assert client.get(EVALUATE).status_code == 405
    assert client.post(f"{EVALUATE}?timeout=x", json={"function": "isEmpty", "args": [""]}).status_code == 400


class SlowBackend(MemoryBackend):
    """A node whose calls wait until they are cancelled, or past their time limit."""

    def __init__(self) -> None:
        super().__init__()
        self.timeouts: list[float] = []
        self.cancelled = 0

    async def call_function(self, call: FunctionCall) -> bytes:
        self.timeouts.append(call.timeout_s)
        try:
            await asyncio.sleep(call.timeout_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise QueryTimeout("in words of its own")


def test_time_limits_and_clients_that_leave() -> None:
    backend = SlowBackend()
    settings = Settings.model_validate({"server": {"query_timeout_seconds": 20}})
    body = {"function": "isEmpty", "args": [""]}
    with serving(build_app(backend, settings)) as url, httpx.Client(base_url=url, trust_env=False) as http:
        answer = http.post(f"{EVALUATE}?timeout=200ms", json=body)
        assert (answer.status_code, error_of(answer)) == (503, "the evaluation took longer than 0.2 s")
        assert answer.headers["retry-after"]
        cancelled = backend.cancelled
        leave(f"{url}{EVALUATE}", lambda: len(backend.timeouts) == 2, json=json.dumps(body).encode())
        wait_until(lambda: backend.cancelled > cancelled)
    assert backend.timeouts[0] <= 0.2
    assert 0.2 < backend.timeouts[1] <= 20
