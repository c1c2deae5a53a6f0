"""`Hints`: what of the data is near to what a query names, by which a person or a model mends the query.

They are made for a query that cannot be read, and for patterns that match nothing when a query is explained.
So nothing is added to the way of other queries. They name what the caller may see.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from starlette.requests import Request

from graphdb.access.visibility import Visibility
from graphdb.errors import GraphDBError, QuerySyntaxError
from graphdb.rdf.prefixes import WELL_KNOWN
from serve.access.request_scope import visibility_of
from serve.answers import AnswerBroken
from serve.backend import Namespaces, Progress
from serve.graph.graphql.graphql_endpoint import RowReader
from serve.graph.query_parameters import read_query_parameters
from serve.mcp.known_terms import local_name, nearest

__all__ = ["Hints"]

_KNOWN_MAX = 2_000  # predicates and classes that are looked through
_BOUNDS = b"format=tsv&timeout=2"
_PATTERNS = ("?s ?t ?o", "GRAPH ?g { ?s ?t ?o }", "?s a ?t", "GRAPH ?g { ?s a ?t }")
_READ_S = 3.0
_SHOWN_MAX = 3
_KEPT = 32  # lists of terms, one for each visibility


class Hints:
    """Owned by the application, on its event loop."""

    def __init__(self, namespaces: Namespaces, progress: Progress) -> None:
        self._namespaces, self._progress = namespaces, progress
        self.rows: RowReader | None = None  # set before the first request
        self._known: dict[Visibility, tuple[int, Sequence[str]]] = {}  # at a log index
        self._reading = asyncio.Lock()  # one at a time: whoever errs often does not take all readers

    async def worded(self, request: Request, error: QuerySyntaxError) -> QuerySyntaxError:
        """The same fault; of a prefix that is not declared, with what it may stand for."""
        if error.undeclared is None:
            return error
        prefix, _, name = error.undeclared.partition(":")
        found = dict.fromkeys([kept] if (kept := self._kept(prefix)) else [])
        if not found and prefix in WELL_KNOWN:
            return error  # it says so itself
        if not found:
            known = await self._terms(request)
            same = [iri for iri in known if name and local_name(iri).lower() == name.lower()]
            near = same or nearest(f":{name}", known)
            found = dict.fromkeys(iri.removesuffix(local_name(iri)) for iri in near)
        declared = " or ".join(f"PREFIX {prefix}: <{iri}>" for iri in list(found)[:_SHOWN_MAX])
        if not declared:
            return error
        reason = f"{error.reason}; perhaps {declared}"
        return QuerySyntaxError(reason, error.line, error.column, error.undeclared)

    def _kept(self, prefix: str) -> str | None:
        """What clients have a prefix stand for."""
        try:
            return self._namespaces.namespaces().get(prefix)
        except GraphDBError:
            return None

    async def of_patterns(self, request: Request, patterns: Iterable[str]) -> list[str]:
        """A sentence for each pattern, as `Scan.pattern` has it, of which nothing is there."""
        found = []
        for pattern in dict.fromkeys(patterns):
            known = await self._terms(request)
            near = [
                f"known terms near <{iri}>: {', '.join(f'<{one}>' for one in nearest(iri, known))}"
                for iri in dict.fromkeys(_iris(pattern))
                if iri not in known and nearest(iri, known)
            ]
            found.append("; ".join([f"nothing matches {pattern}", *near]))
        return found

    async def _terms(self, request: Request) -> Sequence[str]:
        """Predicates and classes of what the caller may see; none where that takes too long.

        Whoever errs while they are read gets those of before: faults do not queue for them.
        """
        visibility = visibility_of(request.scope)
        index, terms = self._known.get(visibility, (-1, ()))
        if self._reading.locked() or index == self._progress.snapshot_index():
            return terms
        async with self._reading:
            terms, index = await self._read(request)
            self._known.pop(visibility, None)  # so that it comes last
            self._known[visibility] = index, terms
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
            return terms

    async def _read(self, request: Request) -> tuple[Sequence[str], int]:
        assert self.rows is not None
        bounds, found, first = read_query_parameters(_BOUNDS), dict[str, None](), 0
        with contextlib.suppress(
            GraphDBError, AnswerBroken, TimeoutError
        ):  # then it is what there is of them
            async with asyncio.timeout(_READ_S):
                for pattern in _PATTERNS:
                    query = f"SELECT DISTINCT ?t {{ {pattern} FILTER isIRI(?t) }} LIMIT {_KNOWN_MAX}"
                    text, index = await self.rows.rows(request, bounds, query)
                    first = first or index
                    found |= dict.fromkeys(line[1:-1] for line in text.decode().splitlines()[1:])
        return sorted(found), first


def _iris(pattern: str) -> list[str]:
    return [part[1:-1] for part in pattern.split() if part.startswith("<") and part.endswith(">")]
