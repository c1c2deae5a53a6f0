"""A process that makes lines of a document, and compares them with a store (`graphdb.store.document_lines`).

`convert` and `compare` run it, `python -m actors.shard.lines_process`: its task on standard input, its
answer on standard output, both JSON. It gives way to others, and may crash, fill its memory or hang: then it
has no answer. A comparison holds the writer's turn, so one that stands still is ended soon.
"""

import json
import logging
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from pyoxigraph import Store

from actors.process_bounds import NICENESS, settle
from graphdb.model import NamedGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.store.document_lines import DocumentLines, difference, document_lines, graph_of_text
from graphdb.store.line_rewriting import is_of_lines, salted_labels

__all__ = ["compare", "convert"]

logger = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[2]  # where `actors` is found, also when it is not installed
_MEMORY_MB = 1024
_IN_MEMORY_BYTES = 128 << 20  # of a document that is not of lines, which take some 450 MB
_SALT_BYTES = 16
_ON_DISK_MEMORY_MB = 4096  # the engine sorts a million quads at a time on each of its threads
# Until it is given up. A machine that is idle does some MB in a second; where others keep the processors
# busy, the process gets a tenth of them.
_LIMIT_S, _LIMIT_BYTES_A_SECOND = 120.0, 100_000
# Before that, where it does nothing: one that computes or reads has used the processor between some two of
# the looks. Looks are counted, not seconds, for this process may stand still together with that one.
_LOOK_S, _STILL_LOOKS = 0.5, 40


@dataclass(frozen=True, slots=True)
class _Conversion:
    """See `document_lines`. staging is a directory to be made for a store, None for one in memory."""

    document: str
    media_type: str
    lines: str
    staging: str | None
    base_iri: str | None
    graph: str | None
    salt: str | None  # of the labels of blank nodes, in hexadecimal; None: they keep theirs

    def size_bytes(self) -> int:
        """What is read."""
        return Path(self.document).stat().st_size

    def perform(self) -> dict[str, Any]:
        found = document_lines(
            Path(self.document),
            RdfSyntax.from_media_type(self.media_type),
            Path(self.lines),
            Store(self.staging) if self.staging else Store(),
            base_iri=self.base_iri,
            graph=graph_of_text(self.graph),
            labels=None if self.salt is None else salted_labels(bytes.fromhex(self.salt)),
        )
        return {"count": found.count, "graphs": [*map(_text, found.graphs)]}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """See `difference`. store is the directory of a copy of a store."""

    lines: str
    store: str
    filled: list[str | None]
    added: str
    removed: str | None

    def size_bytes(self) -> int:
        """What is read, of the store at most."""
        return sum(path.stat().st_size for path in (Path(self.lines), *Path(self.store).iterdir()))

    def perform(self) -> dict[str, Any]:
        removed = Path(self.removed) if self.removed else None
        store = Store.read_only(self.store)
        filled = [*map(graph_of_text, self.filled)]
        return {"clears": difference(Path(self.lines), store, filled, Path(self.added), removed)}


_TASKS = {task.__name__: task for task in (_Conversion, _Comparison)}


def convert(
    document: Path,
    syntax: RdfSyntax,
    lines: Path,
    *,
    base_iri: str | None,
    graph: NamedGraph | None,
    keep_blank_nodes: bool,
) -> DocumentLines | None:
    """`document_lines`, in a process of its own. Blocks until it is done, and leaves only lines.

    None where the document has to be read a quad at a time.
    """
    staging = document.with_name("staging")
    salt = None if keep_blank_nodes else secrets.token_hex(_SALT_BYTES)
    task = _Conversion(str(document), syntax.media_type, str(lines), None, base_iri, _text(graph), salt)
    in_memory = is_of_lines(syntax) or document.stat().st_size <= _IN_MEMORY_BYTES
    answer = _ask(task, _MEMORY_MB) if in_memory else _NO_ROOM
    if answer is _NO_ROOM:
        answer = _ask(replace(task, staging=str(staging)), _ON_DISK_MEMORY_MB)
    if answer is None or answer is _NO_ROOM:
        return None
    return DocumentLines(answer["count"], tuple(map(graph_of_text, answer["graphs"])))


def compare(
    lines: Path, store: Path, filled: Collection[NamedGraph | None], added: Path, removed: Path | None
) -> bool | None:
    """`difference`, in a process of its own, with the copy of a store. Blocks until it is done; None where it
    could not be.
    """
    gone = str(removed) if removed is not None else None
    task = _Comparison(str(lines), str(store), [*map(_text, filled)], str(added), gone)
    answer = _ask(task, _MEMORY_MB)
    return None if answer is None or answer is _NO_ROOM else answer["clears"]


_NO_ROOM: dict[str, Any] = {"ended": "by a signal"}


def _ask(task: _Conversion | _Comparison, memory_mb: int) -> dict[str, Any] | None:
    """The answer; None where there is an error or it takes too long, _NO_ROOM where the process was ended."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, type(task).__name__, str(memory_mb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env=os.environ | {"RUST_BACKTRACE": "0"},
        )
    except OSError as error:
        logger.warning("a large document is read slowly: %s", error)
        return None
    with suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    try:
        answer = _answer(process, task)
    except TimeoutError as error:
        process.kill()
        process.communicate()
        logger.warning("a large document is read slowly: its process %s", error)
        return None
    if process.returncode:
        return _NO_ROOM if process.returncode < 0 else None
    found: dict[str, Any] = json.loads(answer)
    return found


def _answer(process: "subprocess.Popen[bytes]", task: _Conversion | _Comparison) -> bytes:
    """What it writes until it ends. Raises TimeoutError where it stands still, or works for too long."""
    limit_s = _LIMIT_S + task.size_bytes() / _LIMIT_BYTES_A_SECOND
    gives_up_at = time.monotonic() + limit_s
    given: bytes | None = json.dumps(asdict(task)).encode()
    used_s, still = 0.0, 0
    while True:
        try:
            return process.communicate(given, _LOOK_S)[0]
        except subprocess.TimeoutExpired:
            given = None  # it is kept where not all of it is sent yet
        used_before_s, used_s = used_s, _processor_s(process.pid)
        still = 0 if used_s > used_before_s else still + 1
        if still == _STILL_LOOKS:
            raise TimeoutError(f"did nothing for {still * _LOOK_S:g} s")
        if time.monotonic() > gives_up_at:
            raise TimeoutError(f"had no answer after {limit_s:.0f} s")


def _processor_s(pid: int) -> float:
    """Processor time of a child, all its threads'; 0 where it has ended."""
    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return 0.0


def _text(graph: NamedGraph | None) -> str | None:
    return None if graph is None else str(graph)


def _main() -> None:
    name, memory_mb = sys.argv[1:]
    settle(int(memory_mb))
    sys.stdout.write(json.dumps(_TASKS[name](**json.load(sys.stdin)).perform()))


if __name__ == "__main__":
    _main()
