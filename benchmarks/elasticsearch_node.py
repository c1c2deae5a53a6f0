"""Elasticsearch 8, the peer of the search port, where there is a JDK, and Maven to fetch its libraries.

Its server is published as a library, and so are Lucene and Netty; `ElasticsearchNode.java` starts a node of
these in one process. What is not published is missing: X-Pack, the modules, its own HTTP by Netty
(ours takes its place), and the native library and Java 21 with which it compares vectors by SIMD.
"""

import os
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.service import BenchmarkError, free_port, stop

__all__ = ["VERSION", "RunningElasticsearch", "missing", "running_elasticsearch"]

VERSION, NETTY = "8.19.21", "4.1.118.Final"
HEAP = "2g"
READY_TIMEOUT_S, STOP_TIMEOUT_S, FETCH_TIMEOUT_S = 120, 30, 600
_SOURCE = Path(__file__).with_name("ElasticsearchNode.java")
_TOOLS = ("java", "javac", "mvn")
_DESCRIPTOR = f"""name=library
description=what is not published as a library
version=1
elasticsearch.version={VERSION}
java.version=17
classname=ElasticsearchNode
"""
_LOGGING = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1.} %m%n%ex
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def missing() -> str | None:
    """Why it cannot be run here, None if it can."""
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


@dataclass(frozen=True, slots=True)
class RunningElasticsearch:
    """A node that answers at a port of 127.0.0.1."""

    port: int
    pid: int
    data_dir: Path


@contextmanager
def running_elasticsearch(directory: Path) -> Iterator[RunningElasticsearch]:
    """An empty node with its data below directory. Raises BenchmarkError."""
    home, port = directory / "elasticsearch", free_port()
    class_path = _libraries(directory)
    start = _compile(directory, home, class_path)
    command = ["java", f"-Xms{HEAP}", f"-Xmx{HEAP}", "-cp", f"{start}{os.pathsep}{class_path}", "Start"]
    with (directory / "elasticsearch.log").open("wb") as log:
        process = subprocess.Popen([*command, str(home), str(port)], cwd=directory, stdout=log, stderr=log)
        try:
            _await(port, process, directory / "elasticsearch.log")
            yield RunningElasticsearch(port, process.pid, home / "data")
        finally:
            stop(process, STOP_TIMEOUT_S)


def _libraries(directory: Path) -> str:
    """Their class path, of files in Maven's own cache; it fetches those that are not there."""
    wanted = (("org.elasticsearch", "elasticsearch", VERSION), ("io.netty", "netty-codec-http", NETTY))
    listed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in wanted
    )
    project = directory / "pom.xml"
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>benchmarks</groupId><artifactId>elasticsearch</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{listed}</dependencies></project>"
    )
    found = directory / "class_path"
    _run("mvn", "-q", "-B", f"--file={project}", "dependency:build-classpath", f"-Dmdep.outputFile={found}")
    return found.read_text().strip()


def _compile(directory: Path, home: Path, class_path: str) -> Path:
    """The directory of the class that starts. The others belong to a plugin, which the node loads itself."""
    classes, start, plugin = directory / "classes", directory / "start", home / "plugins" / "library"
    for each in (start, plugin, home / "config", home / "modules", home / "logs"):
        each.mkdir(parents=True)
    _run("javac", "-nowarn", "-d", str(classes), "-cp", class_path, str(_SOURCE))
    with zipfile.ZipFile(plugin / "library.jar", "w") as jar:
        for path in sorted(classes.iterdir()):
            if path.name.startswith("Start"):
                path.rename(start / path.name)
            else:
                jar.write(path, path.name)
    (plugin / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
    (start / "log4j2.properties").write_text(_LOGGING)
    return start


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S)
    if done.returncode:
        raise BenchmarkError(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-500:]}")


def _await(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BenchmarkError(f"Elasticsearch ended: {log.read_text(errors='replace').strip()[-500:]}")
        try:
            url = f"http://127.0.0.1:{port}/_cluster/health"
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise BenchmarkError("Elasticsearch did not answer in time")
