"""`graphdb load --distributed`: documents parsed on the nodes of a Ray cluster, for a service beside it."""

import gzip
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ray_cluster import RayCluster
from tests.support.service import COMMAND, Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NODES = 120_000  # of the large document: some 20 MB, two pieces
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster()
    try:
        cluster.add("one")
        cluster.add("two")
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With a runtime of its own."""
    service = Service(tmp_path_factory.mktemp("service") / "data").start()
    try:
        yield service
    finally:
        service.close()


@pytest.fixture
def service(running: Service) -> Service:
    """Empty."""
    running.update("DROP ALL")
    return running


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring of blank nodes, all quads twice: a node is in lines of all pieces of the document."""
    path = tmp_path_factory.mktemp("documents") / "ring.nt"
    lines = [
        *(b'_:n%d <urn:name> "%s %d" .\n' % (n, b"of a blank node" * 3, n) for n in range(NODES)),
        *(b"_:n%d <urn:next> _:n%d .\n" % (n, (n + 1) % NODES) for n in range(NODES)),
    ]
    path.write_bytes(b"".join(lines) * 2)  # each quad twice
    return path


def begin(service: Service, environment: dict[str, str], *arguments: object) -> "subprocess.Popen[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        [COMMAND, "load", "--distributed", "--endpoint", service.url, *map(str, arguments)],
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(service: Service, environment: dict[str, str], *arguments: object) -> tuple[int, str, str]:
    process = begin(service, environment, *arguments)
    out, err = process.communicate(timeout=4 * HANG_S)
    return process.returncode, out, err


def count(service: Service) -> int:
    return int(service.select(COUNT)[0]["n"])


def test_documents_of_all_kinds_are_one_change(
    service: Service, ray_cluster: RayCluster, large: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "some.ttl").write_text('_:n1 <urn:name> "not of the ring" ; <urn:is> 01 .')
    (tmp_path / "in" / "some.nq.gz").write_bytes(
        gzip.compress(b'_:n1 <urn:name> "nor this" <urn:g> .\n<urn:a> <urn:is> <urn:b> .\n')
    )
    before = service.health()["snapshot_index"]
    done = run(service, ray_cluster.environment("one"), large, tmp_path / "in")
    assert done[0] == 0, done
    assert done[1].startswith(f"{2 * NODES + 4:,} quads added from 3 files")
    assert count(service) == 2 * NODES + 3
    joined = "SELECT (COUNT(*) AS ?n) { ?a <urn:next> ?b . ?a <urn:name> ?c . ?b <urn:name> ?d }"
    assert service.select(joined) == [{"n": str(NODES)}], "a label is one node in all pieces of its document"
    assert service.select("SELECT ?o { ?s <urn:is> ?o FILTER(isLiteral(?o)) }") == [{"o": "1"}]
    assert service.health()["snapshot_index"] > before
    again = run(service, ray_cluster.environment("two"), tmp_path / "in" / "some.nq.gz", "--graph", "urn:h")
    assert again[0] == 1
    assert "some.nq.gz: graph: the document names graphs itself" in again[2]


def test_a_bad_line_leaves_nothing(
    service: Service, ray_cluster: RayCluster, large: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.nt"
    path.write_bytes(large.read_bytes() + b"<urn:s> <urn:p> .\n")
    exit_code, _, err = run(service, ray_cluster.environment("one"), path)
    assert exit_code == 1
    assert err.startswith(f"graphdb: {path}: malformed RDF at line {4 * NODES + 1}, column 17: ")
    assert count(service) == 0


def test_the_piece_of_a_lost_worker_is_parsed_again(
    service: Service, ray_cluster: RayCluster, large: Path
) -> None:
    process = begin(service, ray_cluster.environment("one"), large, large)
    killed = await_worker(ray_cluster, process)
    os.kill(killed, signal.SIGKILL)
    out, err = process.communicate(timeout=4 * HANG_S)
    assert process.returncode == 0, err
    assert out.startswith(f"{4 * NODES:,} quads added"), "the same file twice, each with nodes of its own"
    assert count(service) == 4 * NODES


def await_worker(cluster: RayCluster, load: "subprocess.Popen[str]") -> int:
    """A process that parses a piece."""
    deadline = time.monotonic() + 2 * HANG_S
    while time.monotonic() < deadline and load.poll() is None:
        for name in ("one", "two"):
            for title, pid in cluster.workers(name).items():
                if title.startswith("ray::parse_piece"):
                    return pid
        time.sleep(0.005)
    raise AssertionError(f"no worker parses: {load.communicate()}")


def test_a_killed_client_leaves_nothing(service: Service, ray_cluster: RayCluster, large: Path) -> None:
    process = begin(service, ray_cluster.environment("one"), *[large] * 20)
    await_worker(ray_cluster, process)
    process.kill()
    process.communicate()
    scratch = service.data_dir / "scratch"
    service.wait_until(
        lambda: not [path for path in scratch.iterdir() if path.name.startswith("tmp")], HANG_S
    )
    assert count(service) == 0
    service.update("INSERT DATA { <urn:s> <urn:p> <urn:o> }")
    assert count(service) == 1


def test_without_a_cluster_the_cores_of_this_machine_parse(service: Service, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:s> <urn:p> _:b .\n")
    done = run(service, {}, tmp_path / "a.nt", "--graph", "urn:g")
    assert done[0] == 0, done
    assert service.select("SELECT ?g { GRAPH ?g { ?s ?p ?o } }") == [{"g": "urn:g"}]


def test_where_ray_is_not(service: Service, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:s> <urn:p> _:b .\n")
    exit_code, _, err = run(service, {"RAY_ADDRESS": "127.0.0.1:1"}, tmp_path / "a.nt")
    assert exit_code == 1
    assert err.startswith("graphdb: there is no Ray to be reached at 127.0.0.1:1: ")
    assert len(err.splitlines()) == 1
