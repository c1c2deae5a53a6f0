"""`Exchange`: one request to the search port, as the function that answers it sees it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import Request

from graphdb.config import Settings
from graphdb.search.errors import parsing
from serve.access.admitted import principal_of
from serve.bodies import body_chunks, read_body
from serve.search.backend import SearchBackend
from serve.search.frame.json_text import LONG_BYTES, parse_json, token_name
from serve.search.frame.media_types import MediaType, accepted
from serve.search.frame.parameters import Parameters
from serve.search.frame.search_work import SearchWork

__all__ = ["JSON_BYTES_MAX", "Exchange"]

# Of a body that has to be in memory at once; Elasticsearch's http.max_content_length.
JSON_BYTES_MAX = 100 * 1024 * 1024
_JSON = MediaType("application/json")


class Exchange:
    """path is as it was sent, still encoded; values are its named segments, decoded. node: as the principal
    sees it.
    """

    def __init__(
        self,
        node: SearchBackend,
        settings: Settings,
        work: SearchWork,
        request: Request,
        values: Mapping[str, str],
        parameters: Parameters,
    ) -> None:
        """Raises media_type_header_exception for an Accept that means nothing."""
        self.node, self.settings, self.work, self.request = node, settings, work, request
        self.values, self.parameters = values, parameters
        self.principal = principal_of(request.scope)
        self.method: str = request.method
        self.path: str = request.scope["raw_path"].partition(b"?")[0].decode("latin-1")
        self._accepted = accepted(request.headers.get("accept", ""))
        self._body: bytes | None = None

    def __getitem__(self, name: str) -> str:
        """A named segment of the path. Raises KeyError where the path has none of the name."""
        return self.values[name]

    def get(self, name: str) -> str | None:
        """The same, None where the path has none of the name."""
        return self.values.get(name)

    @property
    def takes_gzip(self) -> bool:
        return "gzip" in self.request.headers.get("accept-encoding", "")

    def answer_type(self, is_text: bool) -> str:
        """Content-Type of the answer."""
        if is_text:
            return "text/plain; charset=UTF-8"
        wanted = self._accepted
        return (wanted if wanted is not None and wanted.name == "application/json" else _JSON).of_answer()

    async def body(self) -> bytes:
        """The whole body, or what stands for it in the query string (`source`); empty where there is none.

        Raises BodyTooLarge, SearchError.
        """
        if self._body is None:
            limit = min(JSON_BYTES_MAX, self.settings.server.max_body_bytes)
            source = self.parameters.text("source") or ""
            self._body = await read_body(self.request, limit) or source.encode()
        return self._body

    def body_chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they come; for what may be longer than memory."""
        return body_chunks(self.request, self.settings.server.max_body_bytes)

    async def json(self) -> dict[str, Any] | None:
        """The object in the body, None where there is no body. Raises SearchError for what is no object."""
        body = await self.body()
        if not body.strip():
            return None
        long = len(body) >= LONG_BYTES
        value = await asyncio.to_thread(parse_json, body) if long else parse_json(body)
        if not isinstance(value, dict):
            raise parsing(f"Expected [START_OBJECT] but found [{token_name(value)}]", line=1, col=1)
        return value
