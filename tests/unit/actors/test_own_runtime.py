"""A service's own Ray runtime, whose start fails: it is tried again, on fresh files. No Ray is started."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import cluster
from actors.fork_server import ForkServer
from actors.processes import MARKER_VARIABLE, marked_processes
from actors.service_files import ServiceFiles
from graphdb.errors import UnavailableError

TIMED_OUT = "The current node timed out during startup."


class Starts:
    """In place of Ray's node: so many starts fail, each with a process and a file left behind."""

    def __init__(self, files: ServiceFiles, failing: int) -> None:
        self.files, self.failing = files, failing
        self.found: list[list[str]] = []  # by each start in the runtime's directory
        self.running: list[int] = []  # processes of starts before, found by each
        self.ports: list[set[int]] = []  # that each was to give to the agents
        self.gcs_address = "127.0.0.1:1"
        self._children: list[subprocess.Popen[bytes]] = []

    def __call__(self, _: list[str], **parameters: Any) -> "Starts":
        self.found.append(sorted(path.name for path in self.files.runtime_dir.iterdir()))
        self.running.append(sum(child.pid in marked_processes(self.files.marker) for child in self._children))
        self.ports.append({parameters[name] for name in cluster._AGENT_PORTS})
        if len(self.found) > self.failing:
            return self
        (self.files.runtime_dir / "session").touch()
        self._children.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        raise Exception(TIMED_OUT)

    def kill_all_processes(self, **_: Any) -> None:
        pass

    def reap(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()


@pytest.fixture
def files(tmp_path: Path) -> ServiceFiles:
    made = ServiceFiles(tmp_path / "data")
    made.make_runtime_dir()
    return made


@pytest.fixture
def starts(
    files: ServiceFiles, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Starts]:
    failing = Starts(files, request.param)
    monkeypatch.setattr(cluster, "start_head_node", failing)
    monkeypatch.setattr(cluster, "_START_PAUSE_S", 0)
    monkeypatch.setattr(cluster, "connect", lambda *_: None)
    monkeypatch.setenv(MARKER_VARIABLE, files.marker)
    yield failing
    failing.reap()
    files.remove_runtime_dir()


@pytest.mark.parametrize("starts", [2], indirect=True)
def test_a_start_that_failed_is_tried_again(
    files: ServiceFiles, starts: Starts, capfd: pytest.CaptureFixture[str]
) -> None:
    token = files.token_file.read_text()
    runtime = cluster.OwnRuntime(files, ForkServer(files.runtime_dir, "json", []))
    runtime.start()
    runtime.stop()
    assert starts.found == [["fork.sock", "token"]] * 3  # nothing of a start before
    assert starts.running == [0, 0, 0]
    assert not files.runtime_dir.exists()
    assert (
        capfd.readouterr().err.splitlines()
        == [f"graphdb: Ray did not start, it is tried again: {TIMED_OUT}"] * 2
    )
    files.make_runtime_dir()  # as for each of the starts; Ray's library keeps the first token that it reads
    assert files.token_file.read_text() == token


@pytest.mark.parametrize("starts", [99], indirect=True)
def test_one_that_never_comes_up_is_one_error(files: ServiceFiles, starts: Starts) -> None:
    runtime = cluster.OwnRuntime(files, ForkServer(files.runtime_dir, "json", []))
    with pytest.raises(UnavailableError, match=f"Ray did not start: {TIMED_OUT}"):
        runtime.start()
    runtime.stop()
    assert len(starts.found) == cluster._STARTS
    assert marked_processes(files.marker) == []


@pytest.mark.parametrize("starts", [0], indirect=True)
def test_no_agent_is_left_to_choose_its_port(files: ServiceFiles, starts: Starts) -> None:
    """Ray would wait 15 s for what an agent has chosen, and end where that is too short."""
    runtime = cluster.OwnRuntime(files, ForkServer(files.runtime_dir, "json", []))
    runtime.start()
    (ports,) = starts.ports
    runtime.stop()
    assert len(ports) == len(cluster._AGENT_PORTS)
    assert min(ports) > 1023
