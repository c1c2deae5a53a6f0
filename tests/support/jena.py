"""Programs over the libraries of Apache Jena, which Maven fetches once: compiled and run."""

import fcntl
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.npm_packages import cache_directory

__all__ = ["run_program", "why_no_jena"]

_VERSION = "5.6.0"
_PROGRAMS = Path(__file__).parent
_TIMEOUT_S = 300
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>graphdb</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.jena</groupId><artifactId>jena-rdfconnection</artifactId>
      <version>{_VERSION}</version></dependency>
    <dependency><groupId>org.apache.jena</groupId><artifactId>jena-rdfpatch</artifactId>
      <version>{_VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
  </dependencies>
</project>
"""


@cache
def why_no_jena() -> str | None:
    """The reason why the libraries cannot be had here; None where they can. The first call fetches 15 MB."""
    missing = [one for one in ("java", "javac", "mvn") if not shutil.which(one)]
    if missing:
        return f"there is no {' and no '.join(missing)}: apt-get install default-jdk maven"
    directory = _directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _fetch(directory)


def run_program(name: str, *arguments: str) -> list[str]:
    """Compile a program beside this module, and run it. Returns the lines that it writes. Ask `why_no_jena`
    before.
    """
    directory = _directory()
    classes = directory / "classes"
    libraries = f"{directory / 'lib'}/*"
    source = str(_PROGRAMS / f"{name}.java")
    _run(["javac", "-cp", libraries, "-d", str(classes), source])
    return _run(["java", "-Xmx256m", "-cp", f"{libraries}:{classes}", name, *arguments]).splitlines()


def _directory() -> Path:
    return cache_directory("jena")


def _fetch(directory: Path) -> str | None:
    stamp = directory / "installed"
    if stamp.exists() and stamp.read_text() == _POM:
        return None
    pom = directory / "pom.xml"
    pom.write_text(_POM)
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    try:
        made = subprocess.run(
            [*command, f"-DoutputDirectory={directory / 'lib'}"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return "Maven did not fetch Jena in time"
    if made.returncode:
        return f"Maven cannot fetch Jena: {made.stdout.strip()[-300:]}"
    stamp.write_text(_POM)
    return None


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
