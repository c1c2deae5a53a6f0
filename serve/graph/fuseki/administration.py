"""`/$/...`: the server as Fuseki's administration protocol shows it."""

import time
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from graphdb.errors import NotFound
from graphdb.timestamps import iso_timestamp
from serve.backend import Admin, Queries
from serve.graph.fuseki.tasks import Backups, Task, Tasks
from serve.graph.metrics import Metrics

__all__ = ["FusekiAdministration"]

_NOT_STORED = {"Cache-Control": "no-store"}
_SERVICES = (
    ("query", "SPARQL Query", ("", "query", "sparql")),
    ("update", "SPARQL Update", ("", "update")),
    ("gsp-rw", "Graph Store Protocol", ("", "data")),
    ("gsp-r", "Graph Store Protocol (Read)", ("get",)),
    ("patch", "RDF Patch", ("", "patch")),
)


class FusekiAdministration:
    """The handlers of the paths below `/$`."""

    def __init__(
        self, name: str, queries: Queries, admin: Admin, metrics: Metrics, backups: Backups, tasks: Tasks
    ) -> None:
        """name: of the dataset."""
        self._name, self._queries, self._admin, self._metrics = name, queries, admin, metrics
        self._backups, self._tasks = backups, tasks

    async def ping(self, _request: Request) -> Response:
        """The time, as text."""
        return PlainTextResponse(
            f"{datetime.now(UTC).isoformat(timespec='milliseconds')}\n", headers=_NOT_STORED
        )

    async def server(self, _request: Request) -> Response:
        """Version, start and datasets."""
        uptime_s = self._admin.status().uptime_seconds
        return _json(
            {
                "version": version("graphdb"),
                "startDateTime": iso_timestamp(int((time.time() - uptime_s) * 1000)),
                "uptime": int(uptime_s),
                "datasets": [self._described()],
            }
        )

    async def datasets(self, _request: Request) -> Response:
        """The only dataset, in a list."""
        return _json({"datasets": [self._described()]})

    async def dataset(self, request: Request) -> Response:
        """The dataset."""
        self._check_name(request)
        return _json(self._described())

    async def stats(self, _request: Request) -> Response:
        """Queries and updates since the start."""
        return _json({"datasets": {f"/{self._name}": self._counts()}})

    async def dataset_stats(self, request: Request) -> Response:
        """The same, of the dataset by its name."""
        self._check_name(request)
        return await self.stats(request)

    async def back_up(self, request: Request) -> Response:
        """Start a backup."""
        self._check_name(request)
        reads = self._queries.whole_reads()
        task = self._tasks.start(
            "Backup", lambda check: self._backups.write(self._name, reads.dataset_quads, check)
        )
        return _json(_started(task))

    async def list_backups(self, _request: Request) -> Response:
        """The names of the files."""
        return _json({"backups": self._backups.names()})

    async def compact(self, request: Request) -> Response:
        """A task that has nothing to do: the storage engine compacts its files by itself."""
        self._check_name(request)
        return _json(_started(self._tasks.start("Compact", lambda check: check())))

    async def tasks(self, _request: Request) -> Response:
        """The tasks, the oldest first."""
        return _json([task.to_json() for task in self._tasks.all()])

    async def task(self, request: Request) -> Response:
        """One of them."""
        return _json(self._tasks.one(request.path_params["id"]).to_json())

    def _check_name(self, request: Request) -> None:
        name: str = request.path_params["name"]
        if name != self._name:
            raise NotFound("dataset", name[:100])

    def _described(self) -> dict[str, Any]:
        services = [
            {"srv.type": kind, "srv.description": text, "srv.endpoints": list(paths)}
            for kind, text, paths in _SERVICES
        ]
        return {"ds.name": f"/{self._name}", "ds.state": True, "ds.services": services}

    def _counts(self) -> dict[str, Any]:
        good, bad = self._metrics.query_counts()
        counts = {"Requests": good + bad, "RequestsGood": good, "RequestsBad": bad}
        query = {**counts, "operation": "query", "description": "SPARQL Query"}
        return {**counts, "endpoints": {"query": query}}


def _started(task: Task) -> dict[str, Any]:
    return {"taskId": str(task.number), "requestId": task.number, "task": task.kind}


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), headers=_NOT_STORED, media_type="application/json")
