"""Java programs that tests run: compiled once against artifacts of Maven, beside the caches of the user."""

import fcntl
import shutil
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

__all__ = ["run_java", "why_no_java"]

_ROOT = Path.home() / ".cache" / "graphdb-tests"
_FETCH_S, _COMPILE_S, _RUN_S = 240, 120, 120
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
_DEPENDENCY = (
    """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"""
)


@cache
def why_no_java(source: Path, artifacts: tuple[str, ...]) -> str | None:
    """The reason why a program cannot run here; None where it can. The first call fetches what it needs, and
    compiles it. artifacts: group:artifact:version.
    """
    missing = [one for one in ("java", "javac", "mvn") if not shutil.which(one)]
    if missing:
        return f"there is no {' and no '.join(missing)}: apt-get install default-jdk-headless maven"
    directory = _directory(source)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, wanted = directory / "made", f"{_digest(source)} {' '.join(artifacts)}"
        if stamp.exists() and stamp.read_text() == wanted:
            return None
        reason = _fetch(directory, artifacts) or _compile(directory, source)
        if reason is None:
            stamp.write_text(wanted)
        return reason


def run_java(source: Path, *arguments: str, timeout_s: float = _RUN_S) -> str:
    """What the program prints. Ask `why_no_java` before. Fails if the program fails."""
    directory = _directory(source)
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{directory}:{directory}/jars/*"]
    done = subprocess.run(
        [*command, source.stem, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _directory(source: Path) -> Path:
    return _ROOT / source.stem


def _digest(source: Path) -> str:
    return sha256(source.read_bytes()).hexdigest()


def _fetch(directory: Path, artifacts: tuple[str, ...]) -> str | None:
    dependencies = "".join(_DEPENDENCY.format(*one.split(":")) for one in artifacts)
    (directory / "pom.xml").write_text(_POM.format(dependencies))
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory}/jars"]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=_FETCH_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"Maven did not fetch {', '.join(artifacts)} in time"
    return f"Maven cannot fetch them: {done.stdout.strip()[-300:]}" if done.returncode else None


def _compile(directory: Path, source: Path) -> str | None:
    command = ["javac", "-nowarn", "-d", str(directory), "-cp", f"{directory}/jars/*", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_S, check=False)
    assert done.returncode == 0, done.stderr
    return None
