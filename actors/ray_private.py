"""All that this service uses of Ray beside its public interface, in one place.

Ray changes these names without notice. So `pyproject.toml` bounds `ray` to what is tested, and
`tests/unit/actors/test_ray_private.py` fails where a new Ray moves one of them. `ray_environment` has the
variables.

Ray is imported where it is used and not with this module, because `ray_environment` needs it before Ray.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import list2cmdline
from typing import Any

from actors.processes import deaf_to_stops
from actors.ray_at_rest import late_timers

__all__ = [
    "AGENT_OPTIONS",
    "WORKER_MODULE",
    "WORKER_OPTION",
    "calm_connections",
    "change_title",
    "default_temp_dir",
    "print_no_deaths",
    "start_head_node",
    "worker_arguments",
]

WORKER_OPTION = "--python_worker_command="  # of the raylet
_PREPARING_OPTIONS = ("--language=", "--serialized-runtime-env-context=")
AGENT_OPTIONS = ("--dashboard_agent_command=", "--runtime_env_agent_command=")
WORKER_MODULE = "ray._private.workers.default_worker"  # that each process of an actor begins with


def start_head_node(worker_prefix: Sequence[str], **parameters: Any) -> Any:
    """A head node without the dashboard's server and without agents, which nothing of a service uses.

    worker_prefix stands before the command of each worker. parameters are those of Ray's `RayParams`. Raises
    what Ray does.
    """
    from ray._private.node import Node
    from ray._private.parameter import RayParams
    from ray._raylet import (  # type: ignore[attr-defined] # a compiled module, whose types are incomplete
        DASHBOARD_AGENT_LISTEN_PORT_NAME,
        persist_port,
    )

    class BareNode(Node):
        def start_api_server(self, **_: Any) -> None:
            pass

        def start_raylet(self, *arguments: Any, **keywords: Any) -> None:
            # the raylet is told of the other agents' ports, and waits for this one to stand in a file
            port = self._ray_params.dashboard_agent_listen_port
            persist_port(self._session_dir, self._node_id, DASHBOARD_AGENT_LISTEN_PORT_NAME, port)
            super().start_raylet(*arguments, **keywords)

    with _changed_processes(worker_prefix):
        return BareNode(RayParams(**parameters), head=True, shutdown_at_exit=False, spawn_reaper=True)


@contextmanager
def _changed_processes(worker_prefix: Sequence[str]) -> Iterator[None]:
    """Have Ray's own processes not hear what is to end the service, its raylet start workers in another way,
    and a process that does nothing in place of its agents.

    A raylet that hears SIGTERM ends the actors before they have closed what is to be kept. It cannot be told
    to start no agents. They are two Python processes, which take 1.8 s of processor time at the start and
    140 MB. One serves the dashboard, the other installs packages that a task asks for; no task of a service
    does. `cat` ends with the raylet, because it reads the pipe whose end tells an agent.
    """
    from ray._private import services

    start = services.start_ray_process

    def replaced(part: str) -> str:
        if part.startswith(WORKER_OPTION):
            return f"{WORKER_OPTION}{list2cmdline(worker_prefix)} {part.removeprefix(WORKER_OPTION)}"
        return next((option + "cat" for option in AGENT_OPTIONS if part.startswith(option)), part)

    def start_changed(command: list[str], *arguments: Any, **keywords: Any) -> Any:
        with deaf_to_stops():
            return start([replaced(part) for part in command], *arguments, **keywords)

    services.start_ray_process = start_changed
    try:
        yield
    finally:
        services.start_ray_process = start


def worker_arguments(command: Sequence[str]) -> list[str]:
    """What the module of a worker is given, of the command that the raylet starts it with.

    This is the interpreter, a file that prepares the environment that a task asks for and then runs the next
    one, the file of the worker, and its arguments. No task of a service asks for an environment.
    """
    _, _, *arguments = command
    return [one for one in arguments if not one.startswith(_PREPARING_OPTIONS)]


def change_title(title: str | None) -> None:
    """Set what `ps` shows for this process; None: leave it, but find out where it is in memory.

    Ray's copy of the library setproctitle does the latter at its first call, by the environment, so it comes
    before the environment is moved.
    """
    from ray import _raylet

    _raylet.setproctitle(title if title is not None else _raylet.getproctitle())  # type: ignore[attr-defined]


def default_temp_dir() -> str:
    """Where Ray keeps its files, as RAY_TMPDIR says."""
    from ray._common.utils import get_default_ray_temp_dir

    directory: str = get_default_ray_temp_dir()  # type: ignore[no-untyped-call]
    return directory


@contextmanager
def calm_connections() -> Iterator[None]:
    """Have the threads that a connection to Ray starts meanwhile wake less often.

    What comes before the connection is not to be late: gRPC measures the processor's frequency with a sleep.
    """
    from ray._private import worker

    connect = worker.connect

    def connect_calmly(*arguments: Any, **keywords: Any) -> Any:
        with late_timers():
            return connect(*arguments, **keywords)

    worker.connect = connect_calmly
    try:
        yield
    finally:
        worker.connect = connect


def print_no_deaths() -> None:
    """Keep Ray from printing every death of a worker, which it does whatever its logging options say.

    Such deaths are handled here, and Ray's own log files have them.
    """
    from ray._private import worker

    worker.print_to_stdstream = _say_nothing


def _say_nothing(*_: Any, **__: Any) -> None:
    pass
