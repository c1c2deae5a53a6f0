"""/holonic/holons/{iri}/membrane: what a holon's interior holds against the shapes in its boundary."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graphdb.holonic.names import Layer
from graphdb.holonic.registry import HolonRecord
from graphdb.node import MergedGraphs
from serve.backend import AnswerStream
from serve.graph.holonic.requests import iri_of
from serve.graph.holonic.service import HolonicService
from serve.graph.shacl import ShaclEndpoint
from serve.graph.validation_request import ValidationReader

__all__ = ["MembraneEndpoint"]


class MembraneEndpoint:
    """GET of the membrane of a holon."""

    def __init__(self, service: HolonicService, reader: ValidationReader, validations: ShaclEndpoint) -> None:
        self._service, self._reader, self._validations = service, reader, validations

    async def get(self, request: Request) -> Response:
        """The report of a validation of all that the interior holds; in JSON with the holon's IRI."""
        tenant, iri = self._service.tenant(request), iri_of(request)
        record = HolonRecord.of(tenant, iri, (await self._service.registry(request, tenant)).statements(iri))
        shapes, data = record.layer(Layer.BOUNDARY), record.layer(Layer.INTERIOR)
        asked = self._reader.ask_about(request, MergedGraphs(shapes), MergedGraphs(data))
        if asked.report_syntax is not None:
            return await self._validations.answer(asked)
        return await self._validations.answer(asked, lambda stream: _Introduced(stream, {"iri": iri.value}))


class _Introduced:
    """A JSON object that a reader makes, with members before its own."""

    def __init__(self, stream: AnswerStream, members: dict[str, str]) -> None:
        self.query_id, self.where = stream.query_id, stream.where
        self.snapshot_index, self.is_exact = stream.snapshot_index, stream.is_exact
        self._stream = stream
        self._before = orjson.dumps(members)[:-1] + b","

    async def read(self) -> bytes | None:
        """See `serve.backend.AnswerStream`."""
        piece = await self._stream.read()
        if piece and self._before:
            before, self._before = self._before, b""
            return before + piece.removeprefix(b"{")
        return piece

    def close(self) -> None:
        """See `serve.backend.AnswerStream`."""
        self._stream.close()
