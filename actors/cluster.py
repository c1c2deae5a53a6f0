"""The one place with `ray.remote`: the Ray runtime of a service, its actors, their names and their restarts.

Import it after `ray_environment` has been applied.
"""

import logging
import os
import threading
from typing import Any

import ray
from ray._private import worker as ray_worker
from ray._private.node import Node
from ray._private.parameter import RayParams

from actors.processes import MARKER_VARIABLE, end_processes, start_keeper
from actors.readers.store_reader import StoreReader
from actors.service_files import ServiceFiles
from actors.update_log import UpdateLog
from graphdb.config import Settings
from graphdb.errors import LogUnavailable, UnavailableError

__all__ = [
    "OwnRuntime",
    "SharedRuntime",
    "bounded",
    "close_store_reader",
    "close_update_log",
    "connect",
    "keep_replica_on_loopback",
    "start_store_reader",
    "start_update_log",
    "store_reader_endpoint",
    "update_log_endpoint",
]

logger = logging.getLogger(__name__)

_UPDATE_LOG = "update_log"
_STORE_READER = "store_reader"
_WORKERS = 4  # what Ray takes for this many cores: UpdateLog, StoreReader, Serve's controller, GraphPort
_OBJECT_STORE_BYTES = 128 << 20  # results on their way to notebooks pass through it; mapped, filled as used
_CALL_TIMEOUT_S = 30


class OwnRuntime:
    """A Ray runtime for one service: its processes are children of this one and die with it.

    Started piece by piece, because `ray.init` cannot leave out what a single node has no use for: a
    dashboard, an autoscaler, a log monitor, each a Python process of its own and one of them on a fixed port.
    stop() is right after whatever start() came to.
    """

    def __init__(self, files: ServiceFiles) -> None:
        self._files = files
        self._node: _BareNode | None = None
        self.address = ""  # of Ray's control store, once started

    def start(self) -> None:
        """Start and connect. On the main thread: Ray's processes die with the *thread* that started them."""
        os.environ[MARKER_VARIABLE] = self._files.marker
        start_keeper(self._files.marker)
        logging.getLogger("ray").setLevel(logging.ERROR)
        try:
            self._node = _BareNode(
                _parameters(self._files), head=True, shutdown_at_exit=False, spawn_reaper=True
            )
        except Exception as error:
            raise UnavailableError(f"Ray did not start: {error}") from error
        self.address = self._node.gcs_address
        connect(self.address, self._files.name, str(self._files.runtime_dir))

    def failure(self) -> str | None:
        """Which of Ray's processes has died, if any has."""
        if self._node is None:
            return None
        dead = [name for name, _ in self._node.dead_processes()]  # type: ignore[no-untyped-call]
        return f"Ray's {' and '.join(dead)} died" if dead else None

    def stop(self) -> None:
        """End every process of the runtime, also those that hang. Call from the main thread."""
        threading.excepthook = _quiet_thread_end
        bounded(ray.shutdown, timeout_s=3)
        if (node := self._node) is not None:
            bounded(lambda: node.kill_all_processes(check_alive=False, allow_graceful=True), timeout_s=3)
        left = end_processes(self._files.marker)
        if left:
            logger.warning("these processes do not end: %s", left)
        self._files.remove_runtime_dir()


class SharedRuntime:
    """A Ray runtime that RAY_ADDRESS names; it was there before and stays."""

    def __init__(self, files: ServiceFiles, address: str) -> None:
        self.address = address
        self._files = files
        self._connected = False

    def start(self) -> None:
        """Connect. Ray reads from the environment how it authenticates (RAY_AUTH_MODE)."""
        try:
            connect(self.address, self._files.name)
        except Exception as error:
            raise UnavailableError(f"there is no Ray to be reached at {self.address}: {error}") from error
        self._connected = True

    def failure(self) -> str | None:
        """Whether the connection is lost."""
        return "the connection to Ray is lost" if self._connected and not ray.is_initialized() else None

    def stop(self) -> None:
        """Disconnect; the service's actors end with it."""
        bounded(ray.shutdown, timeout_s=5)
        self._files.remove_runtime_dir()


