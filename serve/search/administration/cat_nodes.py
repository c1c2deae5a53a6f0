"""`_cat` listings of the cluster and its nodes; those of missing features have columns and no rows."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from serve.search.administration.cat_table import CatView, Column, Listing, Row, Size, Time
from serve.search.administration.cluster import health_json
from serve.search.administration.machine import disk_use, host_load, process_load
from serve.search.frame.identity import COMPATIBLE_VERSION

__all__ = ["listings"]


def listings(data_dir: Path) -> list[Listing]:
    """data_dir: of the node, whose disk is shown."""
    tasks = "nodes actions detailed parent_task_id timeout wait_for_completion"
    return [
        Listing("health", _HEALTH, _health, parameters="ts"),
        Listing(
            "nodes",
            _NODES,
            lambda view: _nodes(view, data_dir),
            parameters="full_id include_unloaded_segments",
        ),
        Listing("master", _MASTER, _master),
        Listing("plugins", _PLUGINS, _none, parameters="include_bootstrap"),
        Listing("pending_tasks", _PENDING, _none),
        Listing("tasks", _TASKS, _tasks, parameters=tasks),
        Listing("nodeattrs", _ATTRIBUTES, _none),
        Listing("repositories", _REPOSITORIES, _repositories),
    ]


def _repositories(view: CatView) -> Iterator[Row]:
    for name, repository in sorted(view.node.catalog.state.repositories.items()):
        yield {"id": name, "type": repository["type"]}


def _none(_view: CatView) -> Iterator[Row]:
    """There is nothing of the kind here."""
    yield from ()


_HEALTH = (
    Column("epoch", ("t", "time"), "seconds since 1970-01-01 00:00:00"),
    Column("timestamp", ("ts", "hms", "hhmmss"), "time in HH:MM:SS"),
    Column("cluster", ("cl",), "cluster name"),
    Column("status", ("st",), "health status"),
    Column("node.total", ("nt", "nodeTotal"), "total number of nodes", right=True),
    Column("node.data", ("nd", "nodeData"), "number of nodes that can store data", right=True),
    Column("shards", ("t", "sh", "shards.total", "shardsTotal"), "total number of shards", right=True),
    Column("pri", ("p", "shards.primary", "shardsPrimary"), "number of primary shards", right=True),
    Column("relo", ("r", "shards.relocating", "shardsRelocating"), "number of relocating nodes", right=True),
    Column("init", ("i", "shards.initializing", "shardsInitializing"), "initializing nodes", right=True),
    Column("unassign", ("u", "shards.unassigned", "shardsUnassigned"), "unassigned shards", right=True),
    Column("unassign.pri", ("up", "shards.unassigned.primary"), "unassigned primary shards", right=True),
    Column("pending_tasks", ("pt", "pendingTasks"), "number of pending tasks", right=True),
    Column(
        "max_task_wait_time", ("mtwt", "maxTaskWaitTime"), "wait time of longest task pending", right=True
    ),
    Column("active_shards_percent", ("asp", "activeShardsPercent"), "active shards in percent", right=True),
)


def _health(view: CatView) -> Iterator[Row]:
    health = health_json(view.identity, view.status, view.placement, view.node.catalog.indexes())
    now = view.node.now_ms() // 1000
    yield {
        "epoch": now,
        "timestamp": datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S"),
        "cluster": health["cluster_name"],
        "status": health["status"],
        "node.total": health["number_of_nodes"],
        "node.data": health["number_of_data_nodes"],
        "shards": health["active_shards"],
        "pri": health["active_primary_shards"],
        "relo": 0,
        "init": 0,
        "unassign": health["unassigned_shards"],
        "unassign.pri": 0,
        "pending_tasks": 0,
        "max_task_wait_time": "-",
        "active_shards_percent": f"{health['active_shards_percent_as_number']:.1f}%",
    }


_NODES = (
    Column("id", ("id", "nodeId"), "unique node id", on=False),
    Column("pid", ("p",), "process id", on=False),
    Column("ip", ("i",), "ip address"),
    Column("port", ("po",), "bound transport port", on=False),
    Column("http_address", ("http",), "bound http address", on=False),
    Column("version", ("v",), "es version", on=False),
    Column("heap.current", ("hc", "heapCurrent"), "used memory of the process", on=False, right=True),
    Column("heap.percent", ("hp", "heapPercent"), "memory of the process, of all", right=True),
    Column("heap.max", ("hm", "heapMax"), "memory of the machine", on=False, right=True),
    Column("ram.current", ("rc", "ramCurrent"), "used machine memory", on=False, right=True),
    Column("ram.percent", ("rp", "ramPercent"), "used machine memory ratio", right=True),
    Column("ram.max", ("rm", "ramMax"), "total machine memory", on=False, right=True),
    Column("disk.total", ("dt", "diskTotal"), "total disk space", on=False, right=True),
    Column("disk.used", ("du", "diskUsed"), "used disk space", on=False, right=True),
    Column("disk.avail", ("d", "da", "disk", "diskAvail"), "available disk space", on=False, right=True),
    Column(
        "disk.used_percent", ("dup", "diskUsedPercent"), "used disk space percentage", on=False, right=True
    ),
    Column(
        "file_desc.current", ("fdc", "fileDescriptorCurrent"), "used file descriptors", on=False, right=True
    ),
    Column(
        "file_desc.percent",
        ("fdp", "fileDescriptorPercent"),
        "used file descriptor ratio",
        on=False,
        right=True,
    ),
    Column("file_desc.max", ("fdm", "fileDescriptorMax"), "max file descriptors", on=False, right=True),
    Column("cpu", (), "recent cpu usage", right=True),
    Column("load_1m", ("l",), "1m load avg", right=True),
    Column("load_5m", ("l",), "5m load avg", right=True),
    Column("load_15m", ("l",), "15m load avg", right=True),
    Column("uptime", ("u",), "node uptime", on=False, right=True),
    Column("node.role", ("r", "role", "nodeRole"), "m:master eligible node, d:data node, i:ingest node"),
    Column("master", ("m",), "*:current master"),
    Column("name", ("n",), "node name"),
)
_SHORT_ID = 4


def _nodes(view: CatView, data_dir: Path) -> Iterator[Row]:
    """Measurements are of this node only."""
    full = view.parameters.boolean("full_id", False)
    for node in view.identity.members(view.status):
        if not node.reachable:
            continue
        yield {
            "id": node.id if full else node.id[:_SHORT_ID],
            "ip": node.host,
            "port": node.transport_address.rpartition(":")[2],
            "http_address": node.http_address,
            "version": COMPATIBLE_VERSION,
            "node.role": "dim" if node.http_address is not None else "m",
            "master": "*" if node.leads else "-",
            "name": node.name,
            **(_measured(view, data_dir) if node.id == view.identity.node_id else {}),
        }


def _measured(view: CatView, data_dir: Path) -> Row:
    load, process, disk = host_load(), process_load(), disk_use(data_dir)
    return {
        "heap.current": Size(load.process_bytes),
        "heap.percent": load.process_percent,
        "heap.max": Size(load.memory_bytes),
        "ram.current": Size(load.memory_used),
        "ram.percent": load.memory_percent,
        "ram.max": Size(load.memory_bytes),
        "disk.total": Size(disk.total),
        "disk.used": Size(disk.used),
        "disk.avail": Size(disk.free),
        "disk.used_percent": f"{100 * disk.used / disk.total:.2f}",
        "pid": load.process_id,
        "file_desc.current": process.open_files,
        "file_desc.percent": round(100 * process.open_files / process.files_max),
        "file_desc.max": process.files_max,
        "cpu": load.cpu_percent,
        "load_1m": f"{load.load[0]:.2f}",
        "load_5m": f"{load.load[1]:.2f}",
        "load_15m": f"{load.load[2]:.2f}",
        "uptime": Time(view.status.uptime_seconds * 1000),
    }


_MASTER = (
    Column("id", (), "node id"),
    Column("host", ("h",), "host name"),
    Column("ip", (), "ip address"),
    Column("node", ("n",), "node name"),
)


def _master(view: CatView) -> Iterator[Row]:
    leader = next((node for node in view.identity.members(view.status) if node.leads), None)
    if leader is not None:
        yield {"id": leader.id, "host": leader.host, "ip": leader.host, "node": leader.name}


_PLUGINS = (
    Column("id", (), "unique node id", on=False),
    Column("name", ("n",), "node name"),
    Column("component", ("c",), "component"),
    Column("version", ("v",), "component version"),
    Column("description", ("d",), "plugin details", on=False),
)
_PENDING = (
    Column("insertOrder", ("o",), "task insertion order", right=True),
    Column("timeInQueue", ("t",), "how long task has been in queue", right=True),
    Column("priority", ("p",), "task priority"),
    Column("source", ("s",), "task source"),
)
_TASKS = (
    Column("id", (), "id of the task with the node", on=False),
    Column("action", ("ac",), "task action"),
    Column("task_id", ("ti",), "unique task id"),
    Column("parent_task_id", ("pti",), "parent task id"),
    Column("type", ("ty",), "task type"),
    Column("start_time", ("start",), "start time in ms"),
    Column("timestamp", ("ts", "hms", "hhmmss"), "start time in HH:MM:SS"),
    Column("running_time", ("time",), "running time"),
    Column("ip", ("i",), "ip address"),
    Column("node", ("n",), "node name"),
    Column("description", ("desc",), "task action", on=False),
    Column("x_opaque_id", ("x",), "X-Opaque-ID header", on=False),
)


def _tasks(view: CatView) -> Iterator[Row]:
    """Of this node."""
    here, now_ms = view.identity.here(view.status), view.node.now_ms()
    for task in view.tasks:
        yield {
            "id": f"{here.id}:{task.number}",
            "action": task.action,
            "task_id": f"{here.id}:{task.number}",
            "parent_task_id": "-" if task.parent is None else f"{here.id}:{task.parent}",
            "type": "transport",
            "start_time": task.started_ms,
            "timestamp": datetime.fromtimestamp(task.started_ms // 1000, UTC).strftime("%H:%M:%S"),
            "running_time": Time(max(0, now_ms - task.started_ms)),
            "ip": here.host,
            "node": here.name,
            "description": task.description,
            "x_opaque_id": task.headers.get("X-Opaque-Id", "-"),
        }


_ATTRIBUTES = (
    Column("node", ("name",), "node name"),
    Column("id", ("nodeId",), "unique node id", on=False),
    Column("pid", ("p",), "process id", on=False),
    Column("host", ("h",), "host name"),
    Column("ip", ("i",), "ip address"),
    Column("port", ("po",), "bound transport port", on=False),
    Column("attr", ("attr.name",), "attribute description"),
    Column("value", ("attr.value",), "attribute value"),
)
_REPOSITORIES = (
    Column("id", ("id", "repoId"), "unique repository id"),
    Column("type", ("t", "type"), "repository type"),
)
