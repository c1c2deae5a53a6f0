"""`GraphAsker`: the queries of a search to the graph about its candidates and hits, as few as possible."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from graphdb.config import Settings
from graphdb.errors import QueryTimeout
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from graphdb.rdf.formats import RdfSyntax
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.extension.documents import document, triples_queries
from graphdb.search.extension.extension_request import QueryOption
from graphdb.search.extension.questions import Question, Questions
from graphdb.search.extension.request_rewriting import SYNONYMS_MAX, SynonymColumns, Synonyms, synonyms_of
from graphdb.search.extension.template import Template, read_template
from serve.search.backend import GraphAccess

__all__ = ["GraphAsker"]

T = TypeVar("T")

ROWS_MAX = 20_000  # that all hits of a page are enriched with
CANDIDATES_MAX = 100_000  # of a filter that is evaluated for many candidates at once
COPIES_MAX = 5_000  # of one that has a part of its own for each candidate in the query
EVERYTHING_FROM = 4_096  # candidates: then everything that the graph says yes to may be less work
EVERYTHING_MAX = 100_000


class GraphAsker:
    """For one event loop. Every method takes at most as long as a query may, however many queries it needs.

    Raises SearchError with the graph's reason, UnavailableError.
    """

    def __init__(self, graph: GraphAccess, settings: Settings) -> None:
        self._graph, self._limits = graph, settings.security
        self._limit_s = settings.server.query_timeout_seconds

    async def template(self, option: QueryOption, form: str, required: bool = True) -> Template:
        """The text of an option, parsed."""
        if len(option.text) <= SHORT_TEXT_CHARACTERS:
            return read_template(option, form, self._limits, required)
        return await asyncio.to_thread(read_template, option, form, self._limits, required)

    async def bindings(self, template: Template, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """By id the solutions of a SELECT."""
        found: dict[str, list[dict[str, Any]]] = {one: [] for one in ids}
        left = ROWS_MAX
        async with self._limited(template.option.member):
            async for number, binding in self._rows(template, ids, ROWS_MAX):
                left -= 1
                if left < 0:
                    raise illegal_argument(
                        f"[{template.option.member}] the hits of the page have more than [{ROWS_MAX}] "
                        "solutions: ask for fewer hits, or give the query a LIMIT"
                    )
                found[ids[number]].append(binding)
        return found

    async def accepted(self, template: Template, ids: Sequence[str]) -> set[str]:
        """The ids for which an ASK is true. (The result may have others that are not candidates.)"""
        questions = await asyncio.to_thread(Questions, template, self._limits)
        async with self._limited(template.option.member):
            if questions.enumerates and len(ids) > EVERYTHING_FROM:
                known = await self._everything(template, questions)
                if known is not None:
                    return known
            most = CANDIDATES_MAX if questions.varies else COPIES_MAX
            if len(ids) > most:
                raise _too_many(template, len(ids), most)
            return {ids[number] async for number, _ in self._rows(template, ids, len(ids))}

    async def synonyms(self, template: Template, columns: SynonymColumns, terms: Sequence[str]) -> Synonyms:
        """Of each term: what the query answers for it, or for all of them where it has no placeholder."""
        rows: list[tuple[Sequence[str], dict[str, Any]]]
        async with self._limited(template.option.member):
            if template.is_filled:
                answer = await self._graph.select(template.query.text)
                rows = [(terms, binding) for binding in answer["results"]["bindings"]]
            else:
                found = self._rows(template, terms, SYNONYMS_MAX * len(terms))
                rows = [((terms[number],), binding) async for number, binding in found]
        return await asyncio.to_thread(synonyms_of, terms, columns.pairs(rows))

    async def document(self, ids: Sequence[str], syntax: RdfSyntax) -> str:
        """The triples whose subjects these are."""
        pieces: list[str] = []
        async with self._limited("format"):
            for query in triples_queries(ids, self._limits.max_query_bytes):
                pieces.append(await self._graph.construct(query, RdfSyntax.N_TRIPLES.media_type))
            return await asyncio.to_thread(document, pieces, syntax)

    async def _everything(self, template: Template, questions: Questions) -> set[str] | None:
        """All ids for which the ASK is true; None if there are too many."""
        answer = await self._graph.select(questions.all_values(EVERYTHING_MAX))
        rows = answer["results"]["bindings"]
        if len(rows) > EVERYTHING_MAX:
            return None
        kind = "uri" if template.has_iri else "literal"
        terms = [term for row in rows for term in row.values()]
        return {
            term["value"]
            for term in terms
            if term["type"] == kind and "datatype" not in term and "xml:lang" not in term
        }

    async def _rows(
        self, template: Template, values: Sequence[str], rows_max: int
    ) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        """(number of the value, binding) of all questions, one question after the other."""
        questions = await asyncio.to_thread(Questions, template, self._limits)
        waiting = questions.about(values, rows_max)
        while (question := await asyncio.to_thread(_next, waiting)) is not None:
            for row in question.rows(await self._graph.select(question.text)):
                yield row

    @asynccontextmanager
    async def _limited(self, member: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limit_s):
                yield
        except TimeoutError:
            raise QueryTimeout(f"[{member}] the graph took longer than [{self._limit_s}s]") from None
        except SearchError as error:
            if error.kind not in ("sparql_exception", "security_exception"):
                raise
            raise SearchError(error.kind, f"[{member}] {error.reason}", error.status) from error


def _next(questions: Iterator[Question]) -> Question | None:
    return next(questions, None)


def _too_many(template: Template, count: int, most: int) -> SearchError:
    return illegal_argument(
        f"[{template.option.member}] the query matches [{count}] documents, but this SPARQL can filter at "
        f"most [{most}]: narrow the query, or have the placeholder in triple patterns of the outermost group"
    )
