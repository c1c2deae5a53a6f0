"""Python packages that tests run in an environment of their own, because they bring many others."""

import fcntl
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.support.npm_packages import cache_directory

__all__ = ["run_apart", "why_not_apart"]

_UV = Path(sys.prefix) / "uv/bin/uv"
_PROGRAMS = Path(__file__).parent / "apart"
_TIMEOUT_S = 300


@cache
def why_not_apart(name: str, packages: tuple[str, ...]) -> str | None:
    """The reason why packages cannot be had here; None where they can. The first call installs them."""
    if not _UV.exists():
        return "there is no uv beside the environment: scripts/test puts it there"
    directory = cache_directory(name)
    directory.mkdir(parents=True, exist_ok=True)
    stamp, wanted = directory / "installed", " ".join((*packages, sys.version))
    with (directory / "lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return None
        environment = str(directory / "environment")
        for command in (
            ["venv", "--quiet", "--clear", "--python", sys.executable, environment],
            ["pip", "install", "--quiet", "--python", environment, *packages],
        ):
            try:
                made = subprocess.run([_UV, *command], capture_output=True, text=True, timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                return f"uv did not install {name} in time"
            if made.returncode:
                return f"uv cannot install {name}: {made.stderr.strip()[-300:]}"
        stamp.write_text(wanted)
    return None


def run_apart(name: str, program: str, *arguments: str) -> list[str]:
    """Run a program of `tests/support/apart` in the environment of this name. Returns the lines that it
    writes. Ask `why_not_apart` before.
    """
    python = cache_directory(name) / "environment/bin/python"
    done = subprocess.run(
        [python, "-W", "ignore", _PROGRAMS / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
