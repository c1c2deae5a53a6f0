"""What `graphdb.connect()` gets from the port's process: whole answers as bytes, of a bounded size."""

import io

from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, RdfFormat

from graphdb.errors import InvalidParameter, LimitExceeded
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.gate import GateLimits, read_query
from serve.backend import Backend

__all__ = ["RESULT_BYTES_MAX", "answer"]

RESULT_BYTES_MAX = 256 << 20


def answer(backend: Backend, text: str, form: str, limits: GateLimits) -> bytes:
    """Evaluate a query of the form that is asked for: "SELECT", "ASK" or "CONSTRUCT" (DESCRIBE included).

    SPARQL results JSON for the first two, N-Triples for graphs. Blocks.
    Raises QuerySyntaxError, InvalidParameter (another form), LimitExceeded (beyond the limits, or a larger
    answer), and what the backend raises.
    """
    query = read_query(text, None, limits)
    if query.form != form and (form, query.form) != ("CONSTRUCT", "DESCRIBE"):
        raise InvalidParameter("query", f"this is not a {form} query but {query.form}")
    found = backend.query(query, Dataset()).answer
    output = _Bounded()
    if isinstance(found, QuerySolutions | QueryBoolean):
        found.serialize(output, format=QueryResultsFormat.JSON)
    else:
        found.serialize(output, format=RdfFormat.N_TRIPLES)
    return output.getvalue()


class _Bounded(io.BytesIO):
    def write(self, data: object) -> int:
        written = super().write(data)  # type: ignore[arg-type] # whatever the engine writes are bytes
        if self.tell() > RESULT_BYTES_MAX:
            raise LimitExceeded("size of the answer in bytes", self.tell(), RESULT_BYTES_MAX)
        return written
