"""The one place with `ray.remote`: the Ray runtime of a service, its actors, their names and their restarts.

Import it after `ray_environment` has been applied.
"""

import contextlib
import functools
import logging
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil  # type: ignore[import-untyped]
import ray

from actors.columns.protocol import RayAt
from actors.fork_server import ForkServer
from actors.log.update_log import UpdateLog
from actors.processes import end_processes, start_keeper
from actors.query_keeper import QueryKeeper
from actors.ray_at_rest import look_less_often, make_timers_late, make_timers_punctual
from actors.ray_private import calm_connections, default_temp_dir, print_no_deaths, start_head_node
from actors.service_files import ServiceFiles
from graphdb.config import Settings
from graphdb.errors import ConfigError, LogUnavailable, UnavailableError
from graphdb.history.places import LOG, history_directory
from graphdb.log.file_log import FileLogConfig
from graphdb.log.views import views_of

__all__ = [
    "GRAPH_PORT",
    "INDEX_RESOURCE",
    "SEARCH_PORT",
    "SHARD_RESOURCE",
    "OwnRuntime",
    "SharedRuntime",
    "bounded",
    "chosen_temp_dir",
    "close_query_keeper",
    "close_update_log",
    "columns_endpoint",
    "connect",
    "core_count",
    "flush_search",
    "found_places",
    "index_shard_places",
    "namespaces_of_nodes",
    "on_this_node",
    "port_state",
    "readers_endpoint",
    "service_name",
    "shard_nodes",
    "spread_places",
    "start_alone",
    "start_at",
    "start_log",
    "start_port",
    "start_query_keeper",
    "start_spread",
    "stop_ports",
    "streaming_task",
    "update_log_endpoint",
]

logger = logging.getLogger(__name__)

GRAPH_PORT = "graph_port"  # the names of actors
SEARCH_PORT = "search_port"
SHARD_RESOURCE = "column_shards"  # of a Ray node: how many shards of column views it may have
INDEX_RESOURCE = "index_shards"  # how many processes for shards of search indexes
_UPDATE_LOG = "update_log"
_QUERY_KEEPER = "query_keeper"
# how many workers Ray keeps ready: UpdateLog, QueryKeeper, and the ports GraphPort and SearchPort
_WORKERS = 4
_SHARDS_MAX = 256  # on the one node of a runtime of its own
_OBJECT_STORE_BYTES = 128 << 20  # results on their way to notebooks pass through it; mapped, filled as used
_CALL_TIMEOUT_S = 30
_CALLS, _PORT_CALLS = 16, 64  # at a time, of an actor; those of a port are of notebooks
_STARTS = 5  # how often Ray is tried; each may take half a minute and more, by waits in its own code
_START_PAUSE_S = 1.0
# Ray's agents, each of which listens on a port
_AGENT_PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)


_SERVERS = ("gcs_server", "raylet")  # Ray's own, in C++


