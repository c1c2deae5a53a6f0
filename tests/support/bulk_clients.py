"""`BulkClients`, `PutClients`: clients that write documents, by `_bulk` or one by one, while nodes come and
go, and what they were told.
"""

import itertools
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import httpx
import orjson

from tests.support.client_threads import ClientThreads

__all__ = ["BulkClients", "PutClients", "document", "search_client", "stored"]

_PAUSE_S = 0.05  # after what has failed
_TIMEOUT_S = 20.0
_PAGE = 10_000


def document(number: int) -> dict[str, Any]:
    """What is written under an id, so that a part of it, or another's, would show."""
    words = " ".join(f"word{(number * factor) % 977}" for factor in range(1, 20))
    return {"number": number, "text": words, "tags": [f"t{number % 7}", f"t{number % 11}"]}


def search_client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=_TIMEOUT_S, trust_env=False)


class BulkClients(ClientThreads):
    """Run them with `with`. Ids are numbers, never written twice."""

    def __init__(self, urls: Sequence[str], index: str, count: int = 4, size: int = 50) -> None:
        """count clients at each node; size documents in each request."""
        super().__init__(partial(self._run, url) for url in urls for _ in range(count))
        self._index, self._size = index, size
        self._numbers = itertools.count()
        self.acknowledged: set[int] = set()
        self.unexpected: list[str] = []  # answers that nobody should get

    def _run(self, url: str) -> None:
        with search_client(url) as client:
            while not self._ended.is_set():
                numbers = list(itertools.islice(self._numbers, self._size))
                try:
                    self._write(client, numbers)
                except httpx.TransportError:
                    time.sleep(_PAUSE_S)

    def _write(self, client: httpx.Client, numbers: Sequence[int]) -> None:
        lines = [line for number in numbers for line in ({"index": {"_id": str(number)}}, document(number))]
        body = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        answer = client.post(
            f"/{self._index}/_bulk", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        if answer.status_code == 503:
            time.sleep(_PAUSE_S)
            return
        if answer.status_code != 200:
            self.unexpected.append(answer.text)
            return
        for number, item in zip(numbers, answer.json()["items"], strict=True):
            if item["index"]["status"] in (200, 201):
                self.acknowledged.add(number)
            elif item["index"]["status"] not in (429, 503):
                self.unexpected.append(str(item))


class PutClients(BulkClients):
    """The same with one document in each request, of which a port answers most without its application."""

    def __init__(self, urls: Sequence[str], index: str, count: int = 4) -> None:
        super().__init__(urls, index, count, size=1)

    def _write(self, client: httpx.Client, numbers: Sequence[int]) -> None:
        for number in numbers:
            answer = client.put(f"/{self._index}/_doc/{number}", json=document(number))
            if answer.status_code in (200, 201):
                self.acknowledged.add(number)
            elif answer.status_code == 503:
                time.sleep(_PAUSE_S)
            else:
                self.unexpected.append(answer.text)


def stored(url: str, index: str) -> dict[int, dict[str, Any]]:
    """All documents of an index, by id, as one state of it has them."""
    found: dict[int, dict[str, Any]] = {}
    body: dict[str, Any] = {"size": _PAGE, "sort": [{"number": "asc"}], "query": {"match_all": {}}}
    with search_client(url) as client:
        client.post(f"/{index}/_refresh").raise_for_status()
        while True:
            answer = client.post(f"/{index}/_search", json=body)
            assert answer.status_code == 200, answer.text
            hits = answer.json()["hits"]["hits"]
            found |= {int(hit["_id"]): hit["_source"] for hit in hits}
            if len(hits) < _PAGE:
                return found
            body["search_after"] = hits[-1]["sort"]
