"""Where edges and actors meet: `GraphPort`, the Ray Serve deployment behind port 7001, and `run_service`.

Nothing here imports Ray at the top: Ray reads its environment while it is imported, and `run_service` sets
that first. Nowhere else do `serve` and `actors` know each other.
"""

import asyncio
import contextlib
import functools
import importlib
import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

from starlette.types import ASGIApp

from actors.clustering.clustered_shard import ClusteredShard
from actors.log.client import LogClient
from actors.offline import enter_cluster, refuse_member
from actors.processes import end_processes
from actors.raft.raft_log_client import RaftLogClient
from actors.ray_environment import service_environment
from actors.readers.client import ReaderClient
from actors.service_files import RunFile, ServiceFiles
from actors.shard.incoming import adopt
from actors.shard.store_shard import StoreShard
from graphdb.config import Settings
from graphdb.config.service import split_address
from graphdb.errors import UnavailableError
from graphdb.model import Confirmation
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.gate import read_update
from serve.graph_app import build_app
from serve.notebook_answers import answer
from serve.port_server import Listen, PortServer, answers, bind

__all__ = ["GraphPort", "run_service"]

T = TypeVar("T")
_READY_S = 600.0  # replaying a long log may take minutes; /health says "starting" meanwhile
_SILENCE_S = 60.0  # without an answer from the port, or an actor of Serve's, until the service gives up
_LOOK_S = 1.0
_STOP_S = 15.0
_PREPARE_S = 5.0  # of that, for handing the lead over
_SWITCH_S = 0.0005  # at most so long a thread that parses or plans keeps the event loop waiting for its turn


class _Node:
    """One node's graph as a port hosts it: the store over the log, and the application over the store."""

    def __init__(self, settings: Settings, namespace: str) -> None:
        from actors import cluster

        log_endpoint = functools.partial(cluster.update_log_endpoint, namespace)
        readers = ReaderClient(functools.partial(cluster.store_reader_endpoint, namespace))
        self.store = (
            ClusteredShard(settings, RaftLogClient(log_endpoint), readers)
            if settings.cluster.enabled
            else StoreShard(settings, LogClient(log_endpoint), readers)
        )
        self.app: ASGIApp = build_app(self.store, settings)

    async def start(self) -> None:
        """Recover; a log that is itself coming back, or a store that a dying process holds, is waited for."""
        deadline = time.monotonic() + _SILENCE_S
        while True:
            try:
                return await self.store.start()
            except UnavailableError:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.1)

    async def prepare_close(self) -> None:
        """While requests still come: leave to this node nothing for which others would notice it gone."""
        if isinstance(self.store, ClusteredShard):
            await self.store.hand_over_lead()

    async def close(self) -> None:
        await self.store.close()