class OwnRuntime:
    """A Ray runtime for one service: its processes are children of this one and die with it.

    Started piece by piece, because `ray.init` cannot leave out what a single node has no use for: a
    dashboard, an autoscaler, a log monitor, each a Python process of its own and one of them on a fixed port.
    stop() is right after whatever start() came to.
    """

    def __init__(self, files: ServiceFiles, forks: ForkServer) -> None:
        """forks has been started in the directory of these files, or is started there."""
        self._files, self._forks = files, forks
        self._node: Any = None  # Ray's node, once started
        self._reserved: list[socket.socket] = []
        self.address = ""  # of Ray's control store, once started

    def start(self) -> None:
        """Start and connect. On the main thread: Ray's processes die with the *thread* that started them.

        Ray gives up on a machine that is too busy; then it is started anew, on fresh files. Raises
        UnavailableError where that does not help.
        """
        logging.getLogger("ray").setLevel(logging.ERROR)
        for left in reversed(range(_STARTS)):
            try:
                return self._try_to_start()
            except Exception as error:
                if not left:
                    raise UnavailableError(f"Ray did not start: {error}") from error
                print(f"graphdb: Ray did not start, it is tried again: {error}", file=sys.stderr, flush=True)
            self._end_everything()
            time.sleep(_START_PAUSE_S)
            self._files.make_runtime_dir()

    def _try_to_start(self) -> None:
        start_keeper(self._files.marker)
        self._forks.start()
        self._reserved = [_reserved_port() for _ in _AGENT_PORTS]
        ports = [reserved.getsockname()[1] for reserved in self._reserved]
        self._node = start_head_node(
            self._forks.prefix,
            **dict(zip(_AGENT_PORTS, ports, strict=True)),
            node_ip_address="127.0.0.1",
            temp_dir=str(self._files.runtime_dir),
            num_cpus=_WORKERS,
            num_gpus=0,
            resources={SHARD_RESOURCE: _SHARDS_MAX, INDEX_RESOURCE: os.cpu_count() or 1},
            object_store_memory=_OBJECT_STORE_BYTES,
            include_dashboard=False,
            include_log_monitor=False,
            no_monitor=True,
        )
        self.address = self._node.gcs_address
        with calm_connections():
            connect(self.address, self._files.name, str(self._files.runtime_dir))

    def rest(self) -> None:
        """What Ray has to do at a start is done: let its threads sleep longer from now on.

        Not before, for its processes sleep for milliseconds at their start, again and again.
        """
        look_less_often(also_main=False)
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if child.name() in _SERVERS:
                    make_timers_late(child.pid)

    def hasten(self) -> None:
        """Undo `rest`, where a stop is to come: what waits in this process ends at once then."""
        make_timers_punctual(os.getpid())

    def failure(self) -> str | None:
        """Which of Ray's processes has died, if any has."""
        if (node := self._node) is None:
            return None
        dead = [name for name, _ in node.dead_processes()]
        return f"Ray's {' and '.join(dead)} died" if dead else None

    def stop(self) -> None:
        """End every process of the runtime, also those that hang. Call from the main thread."""
        threading.excepthook = _quiet_thread_end
        self._end_everything()
        self._files.remove_runtime_dir()

    def _end_everything(self) -> None:
        bounded(ray.shutdown, timeout_s=3)
        node, self._node = self._node, None
        if node is not None:
            # at once: what is to be kept is closed, and the raylet takes a second to end by itself
            bounded(lambda: node.kill_all_processes(check_alive=False), timeout_s=3)
        self._forks.stop()
        left = end_processes(self._files.marker)
        if left:
            logger.warning("these processes do not end: %s", left)
        for reserved in self._reserved:
            reserved.close()


class SharedRuntime:
    """A Ray runtime that RAY_ADDRESS names; it was there before and stays. It may span machines."""

    def __init__(self, files: ServiceFiles, address: str) -> None:
        self.address = address  # `auto` until connected, where that is what RAY_ADDRESS says
        self._files = files
        self._raylet: int | None = None  # pidfd of the Ray node's process, once connected

    def start(self) -> None:
        """Connect to this machine's Ray node; remove what a killed service on the same data has left there.

        Ray reads from the environment how it authenticates (RAY_AUTH_MODE). Where several Ray nodes run on
        one machine, RAY_TMPDIR names the one that was started with it, as Ray itself reads it.
        """
        try:
            connect(self.address, self._files.name, chosen_temp_dir())
            self.address = ray.get_runtime_context().gcs_address
            self._raylet = os.pidfd_open(_raylet_pid(ray.get_runtime_context().get_node_id()))
        except Exception as error:
            raise UnavailableError(f"there is no Ray to be reached at {self.address}: {error}") from error
        for name in (GRAPH_PORT, SEARCH_PORT, _UPDATE_LOG, _QUERY_KEEPER):
            with contextlib.suppress(ValueError):  # there is none
                ray.kill(ray.get_actor(name, namespace=service_name()))

    def rest(self) -> None:
        """Its processes are not this service's to change."""

    def hasten(self) -> None:
        """There is nothing to undo."""

    def failure(self) -> str | None:
        """Whether this machine's Ray node is gone, which Ray itself does not tell."""
        if self._raylet is None or not select.select([self._raylet], [], [], 0)[0]:
            return None
        return "this machine's Ray node died"

    def stop(self) -> None:
        """Disconnect; the service's actors end with it."""
        if self.failure() is None:  # else Ray would end this process before it has said why
            bounded(ray.shutdown, timeout_s=5)
        if self._raylet is not None:
            os.close(self._raylet)
        self._files.remove_runtime_dir()


