"""`Service`: a real `graphdb serve` process tree, for tests that start, kill and question one."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import httpx
import psutil  # type: ignore[import-untyped]

from actors.processes import marked_processes
from actors.service_files import ServiceFiles
from benchmarks.service import free_port
from tests.support.timing import HANG_S

__all__ = ["Service", "free_port"]

COMMAND = Path(sys.executable).parent / "graphdb"


class Service:
    """A service of its own port over a data directory. Start it at will; close() it at last."""

    def __init__(
        self,
        data_dir: Path,
        *options: str,
        port: int | None = None,
        host: str = "127.0.0.1",
        search: bool = False,
        environment: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """options are the command's; search opens the search port, any that is free; environment is added to
        that of this process; within is a command that runs another one somewhere else, such as
        `ip netns exec NAME`.
        """
        self.data_dir = data_dir
        self.port, self._host = port or free_port(), host
        self.url = f"http://{host}:{self.port}"
        self.search_port = free_port() if search else None
        self.search_url = f"http://{host}:{self.search_port}"
        self.ready_s = 0.0  # how long the last start took
        self._options = ("--host", host, "--port", str(self.port), *options)
        self._within = within
        searching = {
            "GRAPHDB_SEARCH__ENABLED": str(search).lower(),
            "GRAPHDB_SERVER__DISK_RESERVE_MB": "16",  # the directories of tests stay for a while
        }
        if self.search_port is not None:
            searching["GRAPHDB_SEARCH__PORT"] = str(self.search_port)
        self._environment: dict[str, str] = searching | dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=self.url, timeout=HANG_S, trust_env=False)

    @property
    def output(self) -> str:
        """What the command has written, both streams, since its last start."""
        return self._output_file.read_text()

    @property
    def command_pid(self) -> int:
        """The process of the command itself."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the command has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def set_search(self, enabled: bool) -> None:
        """From the next start on, with or without the search port; the service has one."""
        self._environment["GRAPHDB_SEARCH__ENABLED"] = str(enabled).lower()

    def start(self, wait: bool = True) -> "Service":
        """Run the command, wait until the service is healthy and has said so."""
        began = time.monotonic()
        with self._output_file.open("wb") as output:
            self._run(self._within, output, None)
        if wait:
            self.wait_ready()
            self.wait_until(lambda: "graphdb serves" in self.output, HANG_S)
            self.ready_s = time.monotonic() - began
        return self

    def start_at_terminal(self, wait: bool = True) -> int:
        """As start(), at a terminal of its own; the descriptor of the other end, where one types.

        It is read and closed here.
        """
        ours, theirs = os.openpty()
        self._run([*self._within, "setsid", "--ctty"], theirs, theirs)
        os.close(theirs)
        self._output_file.write_bytes(b"")
        threading.Thread(target=_copy_all, args=(ours, self._output_file), daemon=True).start()
        if wait:
            self.wait_ready()
            self.wait_until(lambda: "graphdb serves" in self.output, HANG_S)
        return ours

    def wait_ready(self, timeout_s: float = HANG_S) -> None:
        """Wait until /health says healthy."""
        self.wait_until(lambda: self.health().get("status") == "healthy", timeout_s)

    def wait_until(self, holds: Any, timeout_s: float) -> float:
        """Wait until a condition holds, an unreachable service counting as not; how long it took."""
        began = time.monotonic()
        while time.monotonic() - began < timeout_s:
            assert self.exit_code() is None, f"the service ended: {self.output}"
            with contextlib.suppress(httpx.TransportError):
                if holds():
                    return time.monotonic() - began
            time.sleep(0.02)
        raise AssertionError(f"not within {timeout_s} s; the service said: {self.output}")

    def exit_code(self, timeout_s: float = 0) -> int | None:
        """The command's exit code once it has one, waiting for it up to timeout_s."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def pids(self, name: str = "") -> list[int]:
        """The service's processes whose command line has the name in it; the command's own too for ""."""
        found = set(marked_processes(ServiceFiles(self.data_dir).name))
        if self._process is not None:
            found.discard(self._process.pid)
            if self._process.poll() is None and not name:
                found.add(self._process.pid)
        return [pid for pid in sorted(found) if name in _command_line(pid)]

    def kill(self, name: str = "") -> list[int]:
        """kill -9 the processes whose command line has the name in it, all at once; all there are for ""."""
        killed = self.pids(name)
        assert killed, f"no process {name}"
        _send(signal.SIGKILL, killed)
        if self._process is not None and self._process.pid in killed:
            self._process.wait(HANG_S)
        deadline = time.monotonic() + HANG_S  # a large process is seen for a while after it was killed
        while left := [pid for pid in self.pids(name) if not name or pid in killed]:
            assert time.monotonic() < deadline, f"killed, and still there: {left}"
            _send(signal.SIGKILL, left)  # among them may be one that was being forked meanwhile
            time.sleep(0.01)
        return killed

    def pause(self) -> None:
        """SIGSTOP every process, as a machine that stands still for a while."""
        _send(signal.SIGSTOP, self.pids())

    def resume(self) -> None:
        """After pause()."""
        _send(signal.SIGCONT, self.pids())

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = HANG_S) -> int | None:
        """Ask the command to end; its exit code. It is killed if it does not."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self._process.wait(timeout_s)
        finally:
            self._client.close()
            self._client = httpx.Client(base_url=self.url, timeout=HANG_S, trust_env=False)
            if self._process.poll() is None:
                self.kill()
                self._process.wait(HANG_S)

    def close(self) -> None:
        """Stop, and let go of everything."""
        self.stop()
        self._client.close()

    def listening_addresses(self) -> set[str]:
        """The addresses that any process of the service listens on."""
        connections = itertools.chain.from_iterable(_connections(pid) for pid in self.pids())
        return {
            connection.laddr.ip.removeprefix("::ffff:")
            for connection in connections
            if connection.status == psutil.CONN_LISTEN
        }

    def health(self) -> dict[str, Any]:
        record: dict[str, Any] = self._client.get("/health", timeout=5).json()
        return record

    def try_update(self, text: str) -> httpx.Response:
        """POST /update; whatever it answers."""
        return self._client.post(
            "/update", content=text, headers={"Content-Type": "application/sparql-update"}
        )

    def update(self, text: str) -> dict[str, Any]:
        """POST /update; its confirmation."""
        response = self.try_update(text)
        assert response.status_code == 200, response.text
        confirmation: dict[str, Any] = response.json()
        return confirmation

    def select(self, text: str) -> list[dict[str, str]]:
        """POST /sparql; the rows, each variable with the text of its value."""
        response = self._client.post("/sparql", data={"query": text})
        assert response.status_code == 200, response.text
        bindings = response.json()["results"]["bindings"]
        return [{name: term["value"] for name, term in row.items()} for row in bindings]

    def load(self, ntriples: bytes) -> None:
        """POST /data of an N-Triples document to the default graph."""
        response = self._client.post(
            "/data?default", content=ntriples, headers={"Content-Type": "application/n-triples"}, timeout=180
        )
        assert response.is_success, response.text

    def _run(self, within: Sequence[str], output: int | IO[bytes], given: int | None) -> None:
        self._process = subprocess.Popen(
            [*within, COMMAND, "serve", "--data-dir", self.data_dir, *self._options],
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self.data_dir.parent,
            env=os.environ | self._environment,
        )

    @property
    def _output_file(self) -> Path:
        return self.data_dir.parent / f"{self.data_dir.name}-{self.port}.output"


def _copy_all(terminal: int, path: Path) -> None:
    """What a terminal shows, until nobody has its other end open; closes this one."""
    with path.open("ab", buffering=0) as copy, contextlib.suppress(OSError):
        while shown := os.read(terminal, 4096):
            copy.write(shown)
    os.close(terminal)


def _connections(pid: int) -> list[Any]:
    try:
        return list(psutil.Process(pid).net_connections("inet"))
    except psutil.NoSuchProcess:
        return []


def _send(number: int, pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
