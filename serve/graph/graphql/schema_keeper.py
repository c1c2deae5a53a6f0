"""`SchemaKeepers`: the schema that `/graphql` serves, rebuilt when ontology or shapes have changed; and
`/graphql/schema`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import orjson
from pyoxigraph import Triple
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.visibility import Visibility
from graphdb.config.service import GraphQL
from graphdb.errors import GraphDBError
from graphdb.graphql.modelling import Drafts, combined, model_of
from graphdb.graphql.schema import Schema, schema_of
from graphdb.graphql.schema_sources import CLASSES, classes_of, inferred, read_ontology, read_shapes, samples
from graphdb.graphql.schema_triples import schema_triples
from graphdb.history.moments import Moment
from graphdb.shacl.shapes_graph import ShapesGraph
from serve.access.request_scope import visibility_of
from serve.backend import GraphReads, Progress, Queries
from serve.errors import error_response
from serve.graph.query_parameters import read_as_of
from serve.parameters import Parameters

__all__ = ["Ask", "SchemaEndpoint", "SchemaKeepers"]

log = logging.getLogger(__name__)
# a SPARQL query over the visible graph; its answer as tab-separated values
Ask = Callable[[GraphReads, str], Awaitable[bytes]]


class SchemaKeepers:
    """One keeper for each visible part of the graph, so that a schema never discloses hidden data.

    Owned by the application, on the port's event loop.
    """

    def __init__(self, queries: Queries, settings: GraphQL, ask: Ask, keepers_max: int) -> None:
        """See `SchemaKeeper`. Beyond keepers_max the least recently used keeper is dropped."""
        self._queries, self._settings, self._ask, self._keepers_max = queries, settings, ask, keepers_max
        # Principals who always see everything have their own keeper. Others may see the whole graph now
        # (their view's key is None), and less of it after the next write.
        self._keepers: dict[tuple[bool, str | None], SchemaKeeper] = {}

    async def current(self, visibility: Visibility) -> Schema:
        """The schema of the visible graph at present. Raises LimitExceeded, UnavailableError."""
        return (await self.current_at(visibility, None, 0.0))[0]

    async def current_at(
        self, visibility: Visibility, as_of: Moment | None, timeout_s: float
    ) -> tuple[Schema, int]:
        """The schema of the visible graph at a moment, and the log index of that state; see `Queries.reads`.
        Raises as `current` and that.
        """
        reads = await self._queries.reads(visibility, as_of, timeout_s)
        return await self._keeper(visibility, reads).current(reads), reads.snapshot_index()

    async def refresh(self, visibility: Visibility) -> Schema:
        """The schema, rebuilt. Raises as `current`."""
        reads = await self._queries.reads(visibility)
        return await self._keeper(visibility, reads).refresh(reads)

    def _keeper(self, visibility: Visibility, reads: GraphReads) -> "SchemaKeeper":
        key = visibility.is_whole, reads.view_key
        keeper = self._keepers.pop(key, None) or SchemaKeeper(self._settings, self._ask)
        self._keepers[key] = keeper
        if len(self._keepers) > self._keepers_max:
            del self._keepers[next(iter(self._keepers))]
        return keeper


class SchemaKeeper:
    """The schema of one view of the graph.

    A request after a change gets the schema after that change or a later one. One schema is built at a time,
    on a thread, and requests wait for it. If a schema cannot be rebuilt, the previous one stays in use.
    """

    def __init__(self, settings: GraphQL, ask: Ask) -> None:
        """ask: only for `inferred`, whose schema is derived from the data at its first use or refresh."""
        self._source, self._ask = settings.schema_source, ask
        self._subscriptions = settings.subscriptions
        self._schema: Schema | None = None
        self._state: object = None  # from which the schema was built
        self._triples: set[Triple] | None = None
        self._making = asyncio.Lock()

    async def current(self, reads: GraphReads) -> Schema:
        """The schema of the present state. Raises LimitExceeded, UnavailableError."""
        if self._schema is not None and self._holds(reads):
            return self._schema
        async with self._making:
            if self._schema is None or not self._holds(reads):
                await self._make(reads, always=False)
            assert self._schema is not None
            return self._schema

    async def refresh(self, reads: GraphReads) -> Schema:
        """The schema, made anew. Raises as `current`."""
        async with self._making:
            await self._make(reads, always=True)
            assert self._schema is not None
            return self._schema

    def _holds(self, reads: GraphReads) -> bool:
        if self._source == "inferred":
            assert self._schema is not None
            # Every write might change it. An empty one is rebuilt, and so is that of a view, because it might
            # disclose what has become hidden.
            is_kept = reads.view_key is None and bool(self._schema.model.types)
            return is_kept or self._state == reads.snapshot_index()
        return self._state is reads.schema_state()

    async def _make(self, reads: GraphReads, always: bool) -> None:
        try:
            if self._source == "inferred":
                await self._infer(reads)
            else:
                await self._read(reads, always)
        except GraphDBError as error:
            if self._schema is None or always:
                raise
            log.warning("the GraphQL schema stays as it was: %s", error)

    async def _read(self, reads: GraphReads, always: bool) -> None:
        state = reads.schema_state()  # before the store is read: a later change gives a new state
        try:
            made = await asyncio.to_thread(self._made_of_store, reads, always)
            if made is not None:
                self._schema, self._triples = made
        finally:
            self._state = state  # after a failure it is not read again until it has changed

    def _made_of_store(self, reads: GraphReads, always: bool) -> tuple[Schema, set[Triple]] | None:
        """None where what it is made of has not changed."""
        triples = self._schema_triples(reads)
        known = set(triples)
        if known == self._triples and not always:
            return None
        graph = ShapesGraph(sorted(triples, key=str))
        return self._schema_of(self._drafts(graph)), known

    def _schema_triples(self, reads: GraphReads) -> list[Triple]:
        """The engine's iterators must end on their own thread, so no traceback takes them to another."""
        failure: Exception
        try:
            return schema_triples(reads.quads_matching)
        except Exception as error:  # noqa: BLE001 raised below
            failure = error.with_traceback(None)
        raise failure

    def _drafts(self, graph: ShapesGraph) -> Drafts:
        if self._source == "ontology":
            return read_ontology(graph)
        if self._source == "shacl":
            return read_shapes(graph)
        return combined(read_ontology(graph), read_shapes(graph))

    async def _infer(self, reads: GraphReads) -> None:
        index = reads.snapshot_index()
        classes = classes_of(await self._ask(reads, CLASSES))
        answers = [await self._ask(reads, query) for query in samples(classes)]
        self._schema = await asyncio.to_thread(lambda: self._schema_of(inferred(classes, answers)))
        self._state = index

    def _schema_of(self, drafts: Drafts) -> Schema:
        made = schema_of(model_of(drafts), subscriptions=self._subscriptions)
        assert made.sdl  # computed here, on a thread
        return made


