"""`_tasks`: the long requests of all nodes, their results and their ends; `_rethrottle`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.backend import SearchBackend
from serve.search.documents.rewriting import rate_of
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity, NodeName
from serve.search.frame.peer_requests import ask_peer
from serve.search.frame.tasks import Task

__all__ = ["LISTING", "routes", "tasks_here"]

_LIST = "actions detailed group_by nodes parent_task_id timeout wait_for_completion"
_CANCEL = "actions group_by nodes parent_task_id wait_for_completion"
_TIMEOUT_MS = 30_000
_TIMEOUT_MS_MAX = 24 * 3_600_000
_PEER_S = 5.0
LISTING = "cluster:monitor/tasks/lists"


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    tasks = _TasksOfNodes(Identity(node, settings))
    rethrottled = [f"/{name}/{{task_id}}/_rethrottle" for name in _RETHROTTLED]
    return [
        *endpoint("GET", "/_tasks", tasks.show, _LIST),
        *endpoint("GET", "/_tasks/{task_id}", tasks.get, "timeout wait_for_completion"),
        *endpoint("POST", ["/_tasks/_cancel", "/_tasks/{task_id}/_cancel"], tasks.cancel, _CANCEL),
        *endpoint("POST", rethrottled, tasks.rethrottle, "group_by requests_per_second"),
    ]


_RETHROTTLED = {
    "_reindex": "indices:data/write/reindex",
    "_update_by_query": "indices:data/write/update/byquery",
    "_delete_by_query": "indices:data/write/delete/byquery",
}


@dataclass(frozen=True, slots=True)
class _TaskId:
    """`node:number`."""

    node: str
    number: int

    @classmethod
    def of(cls, text: str) -> "_TaskId":
        """Errors: illegal_argument_exception."""
        node, _, number = text.rpartition(":")
        found = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None
        if not node or found is None:
            raise illegal_argument(f"malformed task id {text[:100]}")
        return cls(node, found)

    def __str__(self) -> str:
        return f"{self.node}:{self.number}"


def tasks_here(exchange: Exchange, node_id: str) -> list[Task]:
    """Those that the request's principal may see, as its parameters choose."""
    parameters = exchange.parameters
    actions, parent = parameters.strings("actions"), parameters.text("parent_task_id")
    wanted = None if parent in (None, "", "-1") else _TaskId.of(parent)
    return [
        task
        for task in exchange.tasks.running(exchange.principal)
        if (not actions or any(wildcard_match(one, task.action) for one in actions))
        and (wanted is None or (wanted.node == node_id and wanted.number == task.parent))
    ]