class GraphPort:
    """One replica a node: binds the graph port, owns the node's store, answers notebooks through its methods.

    It is made within a moment whatever the store needs to recover, so that Serve never takes a long recovery
    for a failed start. A killed one is made again by Serve.
    """

    def __init__(self, settings: Settings, namespace: str) -> None:
        from actors import cluster

        cluster.keep_replica_on_loopback()
        sys.setswitchinterval(_SWITCH_S)
        self._node: _Node | None = None
        self._limits = settings.security
        self._query_timeout_s = settings.server.query_timeout_seconds
        self._server = PortServer(_listen(settings), functools.partial(self._host, settings, namespace))

    async def _host(self, settings: Settings, namespace: str) -> _Node:
        self._node = _Node(settings, namespace)
        return self._node

    def check_health(self) -> None:
        """Serve replaces this replica when this raises: a port without its thread answers nobody."""
        if not self._server.is_alive:
            raise RuntimeError(self._server.failure or "the port's thread has ended")

    def state(self) -> tuple[bool, str | None]:
        """Whether the node has recovered and serves, and if it never will, why."""
        return self._server.ready.is_set(), self._server.failure

    async def stop(self) -> None:
        """Finish the running requests, close the store; the replica is of no use afterwards."""
        prepare = self._node.prepare_close if self._node is not None else None
        await self._server.prepare_and_stop(prepare, _PREPARE_S, _STOP_S)

    async def answer(self, text: str, form: str) -> bytes:
        """See `serve.notebook_answers.answer`."""
        store = self._ready_node().store
        return await self._on_port(answer(store, text, form, self._limits, self._query_timeout_s))

    async def update(self, text: str) -> Confirmation:
        """Evaluate an update, as POST /update does."""
        store = self._ready_node().store
        return await self._on_port(store.update(read_update(text, None, self._limits), Dataset()))

    def status(self) -> dict[str, Any]:
        """The node's own part of the health record."""
        return asdict(self._ready_node().store.status())

    async def backup(self, directory: str) -> int:
        """Write the present state to a directory that does not exist yet; the log index that it is of."""
        return await self._on_port(self._ready_node().store.backup(Path(directory)))

    def _ready_node(self) -> _Node:
        if self._node is None:
            raise UnavailableError("the service is starting")
        return self._node

    async def _on_port(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await self._server.perform(coroutine)


def run_service(settings: Settings) -> int:
    """Run the service until SIGTERM or SIGINT; 0 then, the exit code. Call it on the main thread.

    Raises UnavailableError, in one line for a person, when it cannot start or cannot go on.
    """
    with contextlib.suppress(_Stop):
        _run(settings)
    return 0


def _run(settings: Settings) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_stop)
    files = ServiceFiles(settings.server.data_dir)
    files.acquire()
    try:
        if left := end_processes(f"{files.name}-"):
            raise UnavailableError(f"processes of an earlier service do not end: {left}")
        adopt(files.data_dir)
        if settings.cluster.enabled:
            enter_cluster(files.data_dir, settings.cluster.node_id)
        else:
            refuse_member(files.data_dir)
        _Service(settings, files).run()
    finally:
        files.release()


