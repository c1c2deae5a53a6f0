"""Bodies that are read as a whole before they are used: in memory while they are small, else in a file."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import IO

from pyoxigraph import Quad

from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads

__all__ = ["as_lines", "spooled_body"]

_SPOOL_BYTES = 1 << 20


async def spooled_body(chunks: AsyncIterator[bytes]) -> IO[bytes]:
    """The whole body, at its beginning. The caller closes it."""
    spool = SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 handed out
    try:
        async for chunk in chunks:
            spool.write(chunk)
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return spool


@asynccontextmanager
async def as_lines(
    body: AsyncIterator[bytes], read: Callable[[IO[bytes]], Iterable[Quad]], syntax: RdfSyntax
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The quads of a body in a syntax that nodes read. read is called on another thread; what it raises comes
    out.
    """
    with await spooled_body(body) as document, SpooledTemporaryFile(_SPOOL_BYTES) as lines:

        def rewrite() -> None:
            for chunk in write_quads(read(document), syntax):
                lines.write(chunk)
            lines.seek(0)

        await asyncio.to_thread(rewrite)
        yield _pieces(lines)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := file.read(_SPOOL_BYTES):
        yield piece
