"""`run_service`: starts the runtime, the actors and the ports of one service, watches them, stops them."""

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from actors.disk_room import DiskRoom
from actors.fork_server import ForkServer
from actors.offline import enter_cluster, refuse_member
from actors.processes import MARKER_VARIABLE, STOPPING, deaf_to_stops, end_processes
from actors.ray_environment import service_environment
from actors.ray_private import WORKER_MODULE
from actors.service_files import RunFile, ServiceFiles
from actors.shard.incoming import adopt
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from serve.deployments.graph_port import GraphPort
from serve.deployments.listening import HeldSockets, check_cluster_port, graph_listen, search_listen
from serve.deployments.port_actor import STOP_S
from serve.deployments.search_port import SearchPort
from serve.port.listen import Listen, answers

__all__ = ["run_service"]

_START_SILENCE_S = 600.0  # without an answer from a port that starts, until the service gives up
_SILENCE_S = 60.0  # without one from a port that has started
_LOOK_S = 1.0  # between two looks at the runtime
_ASK_S = 5.0  # between two questions to a port
_GONE_S, _AGAIN_S = 10.0, 0.1  # until what is killed is gone
_END_S = 10.0  # how long the end of a start may take
_TELL_S = 20.0  # how long a start may wait until it says what for; twice as long until it says so again


def run_service(settings: Settings, beside: Callable[[], None] | None = None) -> int:
    """Run the service until SIGTERM or SIGINT; 0 then, the exit code. Call it on the main thread, before
    there are others: what is to run beside the service is given here, and gets a thread of its own.

    Raises UnavailableError, in one line for a person, when it cannot start or cannot go on.
    """
    with contextlib.suppress(_Stop):
        _run(settings, beside)
    return 0


def _run(settings: Settings, beside: Callable[[], None] | None) -> None:
    for number in STOPPING:
        signal.signal(number, _raise_stop)
    files = ServiceFiles(settings.server.data_dir)
    files.acquire()
    try:
        if left := end_processes(f"{files.name}-"):
            raise UnavailableError(f"processes of an earlier service do not end: {left}")
        DiskRoom.of(settings.server).make_room()  # for the files that a start writes
        adopt(files.data_dir)
        if settings.cluster.enabled:
            enter_cluster(files.data_dir, settings.cluster.node_id)
        else:
            refuse_member(files.data_dir)
        _Service(settings, files).run(beside)
    finally:
        files.release()


