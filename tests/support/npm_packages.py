"""Packages of npm that tests run in a process of Node: installed once, beside the caches of the user."""

import fcntl
import shutil
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["cache_directory", "npm_directory", "why_not_installed"]

_ROOT = Path.home() / ".cache" / "graphdb-tests"


def cache_directory(name: str) -> Path:
    """A directory for what is fetched once and kept between runs."""
    return _ROOT / name


def npm_directory(name: str) -> Path:
    """Where the packages of this name are; scripts that import them belong there."""
    return cache_directory(name)


@cache
def why_not_installed(name: str, packages: tuple[str, ...]) -> str | None:
    """The reason why packages cannot be had here; None where they can. The first call installs them."""
    missing = [one for one in ("node", "npm") if not shutil.which(one)]
    if missing:
        return f"there is no {' and no '.join(missing)}: apt-get install nodejs npm"
    directory = npm_directory(name)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _install(name, directory, packages)


def _install(name: str, directory: Path, packages: tuple[str, ...]) -> str | None:
    stamp, wanted = directory / "installed", " ".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    command = ["npm", "install", "--prefix", str(directory), "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        made = subprocess.run([*command, *packages], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return f"npm did not install {name} within five minutes"
    if made.returncode:
        return f"npm cannot install {name}: {made.stderr.strip()[-300:]}"
    stamp.write_text(wanted)
    return None
