"""Where the shards of indexes are: their copies, why one has no place, and requests to place them otherwise.

Every node of a cluster has all shards of all indexes, for each follows the whole log. An index is shown with
as many copies of each shard as its settings ask for: the primary and then the replicas, on one node each, in
the order of the nodes. A replica without a node is unassigned.

Where shards are searched on a Ray cluster, those copies are shown, each on its Ray node.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, index_not_found
from graphdb.search.sharded.rerouting import NotAllowed, Reroute
from serve.search.administration.machine import disk_use
from serve.search.backend import SearchBackend, ShardPlace, ShardSearch
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import COMPATIBLE_VERSION, INDEX_VERSION, Identity, NodeName

__all__ = [
    "REROUTE_PARAMETERS",
    "UNASSIGNED_REASON",
    "ShardCopy",
    "allocation_id",
    "copies_of",
    "node_json",
    "notice_losses",
    "reroute",
    "routes",
    "routing_table",
    "transport_address",
]

UNASSIGNED_REASON = "INDEX_CREATED"  # a replica without a node has never had one
_LOOK_S = 1.0  # for the processes of shards to answer


@dataclass(frozen=True, slots=True)
class ShardCopy:
    """node: where it is, None: nowhere. state: STARTED, INITIALIZING or UNASSIGNED; reason: why it is so."""

    index: Index
    number: int
    is_primary: bool
    node: NodeName | ShardPlace | None
    state: str
    reason: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether it can be searched."""
        return self.state == "STARTED"

    def routing(self) -> dict[str, Any]:
        """As the cluster's state shows it."""
        shown: dict[str, Any] = {
            "state": self.state,
            "primary": self.is_primary,
            "node": None if self.node is None else self.node.id,
            "relocating_node": None,
            "shard": self.number,
            "index": self.index.name,
        }
        if self.node is None:
            return {
                **shown,
                "recovery_source": {"type": "PEER"},
                "unassigned_info": unassigned_info(self.index),
            }
        return {**shown, "allocation_id": {"id": allocation_id(self.index, self.number, self.node)}}


def allocation_id(index: Index, shard: int, node: NodeName | ShardPlace) -> str:
    """Of the copy of a shard on a node."""
    return f"{index.uuid}-{shard}-{node.number if isinstance(node, NodeName) else node.id}"


def unassigned_info(index: Index) -> dict[str, Any]:
    since = datetime.fromtimestamp(index.created_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        "reason": UNASSIGNED_REASON,
        "at": since.replace("+00:00", "Z"),
        "delayed": False,
        "allocation_status": "no_attempt",
    }


async def notice_losses(node: SearchBackend) -> None:
    """Have copies shown as they are now, where processes elsewhere have them."""
    if node.shards is not None:
        await asyncio.to_thread(node.shards.look, _LOOK_S)


def copies_of(index: Index, nodes: Sequence[NodeName], elsewhere: ShardSearch | None) -> Iterator[ShardCopy]:
    """Shard by shard, the primary first. nodes: that can be reached. elsewhere: who searches the shards, if
    not these.
    """
    if elsewhere is not None:
        for one in elsewhere.copies(index):
            yield ShardCopy(index, one.number, one.is_primary, one.node, one.state, one.reason)
        return
    for number in range(len(index.shards)):
        for copy in range(1 + index.number("number_of_replicas")):
            node = nodes[copy] if copy < len(nodes) else None
            yield ShardCopy(index, number, copy == 0, node, "UNASSIGNED" if node is None else "STARTED")


def routing_table(
    indexes: Iterable[Index], nodes: Sequence[NodeName], elsewhere: ShardSearch | None
) -> dict[str, Any]:
    """`routing_table` and `routing_nodes` of the cluster's state."""
    having = nodes if elsewhere is None else elsewhere.nodes()
    by_node: dict[str, list[dict[str, Any]]] = {node.id: [] for node in having}
    unassigned: list[dict[str, Any]] = []
    table: dict[str, Any] = {}
    for index in indexes:
        shards: dict[str, list[dict[str, Any]]] = {}
        for copy in copies_of(index, nodes, elsewhere):
            shown = copy.routing()
            shards.setdefault(str(copy.number), []).append(shown)
            (unassigned if copy.node is None else by_node.setdefault(copy.node.id, [])).append(shown)
        table[index.name] = {"shards": shards}
    return {
        "routing_table": {"indices": table},
        "routing_nodes": {"unassigned": unassigned, "nodes": by_node},
    }


