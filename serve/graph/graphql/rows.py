"""`RowReader`: the rows of one SPARQL query, asked as `/sparql` is: the same gate, readers, limits, cache and
accounts.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from graphdb.errors import GraphDBError, LimitExceeded
from graphdb.geo.entailment import Entailment
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from serve.answers import AnswerBroken
from serve.backend import AnswerStream
from serve.graph.asked_query import QueryReader
from serve.graph.consistency import read_consistency
from serve.graph.query_answers import QueryAnswers
from serve.graph.query_parameters import QueryParameters, read_min_index, read_timeout
from serve.parameters import Parameters

__all__ = ["RowReader", "read_bounds", "read_whole"]

ANSWER_BYTES_MAX = 64 << 20
_PASSED_ON = frozenset({b"cache-control", b"pragma", b"x-consistency", b"host"})


def read_bounds(parameters: Parameters) -> QueryParameters:
    """How new the answer has to be, and within which time. Raises InvalidParameter."""
    return QueryParameters(
        query=None,
        dataset=Dataset(),
        formats=(ResultFormat.TSV.value,),
        timeout_s=read_timeout(parameters),
        min_index=read_min_index(parameters),
        consistency=read_consistency(parameters),
        explain=False,
        entailment=Entailment.GEOSPARQL,
    )


class RowReader:
    """Owned by the application."""

    def __init__(self, reader: QueryReader, answers: QueryAnswers) -> None:
        self._reader, self._answers = reader, answers

    async def rows(self, request: Request, bounds: QueryParameters, query: str) -> tuple[bytes, int]:
        """The answer as tab-separated values, and the log index of its state.

        Raises what a query may raise, ClientDisconnect among it.
        """
        headers = [pair for pair in request.scope["headers"] if pair[0] in _PASSED_ON]
        # A POST: what is answered is no resource that a client could hold already.
        scope = {**request.scope, "method": "POST", "headers": headers}
        asked = await self._reader.ask(Request(scope, request.receive), bounds, query)
        whole = _Whole()
        response: Response = await self._answers.answer(asked)
        try:
            await response(scope, request.receive, whole.send)
        except AnswerBroken as broken:
            if isinstance(broken.__cause__, GraphDBError):
                raise broken.__cause__ from None
            raise
        return b"".join(whole.pieces), whole.snapshot_index


async def read_whole(stream: AnswerStream) -> bytes:
    """The answer of a reader, which is closed then. Raises LimitExceeded, and as `AnswerStream.read`."""
    whole = _Whole()
    try:
        while (piece := await stream.read()) is not None:
            whole.add(piece)
    finally:
        stream.close()
    return b"".join(whole.pieces)


class _Whole:
    """An answer that comes to its end here."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.snapshot_index = 0
        self._size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.snapshot_index = int(dict(message["headers"])[b"x-snapshot-index"])
            return
        self.add(message.get("body", b""))

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > ANSWER_BYTES_MAX:
            raise LimitExceeded("bytes of the graph that the answer takes", self._size, ANSWER_BYTES_MAX)
        self.pieces.append(piece)
