"""Kill -9 of each part, of all of it, again and again; a full disk. What was acknowledged is always there."""

import contextlib
import itertools
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.client_threads import ClientThreads, asked_while_killed
from tests.support.service import Service
from tests.support.timing import HANG_S, quick_enough

pytestmark = [pytest.mark.ray, pytest.mark.slow]

BACK_S = 30  # a killed actor is back within this time, on a busy machine
ROUNDS = 4


class UpdateStream(ClientThreads):
    """Inserts one triple after another from a few threads; remembers which were acknowledged."""

    def __init__(self, service: Service, threads: int = 3) -> None:
        super().__init__([self._run] * threads)
        self._service = service
        self._numbers = itertools.count()
        self.acknowledged: set[str] = set()
        self.refused: list[str] = []

    def _run(self) -> None:
        with httpx.Client(base_url=self._service.url, timeout=HANG_S, trust_env=False) as client:
            while not self._ended.is_set():
                number = next(self._numbers)
                try:
                    answer = client.post(
                        "/update", data={"update": f"INSERT DATA {{ <urn:n> <urn:p> {number} }}"}
                    )
                except httpx.TransportError:
                    time.sleep(0.05)
                    continue
                if answer.status_code == 200:
                    self.acknowledged.add(str(number))
                else:
                    self.refused.append(answer.text)


def stored(service: Service) -> set[str]:
    return {row["n"] for row in service.select("SELECT ?n WHERE { <urn:n> <urn:p> ?n }")}


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service to kill; each test leaves it running and whole, or stopped."""
    service = Service(tmp_path_factory.mktemp("mortal") / "data")
    try:
        yield service
    finally:
        service.close()


@pytest.fixture
def running(mortal: Service) -> Service:
    if mortal.pids():
        mortal.wait_ready()
    else:
        mortal.start()
    return mortal


def test_killed_port_is_back_and_nothing_acknowledged_is_lost(running: Service) -> None:
    with UpdateStream(running) as stream:
        time.sleep(1)
        running.kill("GraphPort")
        time.sleep(0.2)
        took_s = running.wait_until(lambda: running.health()["status"] == "healthy", BACK_S)
        time.sleep(0.5)
    print(f"port back after {took_s + 0.2:.1f} s")
    assert stream.acknowledged
    assert stream.acknowledged <= stored(running)


def test_a_killed_fork_server_is_started_again_and_forks_the_next_port(running: Service) -> None:
    (killed,) = fork_servers(running)
    killed.kill()
    running.wait_until(lambda: set(fork_servers(running)) - {killed}, BACK_S)
    assert "the process that forks workers ended by itself (signal 9)" in running.output
    before = set(running.kill("GraphPort"))
    running.wait_until(lambda: set(running.pids("GraphPort")) - before, HANG_S)
    (port,) = set(running.pids("GraphPort")) - before
    assert [psutil.Process(port).parent()] == fork_servers(running)
    running.wait_ready()


def fork_servers(service: Service) -> list[psutil.Process]:
    """What they have forked has their command line too, until Ray gives it a title, but another parent."""
    found = []
    for child in psutil.Process(service.command_pid).children():
        with contextlib.suppress(psutil.Error):  # one that was killed is a zombie for a while
            if "actors.fork_server" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_who_comes_while_the_port_is_made_again_is_answered(running: Service) -> None:
    outcomes, killed = asked_while_killed(
        running,
        f"{running.url}/sparql?query=ASK%20{{}}",
        "GraphPort",
        lambda: running.wait_until(lambda: running.health()["status"] == "healthy", BACK_S),
    )
    assert outcomes
    assert set(outcomes) <= {200, 503}, outcomes  # 503 while the store is opened
    assert running.pids("GraphPort") not in ([], killed)


def test_a_stop_refuses_who_comes_and_lets_the_next_start_have_the_port(running: Service) -> None:
    assert running.stop() == 0
    with pytest.raises(httpx.ConnectError):
        running.health()
    running.start()
    running.update("INSERT DATA { <urn:n> <urn:r> 2 }")


def test_updates_wait_for_a_killed_log_and_reads_go_on(running: Service) -> None:
    with UpdateStream(running) as stream:
        time.sleep(1)
        killed_at = time.monotonic()
        running.kill("UpdateLog")
        assert stored(running)
        running.update("INSERT DATA { <urn:n> <urn:q> 1 }")
        took_s = time.monotonic() - killed_at
    print(f"log back after {took_s:.1f} s")
    assert took_s < BACK_S
    assert stream.acknowledged <= stored(running)
    assert [text for text in stream.refused if "the outcome is unknown" not in text] == []


def test_a_log_that_is_killed_again_is_back_as_soon(running: Service) -> None:
    """Ray's calls that meet a death wait for word of it, as long as its settings say."""
    running.kill("UpdateLog")
    running.update("INSERT DATA { <urn:log> <urn:killed> 0 }")
    for again in quick_enough(4):
        time.sleep(1)  # until its clients have connected again
        running.kill("UpdateLog")
        with again:
            running.update("INSERT DATA { <urn:log> <urn:killed> 1 }")


LINES = 30_000  # some 13 MB: logged in several parts


def lines_document() -> bytes:
    return b"".join(b"<urn:s%d> <urn:p> <urn:o%0400d> .\n" % (number, number) for number in range(LINES))


def load_lines(service: Service, graph: str) -> int:
    """The status of the answer; 0 where there is none."""
    try:
        return httpx.post(
            f"{service.url}/data?graph={graph}",
            content=lines_document(),
            headers={"Content-Type": "application/n-triples"},
            timeout=120,
            trust_env=False,
        ).status_code
    except httpx.TransportError:
        return 0


