"""Fuseki, the peer of the figures of weight, where there is Java, and Maven to fetch it.

It runs in a process of its own with its data (TDB2) in a directory of ours, listening on loopback alone.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.service import BenchmarkError, free_port, stop

__all__ = ["RunningFuseki", "is_installed", "running_fuseki"]

ARTIFACT, VERSION = "jena-fuseki-server", "5.6.0"
READY_TIMEOUT_S, STOP_TIMEOUT_S, FETCH_TIMEOUT_S = 60, 20, 300
_FETCHED = Path.home() / ".m2" / "repository" / "org" / "apache" / "jena" / ARTIFACT / VERSION


def is_installed() -> bool:
    """Whether it can be run here: Java is there, and either its jar ($FUSEKI_JAR) or Maven."""
    return shutil.which("java") is not None and (
        "FUSEKI_JAR" in os.environ or shutil.which("mvn") is not None
    )


@dataclass(frozen=True, slots=True)
class RunningFuseki:
    """A dataset that answers at url, and how long it took until it did."""

    url: str
    pid: int
    start_s: float


@contextmanager
def running_fuseki(
    directory: Path, *, indexed: Mapping[str, str] | None = None, query_timeout_s: float | None = None
) -> Iterator[RunningFuseki]:
    """An empty dataset below directory. indexed are the properties that jena-text indexes, by the names of
    their fields, the default field first. A query ends itself after query_timeout_s; without it, one whose
    client has left goes on. Raises BenchmarkError.
    """
    jar, port = _jar(), free_port()
    database = directory / "fuseki"
    database.mkdir()
    command = ["java", "-Xmx2G", "-jar", str(jar), "--localhost", f"--port={port}"]
    if query_timeout_s is not None:
        command.append(f"--timeout={query_timeout_s * 1000:.0f}")
    if indexed is None:
        command += ["--tdb2", f"--loc={database}", "--update", "/ds"]
    else:
        configuration = directory / "fuseki.ttl"
        configuration.write_text(_with_text(database, directory / "lucene", indexed))
        command.append(f"--conf={configuration}")
    with (directory / "fuseki.log").open("wb") as log:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/ds"
            _await(url, process, directory / "fuseki.log")
            yield RunningFuseki(url, process.pid, time.monotonic() - began)
        finally:
            stop(process, STOP_TIMEOUT_S)


def _with_text(database: Path, lucene: Path, indexed: Mapping[str, str]) -> str:
    """The configuration of a dataset with jena-text, as its documentation has it."""
    fields = " ".join(
        f'[ text:field "{name}" ; text:predicate <{predicate}> ]' for name, predicate in indexed.items()
    )
    return f"""PREFIX : <#>
PREFIX fuseki: <http://jena.apache.org/fuseki#>
PREFIX text: <http://jena.apache.org/text#>
PREFIX tdb2: <http://jena.apache.org/2016/tdb#>
[] a fuseki:Server .
:service a fuseki:Service ; fuseki:name "ds" ; fuseki:dataset :dataset ;
    fuseki:endpoint [ fuseki:operation fuseki:query ],
        [ fuseki:operation fuseki:query ; fuseki:name "query" ],
        [ fuseki:operation fuseki:update ; fuseki:name "update" ],
        [ fuseki:operation fuseki:gsp-rw ; fuseki:name "data" ] .
:dataset a text:TextDataset ; text:dataset :quads ; text:index :index .
:quads a tdb2:DatasetTDB2 ; tdb2:location "{database}" .
:index a text:TextIndexLucene ; text:directory <file:{lucene}> ; text:storeValues true ; text:entityMap :map .
:map a text:EntityMap ; text:entityField "uri" ; text:graphField "graph" ; text:langField "lang" ;
    text:uidField "uid" ; text:defaultField "{next(iter(indexed))}" ; text:map ( {fields} ) .
"""


def _jar() -> Path:
    if "FUSEKI_JAR" in os.environ:
        return Path(os.environ["FUSEKI_JAR"])
    jar = _FETCHED / f"{ARTIFACT}-{VERSION}.jar"
    if not jar.exists():
        command = ["mvn", "-q", "dependency:get", f"-Dartifact=org.apache.jena:{ARTIFACT}:{VERSION}"]
        done = subprocess.run(
            [*command, "-Dtransitive=false"],
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_TIMEOUT_S,
        )
        if done.returncode or not jar.exists():
            raise BenchmarkError(f"Maven could not fetch Fuseki: {done.stdout.strip()[-300:]}")
    return jar


def _await(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BenchmarkError(f"Fuseki ended: {log.read_text(errors='replace').strip()[-500:]}")
        try:
            if httpx.get(url, params={"query": "ASK {}"}, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.02)
    raise BenchmarkError("Fuseki did not answer in time")
