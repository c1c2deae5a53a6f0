"""`ServerProcess`: a server that tests start on a loopback port of its own, stop, hang and start again."""

import os
import signal
import socket
import subprocess
import time

__all__ = ["ServerProcess"]

_START_S = 20


class ServerProcess:
    """At most one process at a time; close it at last."""

    def __init__(self, command: list[str], port: int) -> None:
        """command makes it listen on the port of 127.0.0.1, in the foreground."""
        self._command, self._port = command, port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers."""
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdout=quiet, stderr=quiet)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                assert self._process.poll() is None, f"{self._command[0]} has ended"
                assert time.monotonic() < deadline, f"{self._command[0]} does not answer"
                time.sleep(0.02)

    def stop(self) -> None:
        """It is shut down, until it is started again."""
        self._end(signal.SIGTERM)

    def close(self) -> None:
        """It is gone."""
        self._end(signal.SIGKILL)

    def hang(self) -> None:
        """It takes connections and answers nothing until `wake`. Returns when its threads have stopped."""
        self._send(signal.SIGSTOP)
        assert self._process is not None
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def wake(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._send(number)
            self._process.wait()
            self._process = None
