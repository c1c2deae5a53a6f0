"""`NpmPeer`: the npm package graphql-ws, by which most pages subscribe, in a process of Node."""

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["NpmPeer", "npm_peer", "why_no_npm"]

_PACKAGES = ("graphql-ws@6.4.2", "graphql@16.15.0", "ws@8.23.0")
_SCRIPT = Path(__file__).with_name("graphql_ws_peer.mjs")
_DIRECTORY = Path.home() / ".cache" / "graphdb-tests" / "graphql-ws"


@cache
def why_no_npm() -> str | None:
    """The reason why the client cannot run here; None where it can. It is installed at the first call."""
    missing = [one for one in ("node", "npm") if not shutil.which(one)]
    if missing:
        return f"there is no {' and no '.join(missing)}: apt-get install nodejs npm"
    _DIRECTORY.mkdir(parents=True, exist_ok=True)
    stamp, wanted = _DIRECTORY / "installed", " ".join(_PACKAGES)
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    command = ["npm", "install", "--prefix", str(_DIRECTORY), "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        made = subprocess.run([*command, *_PACKAGES], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "npm did not install graphql-ws within two minutes"
    if made.returncode:
        return f"npm cannot install graphql-ws: {made.stderr.strip()[-300:]}"
    stamp.write_text(wanted)
    return None


class NpmPeer:
    """One subscription. heard: all results up to now."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.heard: list[dict[str, Any]] = []
        self.connections = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def wait(self, kind: str, timeout_s: float = 60) -> Any:
        """The next line of a kind: connected, next, complete."""
        while True:
            line = self._lines.get(timeout=timeout_s)
            assert "error" not in line, line
            self.connections += "connected" in line
            if "next" in line:
                self.heard.append(line["next"])
            if kind in line:
                return line[kind]

    def end(self) -> None:
        """Have the client complete the subscription."""
        assert self._process.stdin is not None
        self._process.stdin.write("end\n")
        self._process.stdin.flush()
        self.wait("complete")
        assert self._process.wait(20) == 0


@contextmanager
def npm_peer(base_url: str, query: str, since: int) -> Iterator[NpmPeer]:
    """Ask `why_no_npm` before."""
    script = shutil.copy(_SCRIPT, _DIRECTORY)  # beside what it imports
    url = f"{base_url.replace('http', 'ws', 1)}/graphql/ws"
    with subprocess.Popen(
        ["node", script, url, query, str(since)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield NpmPeer(process)
        finally:
            process.kill()
