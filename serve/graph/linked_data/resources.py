"""Resources at their own IRIs: GET of an address below a configured base gives the resource's description."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote, urlsplit

from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import NotFound
from serve.access.request_scope import visibility_of
from serve.backend import Queries
from serve.graph.asked_query import QueryReader
from serve.graph.query_answers import QueryAnswers
from serve.negotiation import wants_page

__all__ = ["ResourceEndpoint", "description_query"]

_ANYTHING = ("", "*/*")


def description_query(iri: NamedNode) -> str:
    """CONSTRUCT of a resource's triples in all graphs, with those of blank nodes that it leads to."""
    anywhere = "{{ {0} }} UNION {{ GRAPH ?g {{ {0} }} }}".format
    return (
        f"CONSTRUCT {{ {iri} ?p ?o . ?b ?q ?v }} WHERE {{ {anywhere(f'{iri} ?p ?o')} UNION "
        f"{anywhere(f'{iri} ?r ?b . ?b ?q ?v FILTER (isBlank(?b))')} }}"
    )


class ResourceEndpoint:
    """GET and HEAD of the addresses of resources."""

    def __init__(
        self,
        bases: Sequence[str],
        queries: Queries,
        reader: QueryReader,
        answers: QueryAnswers,
        *,
        has_workbench: bool,
    ) -> None:
        """bases: what the IRIs of resources start with. The path of a request tells which: the longest."""
        by_path = [(urlsplit(base).path or "/", base) for base in bases]
        self._bases = sorted(by_path, key=lambda pair: -len(pair[0]))
        self._queries, self._reader, self._answers = queries, reader, answers
        self._has_workbench = has_workbench

    async def get(self, request: Request) -> Response:
        """The description in the syntax that the client prefers, Turtle by default; browsers are redirected
        to the workbench. Raises NotFound for a resource that no triple has as its subject.
        """
        iri = self._iri(request)
        reads = await self._queries.reads(visibility_of(request.scope))
        if next(reads.quads_matching(iri, None, None, None), None) is None:
            raise NotFound("resource", iri.value)
        accept = ", ".join(request.headers.getlist("accept")).strip()
        if self._has_workbench and wants_page(accept):
            address = f"/#/explore?iri={quote(iri.value, safe='')}"
            return Response(status_code=303, headers={"Location": address, "Vary": "Accept"})
        parameters = self._reader.parameters(b"")
        if accept in _ANYTHING:
            parameters = replace(parameters, formats=("turtle",))
        asked = await self._reader.ask(request, parameters, description_query(iri))
        return await self._answers.answer(asked)

    def _iri(self, request: Request) -> NamedNode:
        """Raises NotFound."""
        path = (request.scope.get("raw_path") or request.scope["path"].encode()).decode("latin-1")
        for prefix, base in self._bases:
            if path.startswith(prefix):
                query = request.scope["query_string"].decode("latin-1")
                try:
                    return NamedNode(f"{base}{path[len(prefix) :]}{'?' + query if query else ''}")
                except ValueError:
                    break
        raise NotFound("resource", path[:500])
