"""`_cat`: listings for people at a terminal, and for programs with `format=json`."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.state import Index
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration import cat_indices, cat_nodes, thread_pools
from serve.search.administration.allocation import notice_losses
from serve.search.administration.cat_table import (
    CatView,
    Column,
    Listing,
    Row,
    TableOptions,
    Time,
    make_table,
    render_help,
)
from serve.search.administration.indices import chosen_indexes
from serve.search.administration.shown_snapshots import listed_snapshots
from serve.search.administration.tasks import LISTING, tasks_here
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Endpoint, Exchange, Handler, accepted, endpoint
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters
from serve.search.frame.tasks import Task

__all__ = ["routes"]

# `_cat` listings of templates.


def _template_listings() -> list[Listing]:
    return [
        Listing("templates", _TEMPLATES, _templates, "name"),
        Listing("component_templates", _COMPONENTS, _components, "name"),
    ]


_TEMPLATES = (
    Column("name", ("n",), "template name"),
    Column("index_patterns", ("t",), "template index patterns"),
    Column("order", ("o", "p"), "template application order/priority number"),
    Column("version", ("v",), "version"),
    Column("composed_of", ("c",), "component templates comprising index template"),
)
_COMPONENTS = (
    Column("name", ("n",), "component template name"),
    Column("version", ("v",), "component template version"),
    Column("alias_count", ("a",), "number of aliases in template", right=True),
    Column("mapping_count", ("m",), "number of mappings in template", right=True),
    Column("settings_count", ("s",), "number of settings in template", right=True),
    Column("metadata_count", ("me",), "number of metadata in template", right=True),
    Column("included_in", ("i",), "included in"),
)


def _templates(view: CatView) -> Iterator[Row]:
    """Those of the old kind have an order in the place of a priority, and no components."""
    catalog = view.node.catalog
    for name, template in _named({**catalog.legacy_templates, **catalog.templates}, view.names):
        components = template.get("composed_of")
        yield {
            "name": name,
            "index_patterns": f"[{', '.join(template['index_patterns'])}]",
            "order": template.get("priority", template.get("order", 0)),
            "version": template.get("version"),
            "composed_of": "" if components is None else f"[{', '.join(components)}]",
        }


def _components(view: CatView) -> Iterator[Row]:
    templates = view.node.catalog.templates
    for name, component in _named(view.node.catalog.components, view.names):
        contents = component["template"]
        users = [user for user, template in templates.items() if name in template.get("composed_of", [])]
        yield {
            "name": name,
            "version": component.get("version"),
            "alias_count": len(contents.get("aliases", {})),
            "mapping_count": len(contents.get("mappings", {}).get("properties", {})),
            "settings_count": len(contents.get("settings", {}).get("index", {})),
            "metadata_count": len(component.get("_meta", {})),
            "included_in": f"[{', '.join(sorted(users))}]",
        }


def _named(templates: Mapping[str, Any], pattern: str | None) -> list[tuple[str, Any]]:
    return [(name, one) for name, one in sorted(templates.items()) if wildcard_match(pattern or "*", name)]


# `_cat/snapshots`.

_SNAPSHOTS = (
    Column("id", ("snapshot",), "unique snapshot"),
    Column("repository", ("re", "repo"), "repository name"),
    Column("status", ("s",), "snapshot name"),
    Column("start_epoch", ("ste", "startEpoch"), "start time in seconds since 1970-01-01 00:00:00"),
    Column("start_time", ("sti", "startTime"), "start time in HH:MM:SS"),
    Column("end_epoch", ("ete", "endEpoch"), "end time in seconds since 1970-01-01 00:00:00"),
    Column("end_time", ("eti", "endTime"), "end time in HH:MM:SS"),
    Column("duration", ("dur",), "duration"),
    Column("indices", ("i",), "number of indices", right=True),
    Column("successful_shards", ("ss",), "number of successful shards", right=True),
    Column("failed_shards", ("fs",), "number of failed shards", right=True),
    Column("total_shards", ("ts",), "number of total shards", right=True),
    Column("reason", ("r",), "reason for failures", on=False),
)


def _snapshots(view: CatView) -> Iterator[Row]:
    for one in view.snapshots:
        started, ended = one["start_time_in_millis"], one.get("end_time_in_millis")
        shards = one["shards"]
        yield {
            "id": one["snapshot"],
            "repository": one["repository"],
            "status": one["state"],
            "start_epoch": started // 1000,
            "start_time": _clock(started),
            "end_epoch": None if ended is None else ended // 1000,
            "end_time": None if ended is None else _clock(ended),
            "duration": None if ended is None else Time(ended - started),
            "indices": len(one["indices"]),
            "successful_shards": shards["successful"],
            "failed_shards": shards["failed"],
            "total_shards": shards["total"],
            "reason": None,
        }


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S")


# `_cat`: listings for people at a terminal, and for programs with `format=json`.

# Parameters of every listing.
_PARAMETERS = "bytes h help local master_timeout s time v"
_CAT = "=^.^="
_OF_COPIES = ("allocation", "health", "indices", "shards")
_YAML = "application/yaml"


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity, data_dir = Identity(node, settings), settings.server.data_dir
    listings = [
        *cat_indices.listings(data_dir),
        *cat_nodes.listings(data_dir),
        *_template_listings(),
        Listing("snapshots", _SNAPSHOTS, _snapshots, "repository", parameters="ignore_unavailable"),
        thread_pools.LISTING,
    ]
    found: list[Endpoint] = []
    for listing in listings:
        paths = [f"/_cat/{listing.name}"]
        if listing.by is not None:
            paths.append(f"{paths[0]}/{{{listing.by}}}")
        parameters = f"{_PARAMETERS} {listing.parameters}"
        found += endpoint("GET", paths, _handler(listing, identity), parameters)
    names = "".join(f"{place.path}\n" for place in sorted(found, key=lambda one: one.path))

    async def overview(_exchange: Exchange) -> str:
        return f"{_CAT}\n{names}"

    return [*found, *endpoint("GET", "/_cat", overview, _PARAMETERS)]


def _handler(listing: Listing, identity: Identity) -> Handler:
    async def answer(exchange: Exchange) -> Answer:
        parameters = exchange.parameters
        if parameters.boolean("help", False):
            return Answer(render_help(listing.columns))
        options = TableOptions(
            parameters.text("h"), parameters.text("s"), parameters.text("bytes"), parameters.text("time")
        )
        names = None if listing.by is None else exchange.get(listing.by)
        tasks = _tasks(exchange, identity) if listing.name == "tasks" else ()
        found = await listed_snapshots(exchange, names) if listing.name == "snapshots" else ()
        indexes, pools = _indexes(exchange, listing), exchange.pools()
        view = CatView(exchange.node, identity, indexes, names, parameters, tasks, pools, found)
        columns = _columns(listing, parameters)
        if listing.name in _OF_COPIES:
            await notice_losses(exchange.node)
        table = await asyncio.to_thread(lambda: make_table(columns, listing.rows(view), options))
        form = _form(exchange)
        if form == "json":
            return Answer(table.records())
        if form == "yaml":
            return Answer(table.yaml(), headers={"content-type": _YAML})
        return Answer(table.text(parameters.boolean("v", False)))

    return answer


def _columns(listing: Listing, parameters: Parameters) -> Sequence[Column]:
    """Without the time where the request does not want it; tasks with what they do where it does."""
    if "ts" in listing.parameters.split() and not parameters.boolean("ts", True):
        return [column for column in listing.columns if column.name not in ("epoch", "timestamp")]
    if "detailed" in parameters and listing.name == "tasks" and parameters.boolean("detailed", False):
        return [replace(one, on=True) if one.name == "description" else one for one in listing.columns]
    return listing.columns


def _indexes(exchange: Exchange, listing: Listing) -> Sequence[Index]:
    if listing.by != "index":
        return exchange.node.catalog.indexes()
    states = "open,closed" if listing.name == "indices" else "all"
    return chosen_indexes(exchange, states=states, closed=listing.name != "segments")


def _tasks(exchange: Exchange, identity: Identity) -> Sequence[Task]:
    """This request is one of them."""
    with exchange.tasks.shown(exchange.begin_task(LISTING, "", is_cancellable=False)):
        return tasks_here(exchange, identity.node_id)


def _form(exchange: Exchange) -> str:
    """text, json or yaml: as the parameter says, then as the Accept header does."""
    wanted = (exchange.parameters.text("format") or "").lower()
    if not wanted:
        header = accepted(exchange.request.headers.get("accept", ""))
        wanted = "" if header is None else header.name.rpartition("/")[2]
    return wanted if wanted in ("json", "yaml") else "text"
