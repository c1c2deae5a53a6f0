"""`_search_shards`: where a search would run."""

from collections.abc import Sequence
from typing import Any

from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_names import NAME_PARAMETERS, names_found
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

_PARAMETERS = f"{NAME_PARAMETERS} preference routing local master_timeout"


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search_shards(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        here = runner.identity.here(runner.node.status())
        found = names_found(runner.node, exchange.get("index"), exchange.parameters)
        indices = {one.index.name: _filtered(one.filters) for one in found}
        shards = [
            [
                {
                    "state": "STARTED",
                    "primary": True,
                    "node": here.id,
                    "relocating_node": None,
                    "shard": 0,
                    "index": one.index.name,
                    "allocation_id": {"id": one.index.uuid},
                }
            ]
            for one in found
        ]
        node = {
            "name": here.name,
            "ephemeral_id": here.id,
            "transport_address": here.transport_address,
            "attributes": {},
        }
        return {"nodes": {here.id: node}, "indices": indices, "shards": shards}

    return endpoint(
        "GET POST", ["/_search_shards", "/{index}/_search_shards"], search_shards, _PARAMETERS, Body.JSON
    )


def _filtered(filters: Sequence[Any]) -> dict[str, Any]:
    if not filters:
        return {}
    return {"filter": filters[0] if len(filters) == 1 else {"bool": {"should": list(filters)}}}
