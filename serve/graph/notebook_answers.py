"""The interface of `graphdb.connect()` in the port's process: whole answers as bytes, of limited size."""

import asyncio

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, LimitExceeded
from graphdb.node import QueryRequest, ShapesDocument, ValidationRequest
from graphdb.planning.decisions import is_cheap
from graphdb.planning.gate import check, read_query
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from serve.backend import AnswerStream, GraphReads
from serve.graph.query_answers import answer_here
from serve.graph.responses import BACKSTOP_S, past_limit
from serve.graph.shacl import read_data_graph, read_shapes_source

__all__ = ["RESULT_BYTES_MAX", "answer", "report"]

RESULT_BYTES_MAX = 256 << 20


async def answer(reads: GraphReads, text: str, form: str, limits: GateLimits, timeout_s: float) -> bytes:
    """Evaluate a query of the form that is asked for: "SELECT", "ASK" or "CONSTRUCT" (DESCRIBE included).

    SPARQL results JSON for the first two, N-Triples for graphs.
    Raises QuerySyntaxError, InvalidParameter (another form), LimitExceeded (beyond the limits, or a larger
    answer), and what the reads raise.
    """
    query = await asyncio.to_thread(read_query, text, None, limits)
    if query.form != form and (form, query.form) != ("CONSTRUCT", "DESCRIBE"):
        raise InvalidParameter("query", f"this is not a {form} query but {query.form}")
    fmt = ResultFormat.N_TRIPLES if form == "CONSTRUCT" else ResultFormat.JSON
    check(query, limits)  # before anything is decided about it
    if is_cheap(query) and (found := answer_here(reads.query(query, Dataset()), fmt)) is not None:
        return found
    try:
        async with asyncio.timeout(timeout_s + BACKSTOP_S):
            request = QueryRequest(query, Dataset(), fmt, timeout_s)
            return await _read_whole(await reads.start_query(request))
    except TimeoutError:
        raise past_limit(timeout_s) from None


async def report(
    reads: GraphReads, shapes: str | None, shapes_graph: str | None, data_graph: str, timeout_s: float
) -> bytes:
    """Validate a graph ("default", "union" or an IRI) against shapes in Turtle, or those of a graph.

    The report of the interface, as JSON. Raises RdfSyntaxError, MalformedShapes, UnknownGraph,
    InvalidParameter (neither or both kinds of shapes, what is no IRI), LimitExceeded (a larger report), and
    what the reads raise.
    """
    given = read_shapes_source(
        None if shapes is None else ShapesDocument(shapes.encode(), RdfSyntax.TURTLE), shapes_graph
    )
    try:
        async with asyncio.timeout(timeout_s + BACKSTOP_S):
            request = ValidationRequest(given, read_data_graph(data_graph), None, timeout_s)
            return await _read_whole(await reads.start_validation(request))
    except TimeoutError:
        raise past_limit(timeout_s, "validation") from None


async def _read_whole(stream: AnswerStream) -> bytes:
    try:
        pieces, size = [], 0
        while (piece := await stream.read()) is not None:
            pieces.append(piece)
            size += len(piece)
            if size > RESULT_BYTES_MAX:
                raise LimitExceeded("size of the answer in bytes", size, RESULT_BYTES_MAX)
        return b"".join(pieces)
    finally:
        stream.close()
