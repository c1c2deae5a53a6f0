"""The searches of a `_msearch` that are still to come are not made once their client has left."""

import socket
from typing import Any

import httpx
import orjson

from tests.support.timing import HANG_S, wait_until
from tests.unit.serve.search.conftest import one_shard

pytestmark = one_shard

COUNT = 5_000
LONG: dict[str, Any] = {
    "query": {"script_score": {"query": {"match_all": {}}, "script": {"source": "return 'x'.hashCode()"}}}
}
BODY = b"".join(b'{"index":"a"}\n' + orjson.dumps(LONG) + b"\n" for _ in range(COUNT))


def search_threads(http: httpx.Client) -> dict[str, int]:
    told = http.get("/_cat/thread_pool/search?format=json&h=active,queue,completed").json()[0]
    return {name: int(told[name]) for name in told}


def test_searches_end_with_their_client(http: httpx.Client) -> None:
    lines = b"".join(b'{"index":{}}\n{"n":%d}\n' % number for number in range(2_000))
    ndjson = {"content-type": "application/x-ndjson"}
    assert not http.post("/a/_bulk?refresh=true", content=lines, headers=ndjson).json()["errors"]
    before = search_threads(http)
    with socket.create_connection((http.base_url.host, http.base_url.port or 80), HANG_S) as connection:
        head = "POST /_msearch HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson"
        connection.sendall(f"{head}\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        wait_until(lambda: search_threads(http)["active"] > 0)
    wait_until(lambda: search_threads(http)["active"] + search_threads(http)["queue"] == 0)
    assert search_threads(http)["completed"] - before["completed"] < COUNT / 2
