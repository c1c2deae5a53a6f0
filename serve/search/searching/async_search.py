"""`_async_search`: searches that go on without their client, and their answers."""

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.access.principal import Principal
from graphdb.errors import UnavailableError
from graphdb.search.contexts import RANDOM_BYTES, make_context_id
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.frame.answer import Answer, error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.peer_requests import ask_peer
from serve.search.frame.tasks import Task
from serve.search.searching.search import asked_of, searched
from serve.search.searching.search_body import SEARCH_PARAMETERS, body_with
from serve.search.searching.search_contexts import owner_of
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

_ACTION = "indices:data/read/async_search/submit"
_WAIT_MS = 1_000
_WAIT_MS_MAX = 24 * 3_600_000
_KEEP_MS = 5 * 24 * 3_600_000
_KEEP_MS_MAX = 30 * 24 * 3_600_000
_KEPT_MAX = 500
_KEPT_MAX_OF_ONE = 100  # so that no principal takes the place of all others
_ANSWER_BYTES_MAX = 10 * 1024 * 1024  # search.max_async_search_response_size
_KEPT_BYTES_MAX = 64 * 1024 * 1024
_REFUSED = ("scroll", "ccs_minimize_roundtrips", "min_compatible_shard_node")
_SUBMIT = " ".join(name for name in SEARCH_PARAMETERS.split() if name not in _REFUSED)
_SUBMIT += " keep_alive keep_on_completion wait_for_completion_timeout"


@dataclass(slots=True)
class _Search:
    """One that runs or has run. Times: Unix epoch. answer: as JSON; error: what it failed with."""

    id: str
    task: Task
    expires_ms: int
    running: asyncio.Task[dict[str, Any]]
    completed_ms: int | None = None
    answer: bytes = b""
    error: SearchError | None = None


class _Searches:
    """Of one node. For the event loop only; what has expired is dropped with the next request."""

    def __init__(self) -> None:
        self._kept: dict[str, _Search] = {}

    def check_place(self, author: Principal) -> None:
        """Errors: es_rejected_execution_exception."""
        own = sum(
            (one.task.author.provider, one.task.author.name) == (author.provider, author.name)
            for one in self._kept.values()
        )
        if len(self._kept) >= _KEPT_MAX or own >= _KEPT_MAX_OF_ONE:
            raise SearchError(
                "es_rejected_execution_exception",
                f"rejected execution: [{len(self._kept)}] asynchronous searches are kept, [{own}] of them "
                f"yours; delete some, [{_KEPT_MAX}] is the most, [{_KEPT_MAX_OF_ONE}] of one user",
                429,
            )

    def add(self, search: _Search) -> None:
        self._kept[search.id] = search

    def find(self, search_id: str, principal: Principal, now_ms: int) -> _Search:
        """Errors: resource_not_found_exception, also for those of others."""
        self.sweep(now_ms)
        found = self._kept.get(search_id)
        if found is None or not found.task.is_shown_to(principal):
            raise SearchError("resource_not_found_exception", search_id[:200], 404)
        return found

    def remove(self, search: _Search) -> None:
        self._kept.pop(search.id, None)
        search.task.cancel()

    def sweep(self, now_ms: int) -> None:
        for search in [one for one in self._kept.values() if one.expires_ms <= now_ms]:
            self.remove(search)

    def settle(self, search: _Search, now_ms: int) -> None:
        """Keep what it came to."""
        search.completed_ms = now_ms
        if search.running.cancelled():
            search.error = SearchError("task_cancelled_exception", "task cancelled [by user request]")
            return
        failed = search.running.exception()
        if failed is not None:
            search.error = search_error(failed if isinstance(failed, Exception) else Exception(str(failed)))
            return
        answer = orjson.dumps(search.running.result())
        kept = sum(len(one.answer) for one in self._kept.values())
        if len(answer) > _ANSWER_BYTES_MAX or kept + len(answer) > _KEPT_BYTES_MAX:
            search.error = illegal_argument(
                f"Can't store an async search response larger than [{_ANSWER_BYTES_MAX}] bytes, or more than "
                f"[{_KEPT_BYTES_MAX}] bytes of them in all: this one has [{len(answer)}]"
            )
            return
        search.answer = answer


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    searches = _Searches()

    async def submit(exchange: Exchange) -> Any:
        runner, parameters = shared.visible_to(exchange), exchange.parameters
        wait_ms = _time_ms(exchange, "wait_for_completion_timeout", _WAIT_MS, _WAIT_MS_MAX)
        keep_ms = _time_ms(exchange, "keep_alive", _KEEP_MS, _KEEP_MS_MAX)
        keeps = parameters.boolean("keep_on_completion", False)
        body = body_with(parameters, await exchange.json())
        asked = asked_of(parameters, body, exchange.principal)
        names = exchange.get("index") or parameters.text("index")
        now_ms = exchange.node.now_ms()
        searches.sweep(now_ms)
        searches.check_place(exchange.principal)
        shown = orjson.dumps(body, default=str)[:800].decode(errors="replace")
        task = exchange.begin_task(_ACTION, f"async_search{{indices[{names or ''}], source[{shown}]}}")

        async def perform() -> dict[str, Any]:
            with exchange.tasks.shown(task):
                return await searched(runner, asked, names, parameters)

        running = asyncio.get_running_loop().create_task(perform())
        task.end = running.cancel
        search_id = make_context_id(runner.identity.number, secrets.token_bytes(RANDOM_BYTES))
        search = _Search(search_id, task, now_ms + keep_ms, running)
        searches.add(search)  # from now on it has its place
        running.add_done_callback(lambda _: searches.settle(search, exchange.node.now_ms()))
        await _settled(search, wait_ms)
        if search.completed_ms is None or keeps:
            return _shown(search, is_kept=True)
        searches.remove(search)
        if search.error is not None:
            raise search.error
        return _shown(search, is_kept=False)

    async def get(exchange: Exchange) -> Any:
        wait_ms = _time_ms(exchange, "wait_for_completion_timeout", 0, _WAIT_MS_MAX)
        elsewhere = await _asked_owner(shared.visible_to(exchange), exchange, "", wait_ms)
        if elsewhere is not None:
            return elsewhere
        search = searches.find(exchange["id"], exchange.principal, exchange.node.now_ms())
        if "keep_alive" in exchange.parameters:
            keep_ms = _time_ms(exchange, "keep_alive", _KEEP_MS, _KEEP_MS_MAX)
            search.expires_ms = max(search.expires_ms, exchange.node.now_ms() + keep_ms)
        await _settled(search, wait_ms)
        return _shown(search, is_kept=True)

    async def status(exchange: Exchange) -> Any:
        elsewhere = await _asked_owner(shared.visible_to(exchange), exchange, "/status", 0)
        if elsewhere is not None:
            return elsewhere
        search = searches.find(exchange["id"], exchange.principal, exchange.node.now_ms())
        told = _times(search)
        told["_shards"] = orjson.loads(search.answer)["_shards"] if search.answer else _NO_SHARDS
        if search.completed_ms is not None:
            told["completion_status"] = 200 if search.error is None else search.error.status
        return {"id": search.id, **told}

    async def delete(exchange: Exchange) -> Any:
        elsewhere = await _asked_owner(shared.visible_to(exchange), exchange, "", 0)
        if elsewhere is not None:
            return elsewhere
        searches.remove(searches.find(exchange["id"], exchange.principal, exchange.node.now_ms()))
        return {"acknowledged": True}

    wait = "keep_alive typed_keys wait_for_completion_timeout"
    return [
        *endpoint("POST", ["/_async_search", "/{index}/_async_search"], submit, _SUBMIT, Body.JSON),
        *endpoint("GET", "/_async_search/{id}", get, wait),
        *endpoint("GET", "/_async_search/status/{id}", status, "keep_alive"),
        *endpoint("DELETE", "/_async_search/{id}", delete),
    ]