def _raylet_pid(node_id: str) -> int:
    """The process of a Ray node on this machine. Raises LookupError where it does not run here."""
    for process in psutil.process_iter(["cmdline"]):
        if f"--node_id={node_id}" in (process.info["cmdline"] or ()):
            return int(process.pid)
    raise LookupError(f"Ray node {node_id} does not run on this machine")


def connect(address: str, namespace: str, temp_dir: str | None = None) -> None:
    """Connect this process to a Ray runtime, without a word of Ray's in its output."""
    print_no_deaths()
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(
        address=address,
        namespace=namespace,
        log_to_driver=False,
        configure_logging=False,
        _temp_dir=temp_dir,
    )


def chosen_temp_dir() -> str | None:
    """Which Ray node to connect to, where several run on this machine: that of RAY_TMPDIR, if it is set."""
    return default_temp_dir() if "RAY_TMPDIR" in os.environ else None


def start_alone(directory: str, cpus: int, object_store_bytes: int) -> None:
    """Start a Ray runtime of this process's own, on the loopback, with its files in a directory.

    It ends with `ray.shutdown`, or with this process.
    """
    print_no_deaths()
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(
        address="local",
        num_cpus=cpus,
        object_store_memory=object_store_bytes,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        _node_ip_address="127.0.0.1",
        _temp_dir=directory,
    )


def core_count() -> int:
    """The cores of all Ray nodes that tasks may use, now."""
    return int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]


def streaming_task(function: Callable[..., Iterator[Any]], ahead: int, retries: int) -> Any:
    """A function as a task of one core, on any Ray node. It waits where so many of its results wait to be
    taken. Where its worker is lost it is done again, so many times, and has to give the same results.
    """
    options = {"num_cpus": 1, "max_retries": retries, "num_returns": "streaming"}
    return ray.remote(function).options(**options, _generator_backpressure_num_objects=ahead)


def service_name() -> str:
    """What the connected service is called in its Ray cluster: its actors' namespace.

    It follows from the data directory's path (as the connection's namespace does) and the address of the Ray
    node, so that the same path on two machines makes two names, and a start anew makes the same one.
    """
    address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    return f"{ray.get_runtime_context().namespace}-{address}"


def on_this_node() -> dict[str, str]:
    """The label selector that keeps an actor on the Ray node which this process is connected to.

    Data directory, Unix sockets and ports are that machine's. Ray gives a node that is started anew another
    id, so what waits for a node that is gone waits until its service is started again.
    """
    return {"ray.io/node-id": ray.get_runtime_context().get_node_id()}


def start_log(settings: Settings) -> Any:
    """The service's log as an actor, of the cluster's where it is in one; see `_start`."""
    if settings.cluster.enabled:
        # at the top, each process of a node without a cluster would load gRPC as well: 145 ms of its start
        from actors.raft.raft_log import RaftLog

        return _start(RaftLog, _UPDATE_LOG, settings)
    views = views_of(search_enabled=settings.search.enabled)
    data_dir, keep_bytes = settings.server.data_dir, settings.live.keep_changes_mb << 20
    config = FileLogConfig(history=history_directory(data_dir, settings.history))
    return _start(UpdateLog, _UPDATE_LOG, str(data_dir / LOG), config, views=views, keep_bytes=keep_bytes)