# `_cluster/allocation/explain`, `_cluster/reroute`.

_EXPLAIN = "include_disk_info include_yes_decisions master_timeout index shard primary current_node"
REROUTE_PARAMETERS = "dry_run explain master_timeout metric retry_failed timeout"
_FIELDS: Mapping[str, Mapping[str, type]] = {
    "move": {"index": str, "shard": int, "from_node": str, "to_node": str},
    "allocate_replica": {"index": str, "shard": int, "node": str},
    "cancel": {"index": str, "shard": int, "node": str, "allow_primary": bool},
}
_ALL_EVERYWHERE = "every node has all shards of all indexes"
_COMMANDS = ("move", "cancel", "allocate_replica", "allocate_stale_primary", "allocate_empty_primary")


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def explain(exchange: Exchange) -> dict[str, Any]:
        copy = await _copy_asked(exchange, identity)
        if exchange.node.shards is not None:
            return _explained(copy, list(exchange.node.shards.nodes()))
        shown = _explained(copy, identity.members(exchange.node.status()))
        if exchange.parameters.boolean("include_disk_info", False):
            here = identity.here(exchange.node.status())
            shown["cluster_info"] = _cluster_info(exchange.node.catalog.indexes(), here, settings)
        return shown

    return [
        *endpoint("GET POST", "/_cluster/allocation/explain", explain, _EXPLAIN, Body.JSON),
    ]


async def _copy_asked(exchange: Exchange, identity: Identity) -> ShardCopy:
    """The copy of a shard that is to be explained; the first without a node if the request names none."""
    body = dict(await exchange.json() or {})
    unknown = sorted(body.keys() - {"index", "shard", "primary", "current_node"})
    if unknown:
        reason = f"[cluster/allocation/explain] unknown field [{unknown[0][:100]}]"
        raise SearchError("x_content_parse_exception", reason)
    parameters = exchange.parameters
    index = body.get("index", parameters.text("index"))
    shard = body.get("shard", parameters.integer("shard", None))
    primary = body.get("primary", parameters.boolean("primary", False) if "primary" in parameters else None)
    nodes = [one for one in identity.members(exchange.node.status()) if one.reachable]
    if index is None and shard is None and primary is None:
        all_copies = (
            copy
            for one in exchange.node.catalog.indexes()
            for copy in copies_of(one, nodes, exchange.node.shards)
        )
        found = next((copy for copy in all_copies if copy.node is None), None)
        if found is None:
            raise illegal_argument(
                "No shard was specified in the request which means the response should explain a "
                "randomly-chosen unassigned shard, but there are no unassigned shards in this cluster. To "
                "explain the allocation of an assigned shard you must specify the target shard in the "
                "request."
            )
        return found
    return _named_copy(exchange, nodes, index, shard, primary)