class SchemaEndpoint:
    """GET of /graphql/schema, POST of /graphql/schema/refresh."""

    def __init__(
        self, progress: Progress, keepers: SchemaKeepers, introspection: bool, timeout_s: float
    ) -> None:
        """introspection: if it is off, the schema is not served. timeout_s: that a state of the past may take
        to be made.
        """
        self._progress, self._keepers, self._introspection = progress, keepers, introspection
        self._timeout_s = timeout_s

    async def get(self, request: Request) -> Response:
        """The SDL; with `as_of` that of a state of the past."""
        if not self._introspection:
            return error_response(403, "introspection is switched off (graphql.introspection)")
        as_of = read_as_of(Parameters(request.scope["query_string"]))
        schema, index = await self._keepers.current_at(visibility_of(request.scope), as_of, self._timeout_s)
        headers = {
            "Content-Disposition": 'attachment; filename="schema.graphql"',
            "Cache-Control": "no-cache",
            "X-Snapshot-Index": str(index),
        }
        return Response(schema.sdl, headers=headers, media_type="text/plain; charset=utf-8")

    async def refresh(self, request: Request) -> Response:
        """Rebuild the schema, even if ontology, shapes or data have not changed."""
        schema = await self._keepers.refresh(visibility_of(request.scope))
        index, types = self._progress.snapshot_index(), len(schema.model.types)
        body = {
            "success": True,
            "message": f"the schema has {types} types",
            "snapshot_index": index,
            "types": types,
        }
        headers = {"X-Snapshot-Index": str(index)}
        return Response(orjson.dumps(body), headers=headers, media_type="application/json")
