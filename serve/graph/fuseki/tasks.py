"""Backups as Fuseki makes them, N-Quads in a compressed file of the server, and the tasks that make them."""

import gzip
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyoxigraph import Quad

from graphdb.errors import NotFound, Overloaded
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads
from graphdb.timestamps import iso_timestamp

__all__ = ["Backups", "Task", "Tasks"]

log = logging.getLogger(__name__)

_KEPT = 100  # tasks that are listed after they have ended
_STOP_S = 10.0
_PARTIAL = ".partial"


@dataclass(slots=True)
class Task:
    """One task; times are milliseconds of the Unix epoch."""

    number: int
    kind: str
    started_ms: int
    finished_ms: int | None = None
    succeeded: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """As Fuseki shows it."""
        found: dict[str, Any] = {
            "task": self.kind,
            "taskId": str(self.number),
            "started": iso_timestamp(self.started_ms),
        }
        if self.finished_ms is not None:
            found |= {"finished": iso_timestamp(self.finished_ms), "success": self.succeeded}
        return found


class Stopped(Exception):
    """The service stops, and the task with it."""


@dataclass(slots=True)
class Tasks:
    """The tasks of one application, one at a time, each on a thread of its own. On the event loop, but for
    what the threads do.
    """

    _tasks: deque[Task] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _count: int = 0
    _thread: threading.Thread | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self, kind: str, work: Callable[[Callable[[], None]], object]) -> Task:
        """Begin a task. work calls its argument often, which ends the task when the service stops.

        Raises Overloaded while another task runs.
        """
        if self._thread is not None and self._thread.is_alive():
            raise Overloaded("another task is running: see /$/tasks")
        self._count += 1
        task = Task(self._count, kind, _now_ms())
        self._tasks.append(task)
        self._thread = threading.Thread(target=self._run, args=(task, work), name=kind, daemon=True)
        self._thread.start()
        return task

    def all(self) -> list[Task]:
        """The running task and the last ended ones, the oldest first."""
        return list(self._tasks)

    def one(self, number: str) -> Task:
        """Raises NotFound."""
        for task in self._tasks:
            if str(task.number) == number:
                return task
        raise NotFound("task", number[:100])

    def stop(self) -> None:
        """End the running task, which leaves nothing behind."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)

    def _run(self, task: Task, work: Callable[[Callable[[], None]], object]) -> None:
        try:
            work(self._check)
            task.succeeded = True
        except Exception as error:  # noqa: BLE001 whatever it is, the task has failed
            task.succeeded = False
            log.warning("the task %s failed: %s", task.kind, error)
        finally:
            task.finished_ms = _now_ms()

    def _check(self) -> None:
        if self._stopping.is_set():
            raise Stopped


@dataclass(frozen=True, slots=True)
class Backups:
    """The directory of backups. A file there is complete, and on disk."""

    directory: Path

    def write(self, name: str, read: Callable[[], Iterator[Quad]], check: Callable[[], None]) -> Path:
        """Write a backup, of a dataset of this name. read: called on this thread, which alone may use the
        iterator. Raises OSError, and what check and read raise.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self._new_path(name)
        partial = path.with_name(path.name + _PARTIAL)
        try:
            with partial.open("xb") as file:
                with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6) as compressed:
                    for chunk in write_quads(read(), RdfSyntax.N_QUADS):
                        check()
                        compressed.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
        return path

    def names(self) -> list[str]:
        """The files, sorted."""
        if not self.directory.is_dir():
            return []
        return sorted(path.name for path in self.directory.iterdir() if path.suffix != _PARTIAL)

    def _new_path(self, name: str) -> Path:
        """Named by the time, as those of Fuseki are."""
        stem = f"{name}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
        number, path = 1, self.directory / f"{stem}.nq.gz"
        while path.exists():
            number, path = number + 1, self.directory / f"{stem}-{number}.nq.gz"
        return path


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