_NO_SHARDS = {"total": 0, "successful": 0, "skipped": 0, "failed": 0}
_NOTHING_YET = {
    "took": 0,
    "timed_out": False,
    "_shards": _NO_SHARDS,
    "hits": {"total": {"value": 0, "relation": "gte"}, "max_score": None, "hits": []},
}


async def _settled(search: _Search, limit_ms: int) -> None:
    """Wait until it has ended, or for so long."""
    if search.completed_ms is None:
        await asyncio.wait([search.running], timeout=limit_ms / 1000)
        await asyncio.sleep(0)  # its callback comes before this


def _shown(search: _Search, *, is_kept: bool) -> Answer:
    told = ({"id": search.id} if is_kept else {}) | _times(search)
    if search.error is not None:
        return Answer({**told, "error": error_json(search.error)}, search.error.status)
    return Answer({**told, "response": orjson.Fragment(search.answer) if search.answer else _NOTHING_YET})


def _times(search: _Search) -> dict[str, Any]:
    is_running = search.completed_ms is None
    told: dict[str, Any] = {
        "is_partial": is_running or search.error is not None,
        "is_running": is_running,
        "start_time_in_millis": search.task.started_ms,
        "expiration_time_in_millis": search.expires_ms,
    }
    return told if is_running else {**told, "completion_time_in_millis": search.completed_ms}


def _time_ms(exchange: Exchange, name: str, default: int, most: int) -> int:
    given = exchange.parameters.time_ms(name, default)
    if not 0 <= given <= most:
        raise illegal_argument(f"[{name}] must be between 0 and [{most}] milliseconds, found [{given}]")
    return given


async def _asked_owner(runner: SearchRunner, exchange: Exchange, under: str, wait_ms: int) -> Answer | None:
    """What the node answers that has the search; None where that is this one, or none at all."""
    search_id, principal = exchange["id"], exchange.principal
    owner = owner_of(runner, search_id)
    if owner is None:
        return None
    names = ("keep_alive", "wait_for_completion_timeout")
    query = {name: text for name in names if (text := exchange.parameters.text(name)) is not None}
    path, limit_s = f"/_async_search{under}/{search_id}", runner.peer_limit_s + wait_ms / 1000
    try:
        status, value = await ask_peer(
            runner.node, owner.number, exchange.method, path, query, None, limit_s, principal
        )
    except UnavailableError as error:
        reason = f"{search_id[:200]}: it is of node [{owner.name}], which does not answer"
        raise SearchError("resource_not_found_exception", reason, 404) from error
    return Answer(value, status)
