"""`SocketContext`: what all connections to `/graphql/ws` share."""

import asyncio
from functools import lru_cache
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, Limits, Refused, failure
from graphdb.graphql.planning import read_operation
from graphdb.graphql.schema import Schema
from graphdb.graphql.subscriptions import ChangedQuery, read_subscription
from graphdb.sparql.gate import SHORT_TEXT_CHARACTERS
from serve.backend import Changes, Progress
from serve.graph.graphql.asked_operation import AskedOperation
from serve.graph.graphql.endpoint import GraphQLEndpoint
from serve.graph.graphql.schema_keeper import SchemaKeepers
from serve.graph.live_outbox import SocketCounts

__all__ = ["SocketContext"]


class SocketContext:
    """Owned by the application, on the port's event loop."""

    def __init__(
        self,
        changes: Changes,
        progress: Progress,
        keepers: SchemaKeepers,
        operations: GraphQLEndpoint,
        limits: Limits,
        settings: Settings,
        text_bytes_max: int,
        sockets: SocketCounts,
    ) -> None:
        self.changes, self.progress, self.keepers = changes, progress, keepers
        self.operations, self.settings = operations, settings
        self.text_bytes_max, self.sockets = text_bytes_max, sockets
        self._kept: set[asyncio.Task[Any]] = set()
        self._limits = limits
        self._read_short = lru_cache(maxsize=256)(self._read)

    async def read(self, schema: Schema, asked: AskedOperation) -> ChangedQuery:
        """What a valid operation of type subscription follows. Raises Refused."""
        try:
            variables = orjson.dumps(asked.variables or {}).decode()
        except orjson.JSONEncodeError:
            raise Refused([failure(COMPLEXITY_EXCEEDED, "The variables are nested too deeply.")]) from None
        arguments = (schema, asked.text, asked.operation_name, variables)
        is_short = len(asked.text) + len(variables) <= SHORT_TEXT_CHARACTERS
        return await asyncio.to_thread(self._read_short if is_short else self._read, *arguments)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Let it come to its end, also when its connection has ended."""
        self._kept.add(task)
        task.add_done_callback(self._drop)

    def _drop(self, task: asyncio.Task[Any]) -> None:
        self._kept.discard(task)
        if not task.cancelled():
            task.exception()  # somebody has heard of it, or nobody is there any more

    def _read(self, schema: Schema, text: str, name: str | None, variables: str) -> ChangedQuery:
        operation = read_operation(schema, text, orjson.loads(variables), name, self._limits)
        return read_subscription(operation, text, name, self.settings.security)