class _Service:
    """The running service as its own process sees it: the runtime, the log, the deployment."""

    def __init__(self, settings: Settings, files: ServiceFiles) -> None:
        self._settings = settings
        self._files = files
        self._listen = _listen(settings)
        self._address = os.environ.get("RAY_ADDRESS")
        self._runtime: Any = None
        self._name = ""  # in the Ray cluster, once connected
        self._log: Any = None
        self._readers: Any = None
        self._port: Any = None

    def run(self) -> None:
        """Start, say so, watch, and stop whatever has started."""
        began = time.monotonic()
        started = threading.Event()
        try:
            threading.Thread(target=self._guard_start, args=(started,), daemon=True).start()
            self._start_runtime()
            self._deploy()
            self._await_ready()
            started.set()
            self._announce(time.monotonic() - began)
            self._watch()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            started.set()
            self._stop()

    def _guard_start(self, started: threading.Event) -> None:
        """End the process if Ray dies while it starts: Ray's own calls then wait for ever."""
        while not started.wait(_LOOK_S):
            failure = self._runtime.failure() if self._runtime is not None else None
            if failure is not None:
                print(f"graphdb: {failure} while the service was starting", file=sys.stderr, flush=True)
                self._files.release()
                end_processes(self._files.marker)
                os._exit(1)

    def _start_runtime(self) -> None:
        self._files.make_runtime_dir()
        if self._address is None:
            self._check_ports()
            os.environ.update(service_environment(self._files.token_file))
        from actors import cluster

        importing = threading.Thread(target=importlib.import_module, args=("ray.serve",))
        importing.start()  # a third of the time to start; Ray's own processes start meanwhile
        if self._address is None:
            self._runtime = cluster.OwnRuntime(self._files)
        else:
            self._runtime = cluster.SharedRuntime(self._files, self._address)
        self._runtime.start()
        self._name = cluster.service_name()
        if self._address is not None:
            self._check_ports()  # not before what a killed service has left there is gone
        for number in (signal.SIGTERM, signal.SIGINT):  # Ray has put its own handler there
            signal.signal(number, _raise_stop)
        self._log = cluster.start_log(self._settings)
        self._readers = cluster.start_store_reader(self._settings)
        importing.join()
        self._write_run_file()

    def _check_ports(self) -> None:
        """Raises UnavailableError, before anything is started in vain."""
        _check_port(self._listen)
        if self._settings.cluster.enabled:
            _check_peer_port(self._settings.cluster.address)

    def _deploy(self) -> None:
        from ray import serve as ray_serve

        from actors import cluster

        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        quiet = {"log_level": "WARNING", "enable_access_log": False}
        cluster.start_serve(quiet)
        deployment: Any = ray_serve.deployment(
            GraphPort,
            num_replicas=1,
            ray_actor_options={"num_cpus": 0, "label_selector": cluster.on_this_node()},
            max_ongoing_requests=64,
            health_check_period_s=0.5,  # a killed replica is noticed by its next check
            health_check_timeout_s=20,
            graceful_shutdown_timeout_s=_STOP_S,
            graceful_shutdown_wait_loop_s=0.1,
            logging_config=quiet,
        )
        application = deployment.bind(self._settings, self._name)
        self._port = ray_serve.run(application, name=self._name, route_prefix=None)
        logging.getLogger("ray.serve").setLevel(logging.ERROR)

    def _await_ready(self) -> None:
        # without a majority of its cluster a node waits, however long
        deadline = time.monotonic() + (math.inf if self._settings.cluster.enabled else _READY_S)
        while time.monotonic() < deadline:
            ready, failure = self._port.state.remote().result(timeout_s=_SILENCE_S)
            if failure is not None:
                raise UnavailableError(failure)
            if ready:
                return
            time.sleep(0.05)
        raise UnavailableError(f"the service was not ready after {_READY_S:.0f} s")

    def _write_run_file(self) -> None:
        self._files.write_run_file(
            RunFile(
                pid=os.getpid(),
                ray_address=self._runtime.address,
                own_runtime=self._address is None,
                namespace=self._name,
                app=self._name,
                token_file=str(self._files.token_file),
                url=self._listen.url,
            )
        )

    def _announce(self, seconds: float) -> None:
        print(
            f"graphdb serves {self._files.data_dir} at {self._listen.url} (ready after {seconds:.1f} s)",
            flush=True,
        )

    def _watch(self) -> NoReturn:
        """Look after the service until a signal ends it. Raises UnavailableError where it cannot go on.

        Ray and Serve start killed actors again; here is noticed what they cannot mend.
        """
        last_answer = time.monotonic()
        while True:
            time.sleep(_LOOK_S)
            if failure := self._runtime.failure():
                raise UnavailableError(f"{failure}; nothing acknowledged is lost, start the service again")
            if answers(self._listen, timeout_s=5):
                last_answer = time.monotonic()
            elif time.monotonic() - last_answer > _SILENCE_S:
                raise UnavailableError(f"{self._listen.url} has not answered for {_SILENCE_S:.0f} s")

    def _stop(self) -> None:
        """In the order of the data's way: the port, the readers, the log, the runtime."""
        if self._runtime is None:
            return
        from actors import cluster

        if self._port is not None and self._runtime.failure() is None:
            cluster.bounded(lambda: self._port.stop.remote().result(timeout_s=_STOP_S), _STOP_S)
        if self._readers is not None and self._runtime.failure() is None:
            cluster.close_store_reader(self._readers)
        if self._log is not None and self._runtime.failure() is None:
            cluster.close_update_log(self._log)
        if self._address is not None and self._runtime.failure() is None:
            cluster.bounded(cluster.remove_application, _STOP_S)
        self._runtime.stop()


class _Stop(BaseException):
    """A signal asks the service to end."""


def _raise_stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Stop


def _listen(settings: Settings) -> Listen:
    server = settings.server
    return Listen(server.host, server.port, server.tls_cert_file, server.tls_key_file)


def _check_peer_port(address: str) -> None:
    host, port = split_address(address)
    _check_port(Listen(host, port, None, None))


def _check_port(listen: Listen) -> None:
    try:
        bind(listen).close()
    except OSError as error:
        raise UnavailableError(f"cannot listen on {listen.host}:{listen.port}: {error.strerror}") from error
