"""The process that forks workers: what a fork is given, what it does not share, what is done without it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from actors.fork_server import ForkServer
from tests.support.timing import HANG_S

MAIN = "tests.support.forked_worker"
FALLBACK = "import sys; print(sys.argv[1:])"


def children() -> list[Any]:
    """The servers among them; other tests of this process may have left some that have ended."""
    found: list[Any] = psutil.Process().children()
    running = [child for child in found if is_running(child.pid)]
    return [child for child in running if "actors.fork_server" in " ".join(child.cmdline())]


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


def await_end(pid: int) -> None:
    deadline = time.monotonic() + HANG_S
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    made = ForkServer(tmp_path, MAIN, [])
    made.start()
    yield made
    made.stop()
    assert children() == []


def asked(server: ForkServer, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a request comes to, of a command that tells its arguments where it is not forked."""
    command = [*server.prefix, sys.executable, "-c", FALLBACK, *arguments]
    done = subprocess.run(
        command, cwd=directory, env={"GIVEN": "yes"}, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0
    return done


def test_a_fork_has_all_that_the_request_has(server: ForkServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path, "--one=1", "--language=PYTHON")
    assert done.stderr == ""
    fork = json.loads(done.stdout)
    assert fork["arguments"][1:] == ["--one=1"]
    assert fork["directory"] == str(tmp_path)
    assert (fork["given"], fork["kept"]) == ("yes", None)
    assert fork["parent"] == children()[0].pid
    assert fork["child_signal_is_default"], "else nobody could wait for a process of its own"
    assert fork["descriptors"] == [0, 1, 2, 3], "the last is that of the look itself"
    assert fork["product"] == 600**3


def test_forks_share_nothing_that_is_random(server: ForkServer, tmp_path: Path) -> None:
    one, other = (json.loads(asked(server, tmp_path).stdout) for _ in range(2))
    assert not set(one["random"]) & set(other["random"])


def test_a_killed_server_is_done_without_and_can_be_started_again(server: ForkServer, tmp_path: Path) -> None:
    (child,) = children()
    child.kill()
    assert asked(server, tmp_path, "alone").stdout == "['alone']\n"
    server.stop()
    server.start()
    server.start()
    assert len(children()) == 1
    assert json.loads(asked(server, tmp_path).stdout)["given"] == "yes"


def test_one_that_ends_is_started_again_but_not_in_a_spin(
    server: ForkServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.keep()
    (first,) = children()
    for _ in range(2):
        (child,) = children()
        child.kill()
        await_end(child.pid)
        server.keep()
    assert children() == [], "the second time it waits"
    assert asked(server, tmp_path, "alone").stdout == "['alone']\n"
    said = "the process that forks workers ended by itself (signal 9) and is started again"
    assert [record.message for record in caplog.records] == [said]
    server._again_at = 0
    server.keep()
    assert children()[0].pid != first.pid
    assert json.loads(asked(server, tmp_path).stdout)["given"] == "yes"


def test_nothing_is_forked_beside_a_thread(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    server = ForkServer(tmp_path, MAIN, ["tests.support.threading_module"])
    server.start()
    assert asked(server, tmp_path, "alone").stdout == "['alone']\n"
    assert "a module has started a thread" in capfd.readouterr().err
    server.stop()


def test_the_server_ends_with_who_has_started_it(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from actors.fork_server import ForkServer
server = ForkServer(Path({str(tmp_path)!r}), "json", [])
server.start()
print(server._process.pid, flush=True)
sys.stdin.read()
"""
    starter = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    starter.stdout.close()
    assert starter.stdin is not None
    starter.stdin.close()
    await_end(pid)


FORKING = """
import os, sys, threading
from pathlib import Path
from actors.fork_server import ForkServer
from actors.processes import marked_processes
server = ForkServer(Path(sys.argv[1]), "tests.support.forked_worker", [])
if sys.argv[2] == "thread":
    threading.Thread(target=sys.stdin.read).start()
server.fork("marker-of-" + sys.argv[1])
kept = os.environ["HOME"] == os.popen("echo $HOME").read().strip()
print(server._process.pid, marked_processes("marker-of-" + sys.argv[1]), kept, flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(params=["alone", "thread"])
def forking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING, str(tmp_path), request.param],
        env=os.environ | {"SPT_NOENV": "1"},  # as a service has it: a title does not take the marker's place
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield request.param, process


def test_a_server_that_is_forked_is_found_and_forks_as_one_that_is_started(
    forking: tuple[str, "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    """Beside a thread nothing is forked: it is a program of its own then, and has what marker it is given."""
    how, process = forking
    assert process.stdout is not None
    said = process.stdout.readline().split()
    pid = int(said[0])
    assert said[1:] == ([f"[{pid}]", "True"] if how == "alone" else ["[]", "True"])
    assert psutil.Process(pid).exe() == psutil.Process(process.pid).exe()
    assert ("-c" in psutil.Process(pid).cmdline()) is False
    fork = json.loads(asked(ForkServer(tmp_path, MAIN, []), tmp_path, "--one=1").stdout)
    assert (fork["parent"], fork["given"], fork["arguments"][1:]) == (pid, "yes", ["--one=1"])
    assert fork["descriptors"] == [0, 1, 2, 3]
    process.communicate("")
    assert process.returncode == 0
    await_end(pid)
