"""`ForkServer`: one process that has imported what the workers of a service import, and forks them.

Imports are most of what a Python process costs at its start, in time and in memory. Forked processes have
them in common. The service forks this one too, once it has imported Ray and before it has threads. Where it
has some, `python -m actors.fork_server PARENT FD MAIN MODULE...` is the process: PARENT is who starts it, FD
its listening socket, MAIN the module that a worker runs. `fork_request` is who asks it.
"""

import atexit
import gc
import json
import logging
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import psutil  # type: ignore[import-untyped]

from actors.freed_memory import unmap_file_pages
from actors.process_bounds import end_with_parent
from actors.processes import STOPPING, deaf_to_stops, mark_forks
from actors.ray_at_rest import look_less_often
from actors.ray_environment import forked_environment
from actors.ray_private import WORKER_MODULE, calm_connections, change_title, worker_arguments

__all__ = ["ForkServer"]

_SOCKET = "fork.sock"
_WAITING = 16  # requests, while the modules are imported
_AGAIN_S = 60.0  # between two starts of one that ends by itself: each takes a second of processor time
_ROOT = Path(__file__).resolve().parents[1]  # where `actors` is found, also when it is not installed
_REQUEST = Path(__file__).with_name("fork_request.py")
_TITLE = "python -m actors.fork_server"  # what `ps` shows, however it was started
logger = logging.getLogger(__name__)


class ForkServer:
    """The process from the side of who starts it. Where it has ended, workers are started without it."""

    def __init__(self, directory: Path, main: str, modules: Sequence[str]) -> None:
        """directory: of this user only; whoever may connect to the socket in it runs code here."""
        self._path = directory / _SOCKET
        self._modules = [main, *modules]
        self._process: psutil.Process | None = None
        self._again_at = float("-inf")  # time.monotonic

    @property
    def prefix(self) -> list[str]:
        """What to put before the command of a worker, so that it is forked."""
        return [sys.executable, "-I", "-S", str(_REQUEST), str(self._path)]

    def start(self) -> None:
        """Unless it runs. It ends with the thread that starts it. Requests wait until it is ready."""
        if self._process is not None and _exit_code(self._process) is None:
            return
        with self._listening() as listening:
            self._process = self._spawned(listening)

    def fork(self, marker: str) -> None:
        """As start(), but it has all in common that this process has imported, Ray included.

        marker: of the service, by which the forks are found. Call it once, on the main thread, before there
        are others; where there are, or there is no room for the marker, it is start().
        """
        if _threads() != 1:
            return self.start()  # at once, so that it imports Ray while this process does
        environment = forked_environment()
        os.environ.update(environment)
        change_title(None)
        for name in environment:
            del os.environ[name]
        gc.collect()
        gc.freeze()  # as in the fork: what both have stays as it is
        if _threads() != 1 or not mark_forks(marker):
            return self.start()
        parent = os.getpid()
        with self._listening() as listening:
            with deaf_to_stops():
                if (pid := os.fork()) == 0:
                    _be_forked(parent, listening, self._modules)
            self._process = psutil.Process(pid)

    def keep(self) -> None:
        """Start it again if it has ended, not more often than once a minute. What it has forked goes on.

        To be called now and then, by the thread that has started it.
        """
        process, now = self._process, time.monotonic()
        if process is None or (code := _exit_code(process)) is None or now < self._again_at:
            return
        self._again_at = now + _AGAIN_S
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        logger.warning("the process that forks workers ended by itself (%s) and is started again", how)
        try:
            self.start()
        except OSError as error:
            logger.warning("the process that forks workers cannot be started: %s", error)

    def stop(self) -> None:
        """What it has forked goes on."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._path.unlink(missing_ok=True)

    def _listening(self) -> socket.socket:
        """For the process; whoever asks meanwhile waits."""
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self._path))
        listening.listen(_WAITING)
        return listening

    def _spawned(self, listening: socket.socket) -> psutil.Process:
        parent, descriptor = str(os.getpid()), str(listening.fileno())
        with deaf_to_stops():
            return psutil.Popen(
                [sys.executable, "-m", "actors.fork_server", parent, descriptor, *self._modules],
                pass_fds=(listening.fileno(),),
                env=os.environ | forked_environment(),
                stdin=subprocess.DEVNULL,
                cwd=_ROOT,
            )


def _exit_code(process: psutil.Process) -> int | None:
    """Of a child that has ended; -9 where signal 9 has ended it."""
    try:
        code: int = process.wait(0)
    except psutil.TimeoutExpired:
        return None
    return code


def _be_forked(parent: int, listening: socket.socket, modules: list[str]) -> NoReturn:
    """What a fork of a running program does with its life: nothing of the program's own at its end."""
    code = 1
    try:
        descriptor = listening.fileno()
        os.closerange(3, descriptor)
        os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for number in STOPPING:
            signal.signal(number, signal.SIG_DFL)
        change_title(_TITLE)
        _become(_serve(parent, listening, modules), modules[0])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 nobody above is to go on
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _serve(parent: int, listening: socket.socket, modules: list[str]) -> socket.socket:
    """Returns in each forked process, with the connection of who has asked for it."""
    end_with_parent()
    if os.getppid() != parent:  # it ended before
        sys.exit()
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()  # the collector would write to pages that are shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a process that has ended
    _check_alone()
    unmap_file_pages()  # 45 MB of libraries that it has only loaded; a fork maps what it uses itself
    while True:
        connection, _ = listening.accept()
        try:
            if os.fork() == 0:
                listening.close()
                return connection
        except OSError:
            pass  # who has asked hears that there is no process
        connection.close()


def _check_alone() -> None:
    """A fork has no other thread than its own, and what others held locked stays so for ever.

    The threads of OpenBLAS end before a fork, by its own doing, and begin again when they are needed.
    """
    if os.fork() == 0:
        os._exit(0)
    if (threads := _threads()) != 1:
        raise RuntimeError(f"a module has started a thread: {threads} are there before a fork")


def _threads() -> int:
    """How many this process has, those that Python does not know included."""
    return len(os.listdir("/proc/self/task"))


def _become(connection: socket.socket, main: str) -> None:
    """Be the process that was asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    with connection:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as sent:
            request = json.load(sent)
        for own, given in enumerate(descriptors):
            os.dup2(given, own)
            os.close(given)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        connection.sendall(b"\0")
    sys.argv = worker_arguments(request["command"])
    del sys.modules[main]
    with ExitStack() as calm:
        if main == WORKER_MODULE:
            look_less_often()
            calm.enter_context(calm_connections())
        runpy.run_module(main, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _, parent, descriptor, *modules = sys.argv
    _become(_serve(int(parent), socket.socket(fileno=int(descriptor)), modules), modules[0])
