"""`SchemaKeeper`: the schema that `/graphql` serves, made anew whenever ontology or shapes have changed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pyoxigraph import Triple

from graphdb.config.service import GraphQL
from graphdb.errors import GraphDBError
from graphdb.graphql.drafts import Drafts, combined
from graphdb.graphql.inference import CLASSES, classes_of, inferred, samples
from graphdb.graphql.modelling import model_of
from graphdb.graphql.ontology import read_ontology
from graphdb.graphql.schema import Schema, schema_of
from graphdb.graphql.shape_source import read_shapes
from graphdb.graphql.vocabulary import vocabulary
from graphdb.shacl.shapes_graph import ShapesGraph
from serve.backend import Backend

__all__ = ["Ask", "SchemaKeeper"]

log = logging.getLogger(__name__)

Ask = Callable[[str], Awaitable[bytes]]  # a SPARQL query; its answer as tab-separated values


class SchemaKeeper:
    """Owned by the application, on the port's event loop.

    A request that comes after a change is answered by the schema of that change, or a later one. Made is one
    schema at a time, on a thread; whoever wants it waits. What cannot be made anew stays as it was.
    """

    def __init__(self, backend: Backend, settings: GraphQL, ask: Ask) -> None:
        """ask is wanted for `inferred` alone, whose schema is of the data at its first use or refresh."""
        self._backend, self._source, self._ask = backend, settings.schema_source, ask
        self._subscriptions = settings.subscriptions
        self._schema: Schema | None = None
        self._state: object = None  # that the schema was made of
        self._triples: set[Triple] | None = None
        self._making = asyncio.Lock()

    async def current(self) -> Schema:
        """The schema of the present state. Raises LimitExceeded, UnavailableError."""
        if self._schema is not None and self._holds():
            return self._schema
        async with self._making:
            if self._schema is None or not self._holds():
                await self._make(always=False)
            assert self._schema is not None
            return self._schema

    async def refresh(self) -> Schema:
        """The schema, made anew. Raises as `current`."""
        async with self._making:
            await self._make(always=True)
            assert self._schema is not None
            return self._schema

    def _holds(self) -> bool:
        if self._source == "inferred":  # every write might change it; an empty one is of no use to anybody
            assert self._schema is not None
            return bool(self._schema.model.types) or self._state == self._backend.snapshot_index()
        return self._state is self._backend.schema_state()

    async def _make(self, always: bool) -> None:
        try:
            if self._source == "inferred":
                await self._infer()
            else:
                await self._read(always)
        except GraphDBError as error:
            if self._schema is None or always:
                raise
            log.warning("the GraphQL schema stays as it was: %s", error)

    async def _read(self, always: bool) -> None:
        state = self._backend.schema_state()  # before the store is read: what comes later is seen later
        try:
            made = await asyncio.to_thread(self._made_of_store, always)
            if made is not None:
                self._schema, self._triples = made
        finally:
            self._state = state  # what could not be read is not read again until it has changed

    def _made_of_store(self, always: bool) -> tuple[Schema, set[Triple]] | None:
        """None where what it is made of has not changed."""
        triples = self._vocabulary()
        known = set(triples)
        if known == self._triples and not always:
            return None
        graph = ShapesGraph(sorted(triples, key=str))
        return self._schema_of(self._drafts(graph)), known

    def _vocabulary(self) -> list[Triple]:
        """The engine's iterators must end on their own thread, so no traceback takes them to another."""
        failure: Exception
        try:
            return vocabulary(self._backend.quads_matching)
        except Exception as error:  # noqa: BLE001 raised below
            failure = error.with_traceback(None)
        raise failure

    def _drafts(self, graph: ShapesGraph) -> Drafts:
        if self._source == "ontology":
            return read_ontology(graph)
        if self._source == "shacl":
            return read_shapes(graph)
        return combined(read_ontology(graph), read_shapes(graph))

    async def _infer(self) -> None:
        index = self._backend.snapshot_index()
        classes = classes_of(await self._ask(CLASSES))
        answers = [await self._ask(query) for query in samples(classes)]
        self._schema = await asyncio.to_thread(lambda: self._schema_of(inferred(classes, answers)))
        self._state = index

    def _schema_of(self, drafts: Drafts) -> Schema:
        made = schema_of(model_of(drafts), subscriptions=self._subscriptions)
        assert made.sdl  # made here, on a thread
        return made