def _named_copy(
    exchange: Exchange, nodes: Sequence[NodeName], name: Any, shard: Any, primary: Any
) -> ShardCopy:
    given = {"index": (name, str), "shard": (shard, int), "primary": (primary, bool)}
    missing = [one for one, (value, kind) in given.items() if not isinstance(value, kind)]
    if missing:
        problems = "".join(f"{number}: {one} must be specified;" for number, one in enumerate(missing, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed: {problems}")
    index = exchange.node.catalog.find(name)
    if index is None:
        raise index_not_found(name)
    copies = [copy for copy in copies_of(index, nodes, exchange.node.shards) if copy.number == shard]
    if not copies:
        raise SearchError("shard_not_found_exception", "no such shard", 404, {"index": name})
    wanted = [copy for copy in copies if copy.is_primary == primary]
    if not wanted:
        raise illegal_argument(f"No shard was found for [{name}][{shard}] with primary [false]")
    return next((copy for copy in wanted if copy.node is None), wanted[0])


def _explained(copy: ShardCopy, members: Sequence[NodeName | ShardPlace]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "index": copy.index.name,
        "shard": copy.number,
        "primary": copy.is_primary,
        "current_state": copy.state.lower(),
    }
    if copy.node is not None:
        node = {
            "id": copy.node.id,
            "name": copy.node.name,
            "transport_address": transport_address(copy.node),
            "attributes": {},
            "roles": _roles(copy.node),
            "weight_ranking": 1,
        }
        return {
            **shown,
            "current_node": node,
            "can_remain_on_current_node": "yes",
            "can_rebalance_cluster": "yes",
            "can_rebalance_to_other_node": "no",
            "rebalance_explanation": "every node has all shards: there is nothing to be moved"
            if isinstance(copy.node, NodeName)
            else "copies are moved by themselves, so that all Ray nodes have as many",
        }
    info = unassigned_info(copy.index)
    return {
        **shown,
        "unassigned_info": {
            "reason": info["reason"],
            "at": info["at"],
            "last_allocation_status": info["allocation_status"],
        },
        "can_allocate": "no",
        "allocate_explanation": copy.reason
        or "there are not as many nodes as copies of the shard are asked for: add nodes "
        "to the cluster, or set [index.number_of_replicas] to less",
        "node_allocation_decisions": [_refusal(copy, node) for node in members],
    }


def _cluster_info(indexes: Iterable[Index], here: NodeName, settings: Settings) -> dict[str, Any]:
    """The disk of this node, as it does not know those of others, and how large shards are on it."""
    disk = disk_use(settings.server.data_dir)
    room = {
        "path": settings.server.data_dir.name,
        "total_bytes": disk.total,
        "used_bytes": disk.total - disk.free,
        "free_bytes": disk.free,
        "free_disk_percent": round(100 * disk.free / disk.total, 1),
        "used_disk_percent": round(100 * (disk.total - disk.free) / disk.total, 1),
    }
    return {
        "nodes": {here.id: {"node_name": here.name, "least_available": room, "most_available": room}},
        "shard_sizes": {
            f"[{index.name}][{shard.number}][p]_bytes": shard.stats().size_bytes
            for index in indexes
            for shard in index.shards
        },
    }


def transport_address(node: NodeName | ShardPlace) -> str:
    """Of a Ray node its host alone."""
    return node.transport_address if isinstance(node, NodeName) else node.host


def node_json(node: NodeName | ShardPlace) -> dict[str, Any]:
    """A node that has copies of shards, without its id, as Elasticsearch shows all that it knows of one."""
    return {
        "name": node.name,
        "ephemeral_id": node.id,
        "transport_address": transport_address(node),
        "external_id": node.name,
        "attributes": {},
        "roles": _roles(node),
        "version": COMPATIBLE_VERSION,
        "min_index_version": INDEX_VERSION,
        "max_index_version": INDEX_VERSION,
    }


def _roles(node: NodeName | ShardPlace) -> list[str]:
    return node.roles if isinstance(node, NodeName) else ["data"]


def _refusal(copy: ShardCopy, node: NodeName | ShardPlace) -> dict[str, Any]:
    if not isinstance(node, NodeName):
        decider, explanation = "shard_processes", copy.reason or "its processes are being started"
    elif node.reachable:
        decider = "same_shard"
        explanation = (
            f"a copy of this shard is already allocated to this node [[{copy.index.name}][{copy.number}], "
            f"node[{node.id}], s[STARTED]]"
        )
    else:
        decider, explanation = "node_reachable", "the node does not answer"
    return {
        "node_id": node.id,
        "node_name": node.name,
        "transport_address": transport_address(node),
        "node_attributes": {},
        "roles": _roles(node),
        "node_decision": "no",
        "deciders": [{"decider": decider, "decision": "NO", "explanation": explanation}],
    }


async def reroute(exchange: Exchange) -> dict[str, Any]:
    """Without commands there is nothing to do, and that succeeds. Where the database nodes have all shards,
    nothing can be moved.
    """
    body = await exchange.json() or {}
    unknown = sorted(body.keys() - {"commands", "dry_run"})
    if unknown:
        reason = f"[cluster_reroute] unknown field [{unknown[0][:100]}]"
        raise SearchError("x_content_parse_exception", reason)
    commands = body.get("commands") or []
    if not isinstance(commands, list) or not all(isinstance(one, Mapping) for one in commands):
        raise SearchError("x_content_parse_exception", "[cluster_reroute] failed to parse field [commands]")
    named = [(name, given) for command in commands for name, given in command.items()]
    parameters = exchange.parameters
    explains, is_trial = parameters.boolean("explain", False), parameters.boolean("dry_run", False)
    is_trial = is_trial or body.get("dry_run") is True
    explanations: list[dict[str, Any]] = []
    for name, given in named:
        if name not in _COMMANDS:
            raise SearchError("parsing_exception", f"Unknown allocation command [{name[:100]}]")
        if exchange.node.shards is None:
            if not explains:
                raise illegal_argument(f"[{name}] is not possible: {_ALL_EVERYWHERE}")
            explanations.append(_refused(name, given))
    if exchange.node.shards is not None and named:
        parsed = [_command(name, given, exchange.node.shards) for name, given in named]
        results = exchange.node.shards.reroute(parsed, is_trial=is_trial, goes_on=explains)
        for command, error in zip(parsed, results, strict=True):
            if error is not None and not explains:
                raise illegal_argument(f"[{command.kind}] {command.name} is not possible: {error}")
            explanations.append(_command_explained(command, error))
    answer: dict[str, Any] = {"acknowledged": True}
    return {**answer, "explanations": explanations} if explains else answer


def _refused(name: str, given: Any) -> dict[str, Any]:
    """The explanation of a command where nothing can be moved. Errors: x_content_parse_exception."""
    if not isinstance(given, Mapping):
        raise SearchError("x_content_parse_exception", f"[{name}] expects an object")
    decision = {
        "decider": f"{name}_allocation_command",
        "decision": "NO",
        "explanation": _ALL_EVERYWHERE,
    }
    parameters = {"allow_primary": False, **given} if name == "cancel" else dict(given)
    return {"command": name, "parameters": parameters, "decisions": [decision]}


def _command(name: str, given: Any, shards: ShardSearch) -> Reroute:
    """Errors: illegal_argument_exception, x_content_parse_exception."""
    if name not in _FIELDS:
        raise illegal_argument(
            f"[{name}] is not possible: the documents are on the database node, and a primary that is lost "
            "is made of them by itself"
        )
    fields = _FIELDS[name]
    if not isinstance(given, Mapping):
        raise SearchError("x_content_parse_exception", f"[{name}] expects an object")
    unknown = sorted(given.keys() - fields.keys())
    if unknown:
        raise SearchError("x_content_parse_exception", f"[{name}] unknown field [{unknown[0][:100]}]")
    for field, kind in fields.items():
        value = given.get(field, False if kind is bool else None)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise SearchError("x_content_parse_exception", f"[{name}] missing or wrong: [{field}]")
    ids = {known: node.id for node in shards.nodes() for known in (node.id, node.name)}
    named = [given[field] for field in fields if "node" in field]
    for node in named:
        if node not in ids:
            raise illegal_argument(f"failed to resolve [{node[:100]}], no matching nodes")
    target = ids[named[1]] if len(named) > 1 else ""
    allowed = given.get("allow_primary", False)
    return Reroute(name, given["index"], given["shard"], ids[named[0]], target, allowed)


def _command_explained(command: Reroute, error: NotAllowed | None) -> dict[str, Any]:
    nodes = (
        {"from_node": command.node, "to_node": command.target} if command.target else {"node": command.node}
    )
    more = {"allow_primary": command.allow_primary} if command.kind == "cancel" else {}
    decision = {
        "decider": f"{command.kind}_allocation_command",
        "decision": "YES" if error is None else "NO",
        "explanation": "no other copy of the shard is there" if error is None else str(error),
    }
    return {
        "command": command.kind,
        "parameters": {"index": command.index, "shard": command.shard, **nodes, **more},
        "decisions": [decision],
    }
