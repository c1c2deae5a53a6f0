"""Quads on their way to the backend: N-Quads, made on a worker thread while they are read."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from pyoxigraph import Quad

from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads
from serve.answers import Pipe, Workers

__all__ = ["nquads"]


@asynccontextmanager
async def nquads(
    workers: Workers, quads: Callable[[], Iterable[Quad]]
) -> AsyncIterator[AsyncIterator[bytes]]:
    """A document of the quads, in pieces; what making them raises is raised where they are read."""
    pipe = Pipe()

    def produce(pipe: Pipe) -> None:
        for chunk in write_quads(quads(), RdfSyntax.N_QUADS):
            pipe.write(chunk)

    workers.start(produce, pipe)
    try:
        yield _pieces(pipe)
    finally:
        pipe.close()


async def _pieces(pipe: Pipe) -> AsyncIterator[bytes]:
    while True:
        piece = await pipe.read()
        yield piece.data
        if piece.is_last:
            return
