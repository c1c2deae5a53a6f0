"""Sets of synonyms, and `_reload_search_analyzers`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import DeleteSynonyms, PutSynonyms
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.synonym_sets import analyzers_with, check_rule, set_named, users_of
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.administration.index_stats import Placement, shards_json
from serve.search.administration.indices import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity

__all__ = ["routes"]

_PAGE = 10  # sets or rules of one answer, unless the request says how many
_ONE, _RULE = "/_synonyms/{id}", "/_synonyms/{id}/{rule}"


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    """How sets are changed, and shown; what says who has reloaded their analyzers."""
    reload = _Reload(Identity(node, settings))
    return [
        *endpoint("GET", "/_synonyms", _sets, "from size"),
        *endpoint("GET", _ONE, _set, "from size"),
        *endpoint("PUT", _ONE, reload.put, "refresh", Body.JSON),
        *endpoint("DELETE", _ONE, _delete),
        *endpoint("GET", _RULE, _rule),
        *endpoint("PUT", _RULE, reload.put_rule, "refresh", Body.JSON),
        *endpoint("DELETE", _RULE, reload.delete_rule, "refresh"),
        *endpoint("GET POST", "/{index}/_reload_search_analyzers", reload.reload, CHOICE + " resource"),
    ]


async def _sets(exchange: Exchange) -> dict[str, Any]:
    every = sorted(exchange.node.catalog.synonyms.items())
    shown = [{"synonyms_set": name, "count": len(rules)} for name, rules in every]
    return {"count": len(shown), "results": _page(exchange, shown)}


async def _set(exchange: Exchange) -> dict[str, Any]:
    rules = set_named(exchange.node.catalog.state, exchange["id"])
    return {"count": len(rules), "synonyms_set": _page(exchange, list(rules))}


def _page(exchange: Exchange, rows: list[Any]) -> list[Any]:
    start, size = exchange.parameters.integer("from", 0), exchange.parameters.integer("size", _PAGE)
    if start < 0 or size < 0:
        raise illegal_argument("[from] and [size] must not be negative")
    return rows[start : start + size]


async def _rule(exchange: Exchange) -> Mapping[str, str]:
    name, key = exchange["id"], exchange["rule"]
    for rule in set_named(exchange.node.catalog.state, name):
        if rule["id"] == key:
            return rule
    reason = f"synonym rule [{key[:200]}] not found on synonyms set [{name[:200]}]"
    raise SearchError("resource_not_found_exception", reason, 404)


async def _delete(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(DeleteSynonyms(exchange["id"]))
    return {"acknowledged": True}


def _check_members(body: Mapping[str, Any], wanted: str) -> None:
    for name in body:
        if name != wanted:
            raise illegal_argument(f"[{wanted}] unknown field [{name[:100]}]")
    if wanted not in body:
        raise illegal_argument(f"Required [{wanted}]")


def _read(rule: Any) -> dict[str, str]:
    """With an id, made here where it has none."""
    if not isinstance(rule, dict) or rule.keys() - {"id", "synonyms"}:
        raise illegal_argument("[synonyms_set] expects objects with [id] and [synonyms]")
    key, text = rule.get("id") or uuid4().hex, rule.get("synonyms")
    if not isinstance(key, str):
        raise illegal_argument("[id] of a synonym rule must be a string")
    if (reason := check_rule(text)) is not None:
        raise SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")
    return {"id": key, "synonyms": str(text)}


@dataclass(frozen=True, slots=True)
class _Reload:
    """The requests that say which analyzers have followed a set. They do so at once, on every node."""

    identity: Identity

    async def put(self, exchange: Exchange) -> Answer:
        body = await exchange.json() or {}
        _check_members(body, "synonyms_set")
        given = body["synonyms_set"]
        rules = [_read(one) for one in (given if isinstance(given, list) else [given])]
        result = await exchange.node.perform(PutSynonyms(exchange["id"], rules))
        return Answer(self._changed(exchange, result), 201 if result == "created" else 200)

    async def put_rule(self, exchange: Exchange) -> dict[str, Any]:
        body = await exchange.json() or {}
        _check_members(body, "synonyms")
        rule = _read({**body, "id": exchange["rule"]})
        command = PutSynonyms(exchange["id"], [rule], only=True)
        return self._changed(exchange, await exchange.node.perform(command))

    async def delete_rule(self, exchange: Exchange) -> dict[str, Any]:
        command = DeleteSynonyms(exchange["id"], exchange["rule"])
        return self._changed(exchange, await exchange.node.perform(command))

    async def reload(self, exchange: Exchange) -> dict[str, Any]:
        """They are as their sets are already."""
        return self._details(exchange, chosen_indexes(exchange, closed=False), None)

    def _changed(self, exchange: Exchange, result: Any) -> dict[str, Any]:
        name = exchange["id"]
        users = users_of(exchange.node.catalog.state, name)
        return {"result": result, "reload_analyzers_details": self._details(exchange, users, name)}

    def _details(self, exchange: Exchange, indexes: Sequence[Index], name: str | None) -> dict[str, Any]:
        """name: of the set that is meant, None: any."""
        node = self.identity.here(exchange.node.status()).id
        details = [
            {
                "index": index.name,
                "reloaded_analyzers": analyzers_with(index, name),
                "reloaded_node_ids": [node],
            }
            for index in indexes
        ]
        return {"_shards": shards_json(indexes, Placement.of(exchange.node)), "reload_details": details}
