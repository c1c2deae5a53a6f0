"""`DocumentLoader`: reads the documents that LOAD names, before the update that names them has its turn."""

import asyncio
from collections.abc import Callable, Iterable

from pyoxigraph import Quad

from actors.egress.guarded_fetch import Bounds, Call, GuardedFetch
from actors.egress.rules import HostRules
from graphdb.config import Settings
from graphdb.errors import EvaluationFailed, HostNotAllowed, Overloaded, RequestError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.sparql.syntax import Load, Update
from graphdb.updates.planner import names_a_host

__all__ = ["DocumentLoader", "load_fetch"]

_REQUESTS_AT_ONCE = 4  # each may hold documents as large as a body; further ones wait
_DOCUMENTS_IN_FULL = 4  # so many may take their whole time limit until the update that names them gives up
_ACCEPT = ", ".join(syntax.media_type for syntax in RdfSyntax)


def load_fetch(settings: Settings) -> GuardedFetch:
    """What reads documents, by these settings."""
    return GuardedFetch(
        HostRules("LOAD", settings.security.load_allow),
        Bounds(
            settings.security.load_timeout_seconds,
            "security.load_timeout_seconds",
            settings.server.max_body_bytes,
            "server.max_body_bytes",
        ),
    )


class DocumentLoader:
    """For any number of updates at a time, on one event loop."""

    def __init__(self, fetch: GuardedFetch) -> None:
        self._fetch = fetch
        self._turns = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    def allows(self, source: str) -> bool:
        """Whether LOAD may name this IRI."""
        return self._fetch.rules.allows(source)

    async def load(self, update: Update) -> Callable[[Load], Iterable[Quad]]:
        """Read all documents of an update; the result gives the quads of one, or raises what went wrong.

        The documents together may be as large as one, and take four times as long, waiting for a turn
        included: the bytes of one that failed do not count, its time does.
        Raises HostNotAllowed, SILENT or not, EvaluationFailed where LOAD is not SILENT, Overloaded.
        """
        loads = [operation for operation in update.operations if isinstance(operation, Load)]
        documents: dict[Load, list[Quad] | RequestError] = {}
        if loads:
            limit_s = _DOCUMENTS_IN_FULL * self._fetch.bounds.timeout_s
            try:
                async with asyncio.timeout(limit_s), self._turns:
                    await self._read(loads, documents)
            except TimeoutError:
                raise Overloaded(f"the documents of LOAD could not be read within {limit_s:g} s", 5) from None

        def quads(load: Load) -> Iterable[Quad]:
            found = documents[load]
            if isinstance(found, RequestError):
                raise found
            return found

        return quads

    async def _read(self, loads: list[Load], documents: dict[Load, list[Quad] | RequestError]) -> None:
        bytes_left = self._fetch.bounds.bytes_max
        for load in loads:
            try:
                size, documents[load] = await self._document(load.source.value, bytes_left)
                bytes_left -= size
            except HostNotAllowed as refused:
                if not load.silent or names_a_host(load):
                    raise
                documents[load] = refused
            except EvaluationFailed as failed:
                if not load.silent:
                    raise
                documents[load] = failed

    async def _document(self, url: str, bytes_max: int) -> tuple[int, list[Quad]]:
        """The size and the quads of a document. Raises HostNotAllowed, EvaluationFailed."""
        fetched = await self._fetch.fetch(Call(url, headers=(("Accept", _ACCEPT),)), bytes_max)
        if fetched.status != 200:
            raise EvaluationFailed(f"LOAD <{url}>: the host answers {fetched.status}")
        try:
            syntax = RdfSyntax.from_media_type(fetched.content_type)
            quads = await asyncio.to_thread(_quads, fetched.body, syntax, fetched.url)
        except RequestError as error:
            raise EvaluationFailed(f"LOAD <{url}>: {error}") from error
        return len(fetched.body), quads


def _quads(document: bytes, syntax: RdfSyntax, base_iri: str) -> list[Quad]:
    return list(read_quads(document, syntax, base_iri=base_iri))
