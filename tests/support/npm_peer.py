"""`NpmPeer`: the npm package graphql-ws, by which most pages subscribe, in a process of Node."""

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.npm_packages import npm_directory, why_not_installed

__all__ = ["NpmPeer", "npm_peer", "why_no_npm"]

_PACKAGES = ("graphql-ws@6.4.2", "graphql@16.15.0", "ws@8.23.0")
_SCRIPT = Path(__file__).with_name("graphql_ws_peer.mjs")
_NAME = "graphql-ws"


def why_no_npm() -> str | None:
    """The reason why the client cannot run here; None where it can. It is installed at the first call."""
    return why_not_installed(_NAME, _PACKAGES)


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
    script = shutil.copy(_SCRIPT, npm_directory(_NAME))  # beside what it imports
    url = f"{base_url.replace('http', 'ws', 1)}/graphql/ws"
    with subprocess.Popen(
        ["node", script, url, query, str(since)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield NpmPeer(process)
        finally:
            process.kill()