class _Service:
    """The running service as its own process sees it: the runtime, the log, the ports."""

    def __init__(self, settings: Settings, files: ServiceFiles) -> None:
        self._settings = settings
        self._files = files
        self._listens = [graph_listen(settings)]
        if settings.search.enabled:
            self._listens.append(search_listen(settings))
        self._address = os.environ.get("RAY_ADDRESS")
        self._sockets: HeldSockets | None = None
        self._runtime: Any = None
        self._forks: ForkServer | None = None  # of a runtime of its own
        self._name = ""  # in the Ray cluster, once connected
        self._log: Any = None
        self._queries: Any = None
        self._ports: list[Any] = []  # their actors; the graph's is the last
        self._waits_for = "Ray"  # while it starts

    def run(self, beside: Callable[[], None] | None) -> None:
        """Start, say so, watch, and stop whatever has started."""
        began = time.monotonic()
        started = threading.Event()
        try:
            self._files.make_runtime_dir()
            if self._address is None:
                self._fork_server()
            with deaf_to_stops():  # Ray's own code bears no exception, so the guard hears them meanwhile
                for looking in (self._guard_start, self._tell_waiting):
                    threading.Thread(target=looking, args=(started,), daemon=True).start()
                if beside is not None:
                    threading.Thread(target=beside, daemon=True).start()
                self._start_runtime()
            self._start_ports()
            self._await_ready()
            started.set()
            self._announce(time.monotonic() - began)
            self._runtime.rest()
            self._watch()
        finally:
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)
            started.set()
            self._stop()

    def _guard_start(self, started: threading.Event) -> None:
        """End the process if Ray dies while it starts, for Ray's own calls then wait for ever; also if it is
        asked to stop while Ray starts. Nothing is open yet that would have to be closed.
        """
        while not started.is_set():
            is_to_stop = signal.sigtimedwait(STOPPING, _LOOK_S) is not None
            failure = self._runtime.failure() if self._runtime is not None else None
            if failure is not None and not is_to_stop:
                print(f"graphdb: {failure} while the service was starting", file=sys.stderr, flush=True)
            if failure is not None or is_to_stop:
                threading.excepthook = lambda _: None  # Ray's threads lose their connections
                # native code of Ray may hold the interpreter and wait for what is being ended here
                nowhere = open(os.devnull, "w")  # noqa: SIM115 the process ends
                faulthandler.dump_traceback_later(_END_S, exit=True, file=nowhere)
                self._files.release()
                end_processes(self._files.marker)
                self._files.remove_runtime_dir()
                os._exit(0 if is_to_stop else 1)

    def _tell_waiting(self, started: threading.Event) -> None:
        """Say what the start waits for: on a busy machine, or with a long log, it is slow."""
        began, pause_s = time.monotonic(), _TELL_S
        while not started.wait(pause_s):
            waited_s = time.monotonic() - began
            print(
                f"graphdb: starting for {waited_s:.0f} s, waiting for {self._waits_for}",
                file=sys.stderr,
                flush=True,
            )
            pause_s = waited_s

    def _fork_server(self) -> None:
        """While this process has no threads. It imports what workers need while this one starts Ray."""
        self._bind()
        os.environ.update(service_environment(self._files.token_file))
        os.environ[MARKER_VARIABLE] = self._files.marker
        self._forks = ForkServer(self._files.runtime_dir, WORKER_MODULE, _worker_modules(self._settings))
        self._forks.fork(self._files.marker)

    def _start_runtime(self) -> None:
        from actors import cluster

        if self._address is not None:
            self._runtime = cluster.SharedRuntime(self._files, self._address)
        else:
            assert self._forks is not None
            self._runtime = cluster.OwnRuntime(self._files, self._forks)
        self._runtime.start()
        self._name = cluster.service_name()
        if self._address is not None:
            self._bind_patiently()
        for number in STOPPING:  # Ray has put its own handler there
            signal.signal(number, _raise_stop)
        self._log = cluster.start_log(self._settings)
        self._queries = cluster.start_query_keeper(self._settings)
        self._write_run_file()

    def _bind(self) -> None:
        check_cluster_port(self._settings)
        self._sockets = HeldSockets(self._listens)

    def _bind_patiently(self) -> None:
        """The ports may be those of a killed service's actors, whose processes Ray is ending."""
        deadline = time.monotonic() + _GONE_S
        while True:
            try:
                return self._bind()
            except UnavailableError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_S)

    def _start_ports(self) -> None:
        from actors import cluster

        directory = str(self._files.runtime_dir)
        assert self._sockets is not None
        self._sockets.hand_out(directory)
        arguments = (self._settings, self._name, directory)
        self._waits_for = "the processes of its ports"
        if self._settings.search.enabled:
            self._ports.append(cluster.start_port(SearchPort, cluster.SEARCH_PORT, *arguments))
        self._ports.append(cluster.start_port(GraphPort, cluster.GRAPH_PORT, *arguments))

    def _await_ready(self) -> None:
        """Wait until every port has recovered, however long it takes: /health says "starting" meanwhile.

        Raises UnavailableError where one never will.
        """
        from actors import cluster

        waited_for = list(zip(reversed(self._listens), self._ports, strict=True))
        while waited_for:
            listen, port = waited_for[-1]
            self._waits_for = f"{listen.url} to be ready"
            try:
                ready, failure = cluster.port_state(port, _START_SILENCE_S)
            except TimeoutError as error:
                silence = f"{listen.url} has not answered for {_START_SILENCE_S:.0f} s"
                raise UnavailableError(silence) from error
            if failure is not None:
                raise UnavailableError(failure)
            if ready:
                waited_for.pop()
            time.sleep(0.05)

    def _write_run_file(self) -> None:
        """Write service.json. On a full disk the service runs without it, and only HTTP reaches it."""
        run_file = RunFile(
            pid=os.getpid(),
            ray_address=self._runtime.address,
            own_runtime=self._address is None,
            namespace=self._name,
            token_file=str(self._files.token_file),
            url=self._listens[0].url,
        )
        try:
            self._files.write_run_file(run_file)
        except UnavailableError as error:
            print(f"graphdb: {error}: graphdb.connect() cannot be used", file=sys.stderr, flush=True)

    def _announce(self, seconds: float) -> None:
        urls = ", search at ".join(listen.url for listen in self._listens)
        print(f"graphdb serves {self._files.data_dir} at {urls} (ready after {seconds:.1f} s)", flush=True)

    def _watch(self) -> NoReturn:
        """Look after the service until a signal ends it. Raises UnavailableError where it cannot go on.

        Ray starts killed actors again; here is noticed what it does not.
        """
        last_answers = dict.fromkeys(self._listens, time.monotonic())
        for listen in self._listens:  # one that is made again keeps who asks it waiting
            threading.Thread(target=_look_at, args=(listen, last_answers), daemon=True).start()
        while True:
            time.sleep(_LOOK_S)
            if self._forks is not None:
                self._forks.keep()
            if failure := self._runtime.failure():
                raise UnavailableError(f"{failure}; nothing acknowledged is lost, start the service again")
            for listen, answered_at in last_answers.items():
                if time.monotonic() - answered_at > _SILENCE_S:
                    raise UnavailableError(f"{listen.url} has not answered for {_SILENCE_S:.0f} s")

    def _stop(self) -> None:
        """In the order of the data's way: the ports, the readers, the log, the runtime."""
        if self._sockets is not None:
            self._sockets.close()  # else who connects would wait, once the port's process has closed its own
        if self._runtime is None:
            return
        from actors import cluster

        self._runtime.hasten()
        if self._ports and self._runtime.failure() is None:
            cluster.stop_ports(self._ports, STOP_S)
        if self._queries is not None and self._runtime.failure() is None:
            cluster.close_query_keeper(self._queries)
        if self._log is not None and self._runtime.failure() is None:
            cluster.close_update_log(self._log)
        self._runtime.stop()


def _look_at(listen: Listen, last_answers: dict[Listen, float]) -> NoReturn:
    while True:
        if answers(listen, timeout_s=5):
            last_answers[listen] = time.monotonic()
        time.sleep(_ASK_S)


def _worker_modules(settings: Settings) -> list[str]:
    """What the actors of a service import."""
    log = "actors.raft.raft_log" if settings.cluster.enabled else "actors.log.update_log"
    modules = [log, "actors.query_keeper", "serve.port.server", "serve.deployments.hosted_graph"]
    if settings.search.enabled:
        modules.append("serve.deployments.hosted_search")
    return modules


class _Stop(BaseException):
    """A signal asks the service to end."""


def _raise_stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Stop
