"""`WriteChecks`: validations of writes that look at much, by readers.

They are made in the writer's turn, on its thread, where nothing could stop the engine. So a reader makes
them, on a checkpoint of the state that the write would leave behind, within the time limit of a query.
"""

import asyncio
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from pyoxigraph import NamedNode

from actors.readers.client import ReaderClient
from actors.readers.fetching import fetch
from actors.readers.protocol import ValidationTask
from actors.readers.running_queries import RunningQueries
from graphdb.config.limits import GateLimits
from graphdb.errors import QueryTimeout
from graphdb.rdf.formats import RdfSyntax
from graphdb.shacl.change_check import texts_of_terms
from graphdb.shacl.shapes import Shapes
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import Term

__all__ = ["WriteChecks"]


class WriteChecks:
    """Owned by a node; used on the writer's thread."""

    def __init__(
        self,
        readers: ReaderClient,
        running: RunningQueries,
        directory: Path,
        timeout_s: float,
        limits: GateLimits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """directory is on the store's file system; limits are for SPARQL in the shapes; readers and running
        are used on loop.
        """
        self._readers, self._running = readers, running
        self._directory, self._timeout_s, self._loop = directory, timeout_s, loop
        self.limits = limits

    def validate(
        self, shapes: NamedNode | Shapes, data_graph: str, store: QuadStore, focus: Iterable[Term] | None
    ) -> dict[str, Any]:
        """The report (`graphdb.shacl.change_check`) of the store as it is: of these nodes, or for None of all
        targets; by shapes that are given, or those of a named graph. Blocks.

        Raises MalformedShapes, QueryTimeout and what else readers raise, Overloaded, StorageFull.
        """
        path = self._directory / f"check-{secrets.token_hex(8)}"
        named = shapes.value if isinstance(shapes, NamedNode) else None
        whose = f"the shapes of {shapes}" if named is not None else "the shapes of all graphs"
        task = ValidationTask(
            str(path),
            data_graph,
            shapes_graph=named,
            shapes=b"" if isinstance(shapes, NamedNode) else _document(shapes),
            shapes_type=RdfSyntax.N_TRIPLES.value,
            is_write_check=True,
            focus=None if focus is None else texts_of_terms(focus),
            limits=self.limits.figures(),
        )
        pieces: list[bytes] = []
        try:
            store.checkpoint(path)
            fetching = self._fetch(task, f"check a write against {whose}", pieces)
            asyncio.run_coroutine_threadsafe(fetching, self._loop).result()
        except QueryTimeout:
            raise QueryTimeout(
                f"checking the write against {whose} took longer than "
                f"{self._timeout_s:g} s; nothing was stored"
            ) from None
        finally:
            shutil.rmtree(path, ignore_errors=True)
        report: dict[str, Any] = orjson.loads(b"".join(pieces))
        return report

    async def _fetch(self, task: ValidationTask, text: str, pieces: list[bytes]) -> None:
        with self._running.listed(text, "VALIDATE") as run:
            await fetch(self._readers, run, task, self._timeout_s, pieces.append)


def _document(shapes: Shapes) -> bytes:
    return b"".join(f"{triple} .\n".encode() for triple in shapes.triples)