def start_query_keeper(settings: Settings) -> Any:
    """The service's QueryKeeper as an actor; see `_start`."""
    find_log = functools.partial(update_log_endpoint, service_name())
    ray_at = RayAt(ray.get_runtime_context().gcs_address, service_name(), chosen_temp_dir())
    return _start(QueryKeeper, _QUERY_KEEPER, settings, find_log, ray_at)


def start_port(kind: type[Any], name: str, *arguments: Any) -> Any:
    """One of the service's ports as an actor; see `_start`."""
    return _start(kind, name, *arguments, max_concurrency=_PORT_CALLS)


def port_state(port: Any, timeout_s: float) -> tuple[bool, str | None]:
    """See `PortActor.state`; neither is so while Ray makes the actor again.

    Raises TimeoutError, and UnavailableError where the actor cannot be made.
    """
    try:
        state: tuple[bool, str | None] = ray.get(port.state.remote(), timeout=timeout_s)
    except ray.exceptions.ActorUnavailableError:
        return False, None
    except ray.exceptions.ActorDiedError as error:
        raise UnavailableError(f"a port cannot be made: {error}") from error
    return state


async def flush_search(namespace: str) -> None:
    """See `SearchPort.flush`. Raises UnavailableError while the actor is being started again."""
    try:
        await ray.get_actor(SEARCH_PORT, namespace=namespace).flush.remote()
    except (ray.exceptions.RayActorError, ValueError) as error:
        raise UnavailableError("the search port is starting") from error


def stop_ports(ports: Sequence[Any], timeout_s: float) -> None:
    """Have them stop in order, all at once: one that hangs leaves the others their time."""
    bounded(
        lambda: ray.wait([port.stop.remote() for port in ports], num_returns=len(ports), timeout=timeout_s),
        timeout_s,
    )


async def update_log_endpoint(namespace: str) -> str:
    """Where the service's UpdateLog listens; what its `LogClient` asks when it connects.

    Raises LogUnavailable while the actor is being started again, ConfigError where it cannot be: Ray gives up
    on one that could not be made.
    """
    try:
        return await _endpoint(_UPDATE_LOG, namespace)
    except (ray.exceptions.RayError, ValueError) as error:
        if "raised in its creation task" in str(error):
            reason = str(error).strip().rpartition("\n")[2].partition(": ")[2]  # without the error's class
            raise ConfigError(f"the update log cannot start: {reason}") from error
        raise LogUnavailable("the update log is starting") from error


async def readers_endpoint(namespace: str) -> str:
    """Where the service's readers listen; what its `ReaderClient` asks when it connects.

    Raises UnavailableError while the actor is being started again.
    """
    try:
        return await _endpoint(_QUERY_KEEPER, namespace, "readers_endpoint")
    except (ray.exceptions.RayError, ValueError) as error:
        raise UnavailableError("the readers are starting") from error


async def columns_endpoint(namespace: str) -> str:
    """Where the service's column view listens; what its `ColumnClient` asks when it connects.

    Raises UnavailableError while the actor is being started again.
    """
    try:
        return await _endpoint(_QUERY_KEEPER, namespace, "columns_endpoint")
    except (ray.exceptions.RayError, ValueError) as error:
        raise UnavailableError("the column view is starting") from error


def close_update_log(actor: Any) -> None:
    """Have the log let go of its directory in order; it is killed anyway if it does not."""
    _close(actor)


def close_query_keeper(actor: Any) -> None:
    """Have the readers end, and the column view close its files; they are killed anyway if they do not."""
    _close(actor)


def _start(
    kind: type[Any], name: str, *arguments: Any, max_concurrency: int = _CALLS, **keywords: Any
) -> Any:
    """An actor on this Ray node, in the service's namespace; it ends with this process.

    A killed one is started again by Ray. Its calls fail meanwhile, and whoever called asks again.
    """
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0, "max_concurrency": max_concurrency}
    place = {"name": name, "namespace": service_name(), "label_selector": on_this_node()}
    return ray.remote(kind).options(**place, **options).remote(*arguments, **keywords)