class _TasksOfNodes:
    """A task is of the node that runs it; others ask that one."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def show(self, exchange: Exchange) -> dict[str, Any]:
        """This request is a task itself."""
        parameters, here = exchange.parameters, self._identity.node_id
        detailed, limit_ms = parameters.boolean("detailed", False), _limit_ms(exchange)
        waits = parameters.boolean("wait_for_completion", False)

        async def own() -> list[dict[str, Any]]:
            listing = exchange.begin_task(LISTING, "", is_cancellable=False)
            with exchange.tasks.shown(listing):
                if waits:
                    others = [task for task in tasks_here(exchange, here) if task.action != LISTING]
                    await _ended(others, limit_ms)
                return [task.to_json(here, detailed=detailed) for task in tasks_here(exchange, here)]

        wait_s = limit_ms / 1000 if waits else 0.0
        return await self._of_nodes(exchange, "GET", "/_tasks", own, wait_s)

    async def cancel(self, exchange: Exchange) -> dict[str, Any]:
        """Of one task, or of all that the parameters choose; the answer shows them."""
        text, here = exchange.get("task_id"), self._identity.node_id
        wanted = None if text is None else _TaskId.of(text)
        waits = exchange.parameters.boolean("wait_for_completion", False)

        async def own() -> list[dict[str, Any]]:
            if wanted is None:
                meant = [task for task in tasks_here(exchange, here) if task.is_cancellable]
            else:
                task = exchange.tasks.find(wanted.number, exchange.principal)
                if task is None:
                    raise _missing(f"task [{wanted}] is not found")
                if not task.is_cancellable:
                    raise illegal_argument(f"task [{wanted}] doesn't support cancellation")
                meant = [task]
            for task in meant:
                task.cancel()
            if waits:
                await _ended(meant, _TIMEOUT_MS)
            return [task.to_json(here, detailed=True) for task in meant]

        path = "/_tasks/_cancel" if wanted is None else f"/_tasks/{wanted}/_cancel"
        wait_s = _TIMEOUT_MS / 1000 if waits else 0.0
        return await self._of_nodes(exchange, "POST", path, own, wait_s, wanted)

    async def rethrottle(self, exchange: Exchange) -> dict[str, Any]:
        """Another rate for one task, from now on; each of the three paths takes tasks of every kind."""
        wanted, here = _TaskId.of(exchange["task_id"]), self._identity.node_id
        if "requests_per_second" not in exchange.parameters:
            raise illegal_argument("requests_per_second is a required parameter")
        rate = rate_of(exchange.parameters)
        kind = exchange.path.split("/")[1]

        async def own() -> list[dict[str, Any]]:
            task = exchange.tasks.find(wanted.number, exchange.principal)
            if task is None or task.action not in _RETHROTTLED.values():
                raise _missing(f"task [{wanted}] is missing")
            task.rethrottle(rate)
            return [task.to_json(here, detailed=True)]

        return await self._of_nodes(exchange, "POST", f"/{kind}/{wanted}/_rethrottle", own, 0.0, wanted)

    async def get(self, exchange: Exchange) -> dict[str, Any]:
        """One that runs, or has run without its client: with what it came to."""
        wanted, limit_ms = _TaskId.of(exchange["task_id"]), _limit_ms(exchange)
        waits = exchange.parameters.boolean("wait_for_completion", False)
        node = self._node(exchange, wanted.node)
        if node is None:
            raise _missing(
                f"task [{wanted}] belongs to the node [{wanted.node[:100]}] which isn't part of the "
                "cluster and there is no record of the task"
            )
        if node.number != self._identity.number:
            wait_s = limit_ms / 1000 if waits else 0.0
            return await self._asked(exchange, node, "GET", f"/_tasks/{wanted}", wait_s)
        task = exchange.tasks.find(wanted.number, exchange.principal)
        if task is not None and waits and not await _ended([task], limit_ms):
            raise SearchError(
                "status_exception", f"Timed out waiting for completion of [{task.action} {wanted}]", 504
            )
        finished = exchange.tasks.finished(wanted.number, exchange.principal)
        if finished is not None:
            shown, value = orjson.Fragment(finished.shown), orjson.Fragment(finished.value)
            return {"completed": True, "task": shown, finished.member: value}
        if task is None:
            reason = f"task [{wanted}] isn't running and hasn't stored its results"
            if exchange.tasks.is_of_earlier_start(wanted.number):
                reason += (
                    ": its node has been started again since. If it ran then, it ended before its work was "
                    "done, and what it had written is there"
                )
            raise _missing(reason)
        return {"completed": task.ended.is_set(), "task": task.to_json(node.id, detailed=True)}

    def _node(self, exchange: Exchange, node_id: str) -> NodeName | None:
        members = self._identity.members(exchange.node.status())
        return next((node for node in members if node.id == node_id), None)

    async def _of_nodes(
        self,
        exchange: Exchange,
        method: str,
        path: str,
        own: Callable[[], Awaitable[list[dict[str, Any]]]],
        wait_s: float,
        wanted: "_TaskId | None" = None,
    ) -> dict[str, Any]:
        """What `own` answers here and the others answer at the path: of all nodes, or of that of one task."""
        group_by = exchange.parameters.text("group_by") or "nodes"
        if group_by not in ("nodes", "parents", "none"):
            raise illegal_argument(
                f"[group_by] must be one of [nodes, parents, none], found [{group_by[:100]}]"
            )
        members = self._identity.members(exchange.node.status())
        if wanted is None:
            meant = [node for node in members if node.reachable and _is_meant(exchange, self._identity, node)]
        else:
            meant = [node for node in members if node.id == wanted.node]
        failures = []
        if wanted is not None and not meant:
            gone = SearchError("no_such_node_exception", f"No such node [{wanted.node[:100]}]", 404)
            failures.append(_failure(wanted.node[:100], gone))

        async def of_one(node: NodeName) -> dict[str, Any]:
            try:
                if node.number == self._identity.number:
                    tasks = {f"{node.id}:{task['id']}": task for task in await own()}
                    return {"nodes": {node.id: {**_about(node), "tasks": tasks}} if tasks else {}}
                return await self._asked(exchange, node, method, path, wait_s)
            except (SearchError, UnavailableError) as error:
                return {"node_failures": [_failure(node.id, search_error(error))]}

        nodes: dict[str, Any] = {}
        for answer in await asyncio.gather(*map(of_one, meant)):
            nodes |= answer.get("nodes", {})
            failures += answer.get("node_failures", [])
        failed = {"node_failures": failures} if failures else {}
        return failed | ({"nodes": nodes} if group_by == "nodes" else _grouped(nodes, group_by))

    async def _asked(
        self, exchange: Exchange, node: NodeName, method: str, path: str, wait_s: float
    ) -> dict[str, Any]:
        """What another node answers about itself. Raises SearchError, UnavailableError."""
        parameters = exchange.parameters
        query = {name: text for name in _PASSED_ON if (text := parameters.text(name)) is not None}
        if path in ("/_tasks", "/_tasks/_cancel"):
            query["nodes"] = node.id
        principal, limit_s = exchange.principal, wait_s + _PEER_S
        _, answer = await ask_peer(exchange.node, node.number, method, path, query, None, limit_s, principal)
        return answer


_PASSED_ON = (
    "actions",
    "detailed",
    "parent_task_id",
    "requests_per_second",
    "timeout",
    "wait_for_completion",
)


async def _ended(tasks: Sequence[Task], limit_ms: int) -> bool:
    """Whether all have ended, within the time."""
    try:
        async with asyncio.timeout(limit_ms / 1000):
            await asyncio.gather(*(task.ended.wait() for task in tasks))
    except TimeoutError:
        return False
    return True


def _limit_ms(exchange: Exchange) -> int:
    given = exchange.parameters.time_ms("timeout", _TIMEOUT_MS)
    return min(given, _TIMEOUT_MS_MAX) if given >= 0 else _TIMEOUT_MS_MAX


def _is_meant(exchange: Exchange, identity: Identity, node: NodeName) -> bool:
    known = {"_all", node.id, node.name, node.host}
    known |= {"_master"} if node.leads else set()
    known |= {"_local"} if node.number == identity.number else set()
    wanted = exchange.parameters.strings("nodes") or ["_all"]
    return any(wildcard_match(name, one) for name in wanted for one in known)


def _about(node: NodeName) -> dict[str, Any]:
    return {
        "name": node.name,
        "transport_address": node.transport_address,
        "host": node.host,
        "ip": node.host,
        "roles": ["data", "ingest", "master"],
    }


def _grouped(nodes: Mapping[str, Any], group_by: str) -> dict[str, Any]:
    """As a list, or by parent."""
    tasks = {task_id: dict(task) for node in nodes.values() for task_id, task in node["tasks"].items()}
    if group_by == "none":
        return {"tasks": list(tasks.values())}
    for task in tasks.values():
        parent = tasks.get(task.get("parent_task_id", ""))
        if parent is not None:
            parent.setdefault("children", []).append(task)
    return {
        "tasks": {task_id: task for task_id, task in tasks.items() if task.get("parent_task_id") not in tasks}
    }


def _failure(node_id: str, error: SearchError) -> dict[str, Any]:
    return {
        "type": "failed_node_exception",
        "reason": f"Failed node [{node_id}]",
        "node_id": node_id,
        "caused_by": error_json(error),
    }


def _missing(reason: str) -> SearchError:
    return SearchError("resource_not_found_exception", reason, 404)
