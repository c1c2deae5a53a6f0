"""A service on a Ray runtime that was there before it, named by RAY_ADDRESS."""

import contextlib
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.service import Service, free_port
from tests.support.timing import HANG_S

pytestmark = pytest.mark.ray

RAY = Path(sys.executable).parent / "ray"


@pytest.fixture
def shared_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A Ray runtime on the loopback, and the environment that leads to it."""
    directory = tempfile.mkdtemp(prefix="ray-")  # short: Ray's sockets lie in it
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the loopback is this node's address
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    command = [str(RAY), "start", "--head", "--block", f"--port={address.partition(':')[2]}"]
    options = ["--num-cpus=2", "--include-dashboard=false", f"--temp-dir={directory}"]
    runtime = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    monkeypatch.setenv("RAY_ADDRESS", address)
    try:
        is_up = [str(RAY), "health-check", f"--address={address}"]
        while subprocess.run(is_up, capture_output=True, check=False).returncode:
            assert runtime.poll() is None, "Ray did not start"
        yield runtime
    finally:
        _end(runtime)
        shutil.rmtree(directory, ignore_errors=True)


def _end(runtime: subprocess.Popen[bytes]) -> None:
    """End a runtime and what it has started, and nothing else, which `ray stop` would."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [*psutil.Process(runtime.pid).children(recursive=True), runtime]:
            process.kill()
    runtime.wait(HANG_S)


def _rows(data_dir: Path) -> str:
    """How many rows a process that connects without HTTP is given; in its own, for Ray warns at import."""
    script = f"""
import graphdb
with graphdb.connect({str(data_dir)!r}) as service:
    print(len(service.query("SELECT * {{ ?s ?p ?o }}")))
"""
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or asked.stderr


def test_a_service_on_a_shared_runtime(shared_ray: subprocess.Popen[bytes], tmp_path: Path) -> None:
    service = Service(tmp_path / "data")
    try:
        for number in (1, 2):  # a second start finds the runtime, and what the first has stored
            service.start()
            assert service.try_update(f"INSERT DATA {{ <urn:s> <urn:p> {number} }}").status_code == 200
            assert _rows(tmp_path / "data") == str(number)
            assert service.stop() == 0
        assert shared_ray.poll() is None, "the runtime is not the service's to stop"
    finally:
        service.close()


@pytest.mark.usefixtures("shared_ray")
def test_what_a_killed_command_has_left_gives_way_to_its_next_start(tmp_path: Path) -> None:
    service = Service(tmp_path / "data")
    try:
        service.start()
        service.update("INSERT DATA { <urn:s> <urn:p> 1 }")
        service.kill()
        service.start(wait=False)  # what it finds still answers /health
        service.wait_until(lambda: "graphdb serves" in service.output, 60)
        service.update("INSERT DATA { <urn:s> <urn:p> 2 }")
        assert len(service.select("SELECT * { ?s ?p ?o }")) == 2
    finally:
        service.close()
