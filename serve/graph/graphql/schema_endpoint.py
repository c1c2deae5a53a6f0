"""`/graphql/schema`: the schema as text, in GraphQL's own language, and a new one at request."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from serve.access.request_scope import visibility_of
from serve.backend import Progress
from serve.errors import error_response
from serve.graph.graphql.schema_keeper import SchemaKeepers

__all__ = ["SchemaEndpoint"]


class SchemaEndpoint:
    """GET of /graphql/schema, POST of /graphql/schema/refresh."""

    def __init__(self, progress: Progress, keepers: SchemaKeepers, introspection: bool) -> None:
        """Without introspection the schema is nobody's business here either."""
        self._progress, self._keepers, self._introspection = progress, keepers, introspection

    async def get(self, request: Request) -> Response:
        """The SDL."""
        if not self._introspection:
            return error_response(403, "introspection is switched off (graphql.introspection)")
        schema = await self._keepers.current(visibility_of(request.scope))
        headers = {
            "Content-Disposition": 'attachment; filename="schema.graphql"',
            "Cache-Control": "no-cache",
            "X-Snapshot-Index": str(self._progress.snapshot_index()),
        }
        return Response(schema.sdl, headers=headers, media_type="text/plain; charset=utf-8")

    async def refresh(self, request: Request) -> Response:
        """Read ontology, shapes or data again, whether or not they have changed."""
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