def start_spread(kind: type[Any], group: Any, number: int, calls: int, *arguments: Any) -> Any:
    """An actor at one place of a placement group of `spread_places`; it ends with this process.

    A killed one is not started again, for a new one has lost what it knew.
    """
    place = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
        group, placement_group_bundle_index=number
    )
    options = {"num_cpus": 0, "resources": {SHARD_RESOURCE: 1}, "max_restarts": 0, "max_concurrency": calls}
    return ray.remote(kind).options(**options, scheduling_strategy=place).remote(*arguments)


def spread_places(count: int) -> Any:
    """A placement group: so many places for shards, spread over Ray nodes, as long as this process lives."""
    return ray.util.placement_group([{SHARD_RESOURCE: 1}] * count, strategy="SPREAD")


def found_places(group: Any) -> list[str] | None:
    """The Ray node of each place of a placement group; None while one has none."""
    table = ray.util.placement_group_table(group)
    if table.get("state") != "CREATED":
        return None
    nodes: dict[int, str] = table["bundles_to_node_id"]
    return [nodes[place] for place in range(len(nodes))]


def shard_nodes() -> dict[str, float]:
    """The Ray nodes that may have shards of column views, and how many each."""
    return {
        node["NodeID"]: node["Resources"][SHARD_RESOURCE]
        for node in ray.nodes()  # type: ignore[no-untyped-call]
        if node["Alive"] and SHARD_RESOURCE in node["Resources"]
    }


def start_at(kind: type[Any], node_id: str, calls: int, *arguments: Any) -> Any:
    """An actor for index shards on one Ray node, which ends with this process; see `start_spread`."""
    options = {"num_cpus": 0, "resources": {INDEX_RESOURCE: 1}, "max_restarts": 0, "max_concurrency": calls}
    place = {"label_selector": {"ray.io/node-id": node_id}}
    return ray.remote(kind).options(**options, **place).remote(*arguments)


def index_shard_places() -> dict[str, tuple[str, int]]:
    """The Ray nodes that may have shards of search indexes: the address and how many processes of each."""
    return {
        node["NodeID"]: (node["NodeManagerAddress"], int(node["Resources"][INDEX_RESOURCE]))
        for node in ray.nodes()  # type: ignore[no-untyped-call]
        if node["Alive"] and INDEX_RESOURCE in node["Resources"]
    }


def namespaces_of_nodes() -> list[str]:
    """Of the database nodes that are on this Ray cluster now, this one among them, in order."""
    named: list[dict[str, str]] = ray.util.list_named_actors(all_namespaces=True)
    return sorted({each["namespace"] for each in named if each["name"] == _UPDATE_LOG})


async def _endpoint(name: str, namespace: str, method: str = "endpoint") -> str:
    actor = ray.get_actor(name, namespace=namespace)
    endpoint: str = await getattr(actor, method).remote()
    return endpoint


def _close(actor: Any) -> None:
    bounded(lambda: ray.get(actor.close.remote(), timeout=_CALL_TIMEOUT_S), timeout_s=5)


def _reserved_port() -> socket.socket:
    """A port that nobody else is given while this is open, but that Ray's agent can listen on.

    The raylet waits for its agents to choose their ports, and ends if they do not. It waits for no port that
    is known before; and there are no agents (`ray_private.start_head_node`).
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so can the agent, as nobody listens here
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _quiet_thread_end(_: threading.ExceptHookArgs) -> None:
    """Ray's background threads lose their connections while we stop, which is expected."""


def bounded(function: Any, timeout_s: float) -> None:
    """Call it on a thread and wait no longer than timeout_s. Its errors are logged only."""

    def call() -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001 stopping goes on whatever happens
            logger.debug("while stopping: %s", error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(timeout_s)