def connect(address: str, namespace: str, temp_dir: str | None = None) -> None:
    """Connect this process to a Ray runtime, without a word of Ray's in its output."""
    # Ray prints every death of a worker through this function, whatever its logging options say; such deaths
    # are ours to handle and Ray's own log files have them
    ray_worker.print_to_stdstream = _say_nothing
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(
        address=address,
        namespace=namespace,
        log_to_driver=False,
        configure_logging=False,
        _temp_dir=temp_dir,
    )


def keep_replica_on_loopback() -> None:
    """Have Serve bind this replica's internal port to the loopback; it has no option for that.

    Call it in the replica's process, before the replica listens, as its constructor is.
    """
    from ray.serve._private import replica as module

    replica: Any = module  # Ray's modules have types, but not for this
    add_port = replica.add_port_to_grpc_server
    replica.add_port_to_grpc_server = lambda server, address: add_port(
        server, address.replace("[::]", "127.0.0.1")
    )


def start_update_log(directory: str) -> Any:
    """The service's UpdateLog as an actor; see `_start`."""
    return _start(UpdateLog, _UPDATE_LOG, directory)


def start_store_reader(settings: Settings) -> Any:
    """The service's StoreReader as an actor; see `_start`."""
    return _start(StoreReader, _STORE_READER, settings)


async def update_log_endpoint(namespace: str) -> str:
    """Where the service's UpdateLog listens; what its `LogClient` asks when it connects.

    Raises LogUnavailable while the actor is being started again.
    """
    try:
        return await _endpoint(_UPDATE_LOG, namespace)
    except (ray.exceptions.RayError, ValueError) as error:
        raise LogUnavailable("the update log is starting") from error


async def store_reader_endpoint(namespace: str) -> str:
    """Where the service's StoreReader listens; what its `ReaderClient` asks when it connects.

    Raises UnavailableError while the actor is being started again.
    """
    try:
        return await _endpoint(_STORE_READER, namespace)
    except (ray.exceptions.RayError, ValueError) as error:
        raise UnavailableError("the readers are starting") from error


def close_update_log(actor: Any) -> None:
    """Have the log let go of its directory in order; it is killed anyway if it does not."""
    _close(actor)


def close_store_reader(actor: Any) -> None:
    """Have the readers end in order; they are killed anyway if they do not."""
    _close(actor)


def _start(kind: type[Any], name: str, *arguments: Any) -> Any:
    """An actor in the namespace of this connection; it ends with this process.

    A killed one is started again by Ray. Its calls fail meanwhile, and whoever called asks again.
    """
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0, "max_concurrency": 16}
    return ray.remote(kind).options(name=name, **options).remote(*arguments)


async def _endpoint(name: str, namespace: str) -> str:
    actor = ray.get_actor(name, namespace=namespace)
    endpoint: str = await actor.endpoint.remote()
    return endpoint


def _close(actor: Any) -> None:
    bounded(lambda: ray.get(actor.close.remote(), timeout=_CALL_TIMEOUT_S), timeout_s=5)


class _BareNode(Node):
    """A head node without the dashboard's server; nothing that a service uses asks for it."""

    def start_api_server(self, **_: Any) -> None:
        pass


def _parameters(files: ServiceFiles) -> RayParams:
    return RayParams(
        node_ip_address="127.0.0.1",
        temp_dir=str(files.runtime_dir),
        num_cpus=_WORKERS,
        num_gpus=0,
        object_store_memory=_OBJECT_STORE_BYTES,
        include_dashboard=False,
        include_log_monitor=False,  # type: ignore[arg-type] # Ray's annotation is wrong
        no_monitor=True,
        dashboard_agent_listen_port=0,  # any free port: several services run side by side
    )


def _say_nothing(*_: Any, **__: Any) -> None:
    pass


def _quiet_thread_end(_: threading.ExceptHookArgs) -> None:
    """Ray's background threads lose their connections while we stop; that is no news."""


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