def makes_lines(service: Service) -> bool:
    return bool(service.pids("actors.shard.lines_process"))


@pytest.mark.parametrize("moment", ["lines are made", "lines are logged"])
def test_kill_9_in_the_midst_of_a_load_of_lines_stores_all_or_nothing(running: Service, moment: str) -> None:
    graph = f"urn:{moment.replace(' ', '-')}"
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load_lines, running, graph)
        running.wait_until(lambda: makes_lines(running) or loading.done(), 60)
        if moment == "lines are logged":
            running.wait_until(lambda: not makes_lines(running), 60)
        running.kill()
        status = loading.result()
    running.start()
    found = counted(running, f"GRAPH <{graph}>")
    assert found in ((LINES,) if status == 200 else (0, LINES))
    assert scratch_of_bodies(running) == []
    assert load_lines(running, graph) == 200
    assert counted(running, f"GRAPH <{graph}>") == LINES


def test_a_client_that_leaves_in_the_midst_of_a_load_of_lines_leaves_nothing(running: Service) -> None:
    graph = "urn:of-who-leaves"
    document, address = lines_document(), httpx.URL(running.url)
    head = f"POST /data?graph={graph} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(document)}\r\n"
    with socket.create_connection((address.host, address.port or 80), timeout=60) as leaving:
        leaving.sendall(f"{head}Content-Type: application/n-triples\r\n\r\n".encode())
        leaving.sendall(document[: len(document) // 2])
        running.wait_until(lambda: scratch_of_bodies(running), 60)
    running.wait_until(lambda: not scratch_of_bodies(running), 60)
    assert counted(running, f"GRAPH <{graph}>") == 0
    assert load_lines(running, graph) == 200
    assert counted(running, f"GRAPH <{graph}>") == LINES


def scratch_of_bodies(service: Service) -> list[Path]:
    return [path for path in (service.data_dir / "scratch").iterdir() if path.name.startswith("tmp")]


def test_service_ends_rather_than_live_half_when_ray_is_gone(running: Service) -> None:
    running.kill("/raylet ")
    assert running.exit_code(timeout_s=HANG_S) == 1
    assert running.output.splitlines()[-1] == (
        "graphdb: Ray's raylet died; nothing acknowledged is lost, start the service again"
    )
    assert running.pids() == []


def test_nothing_acknowledged_is_lost_when_everything_is_killed_again_and_again(mortal: Service) -> None:
    rng = random.Random(7)
    acknowledged: set[str] = set()
    if mortal.pids():
        mortal.stop()
    for _ in range(ROUNDS):
        mortal.start()
        assert acknowledged <= stored(mortal)
        with UpdateStream(mortal) as stream:
            time.sleep(rng.uniform(0.2, 2))
            mortal.kill()
        acknowledged |= stream.acknowledged
    mortal.start()
    assert len(acknowledged) > ROUNDS
    assert acknowledged <= stored(mortal)


def test_killed_command_takes_everything_with_it(running: Service) -> None:
    os.kill(running.command_pid, 9)
    assert running.exit_code(timeout_s=HANG_S) == -9
    deadline = time.monotonic() + HANG_S
    while running.pids() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running.pids() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that fills up soon."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a full disk needs a mount, which this user may not make: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_full_disk_is_503_and_writes_go_on_when_there_is_room(small_disk: Path) -> None:
    service = Service(small_disk / "data")
    filler = small_disk / "filler"
    try:
        service.start()
        service.update("INSERT DATA { <urn:n> <urn:p> 0 . GRAPH <urn:g> { <urn:a> <urn:b> 1, 2, 3 } }")
        service.wait_until(lambda: (small_disk / "data" / "reserve").exists(), HANG_S)
        fill(filler)
        answer = write_until_refused(service)
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["Retry-After"]) >= 1
        assert str(small_disk) not in answer.text
        before = stored(service)
        assert "0" in before
        health = httpx.get(f"{service.url}/health", timeout=10, trust_env=False).json()
        assert (health["status"], "full" in health["reason"]) == ("degraded", True)
        assert counted(service, "GRAPH <urn:g>") == 3, "by a reader, of a copy that is made now"
        assert service.try_update("DROP GRAPH <urn:g>").status_code == 200
        assert counted(service, "GRAPH <urn:g>") == 0
        filler.unlink()
        service.wait_until(
            lambda: service.try_update("INSERT DATA { <urn:n> <urn:p> 'after' }").status_code == 200, 30
        )
        assert stored(service) == before | {"after"}
        service.kill()
        service.start()
        assert stored(service) == before | {"after"}
    finally:
        service.close()


def counted(service: Service, where: str) -> int:
    """How many triples there are, by their number: a query for a reader."""
    query = f"SELECT (COUNT(*) AS ?n) {{ {where} {{ ?s ?p ?o }} }}"
    answer = httpx.get(f"{service.url}/sparql", params={"query": query}, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["results"]["bindings"][0]["n"]["value"])


def fill(file: Path) -> None:
    """Take all the room that is left."""
    with file.open("wb", buffering=0) as sink:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    sink.write(bytes(size))
            except OSError:
                continue


def write_until_refused(service: Service) -> httpx.Response:
    """Update until room that was kept back is gone too."""
    for number in range(1, 2000):
        text = " ".join(f"<urn:n> <urn:p> {number * 1000 + i} ." for i in range(500))
        answer = service.try_update(f"INSERT DATA {{ {text} }}")
        if answer.status_code != 200:
            return answer
    raise AssertionError("the disk does not fill up")
