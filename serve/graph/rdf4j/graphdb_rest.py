"""`/rest/...`: what clients of GraphDB ask beside RDF4J's API, as far as there is an answer here."""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from serve.access.request_scope import principal_of, visibility_of
from serve.backend import Queries
from serve.bodies import JSON_TYPE
from serve.graph.query_parameters import read_as_of
from serve.graph.rdf4j.repository import Repository, Sizes
from serve.parameters import Parameters, request_iri

__all__ = ["GraphDBEndpoint"]

_KIND = "graphdb"


class GraphDBEndpoint:
    """The one repository, its size, and the principal of a request."""

    def __init__(self, repository: Repository, queries: Queries, sizes: Sizes) -> None:
        self._repository, self._queries, self._sizes = repository, queries, sizes

    async def list(self, request: Request) -> Response:
        """The repositories: this one."""
        base = request_iri(request).removesuffix("/rest/repositories")
        uri = f"{base}/repositories/{self._repository.id}"
        shown = {
            "id": self._repository.id,
            "title": self._repository.title,
            "uri": uri,
            "externalUrl": uri,
            "local": True,
            "type": _KIND,
            "sesameType": _KIND,
            "location": "",
            "readable": True,
            "writable": principal_of(request.scope).permission >= Permission.WRITE,
            "unsupported": False,
            "state": "RUNNING",
        }
        return _json([shown])

    async def show(self, request: Request) -> Response:
        """The repository, in GraphDB's form of a configuration; it has no parameters."""
        return _json(
            {
                "id": self._repository.id,
                "title": self._repository.title,
                "type": _KIND,
                "sesameType": _KIND,
                "location": "",
                "params": {},
            }
        )

    async def size(self, request: Request) -> Response:
        """The number of statements; nothing is inferred."""
        as_of = read_as_of(Parameters(request.scope["query_string"]))
        reads = await self._queries.reads(visibility_of(request.scope), as_of, self._sizes.timeout_s)
        count = await self._sizes.of(reads, None)
        return _json({"inferred": 0, "total": count, "explicit": count})

    async def locations(self, request: Request) -> Response:
        """Where repositories are: here."""
        return _json(
            [
                {
                    "uri": "",
                    "label": "Local",
                    "username": None,
                    "password": None,
                    "active": True,
                    "local": True,
                    "system": False,
                    "errorMsg": None,
                    "defaultRepository": self._repository.id,
                }
            ]
        )

    async def principal(self, request: Request) -> Response:
        """The principal of the request, as a user of GraphDB."""
        principal = principal_of(request.scope)
        return _json(
            {
                "username": principal.name,
                "password": "",
                "grantedAuthorities": _authorities(principal),
                "appSettings": {},
                "external": False,
            }
        )


def _authorities(principal: Principal) -> list[str]:
    """What GraphDB calls the permissions."""
    if principal.permission >= Permission.ADMIN:
        return ["ROLE_ADMIN"]
    rights = {"READ_REPO_*": Permission.READ, "WRITE_REPO_*": Permission.WRITE}
    return ["ROLE_USER", *(name for name, needed in rights.items() if principal.permission >= needed)]


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), headers={"Cache-Control": "no-store"}, media_type=JSON_TYPE)
