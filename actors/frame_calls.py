"""`FramePeer`: a process that is asked in frames over its socket, one connection for each request."""

import asyncio
from collections.abc import Awaitable, Callable

from actors.error_codec import decode_error
from actors.frames import Frame, encode_frame, read_frame
from graphdb.errors import UnavailableError

__all__ = ["FramePeer", "checked"]

_INCOMING_BYTES = 64 << 10  # of an answer that wait here, about; with more waiting its sender waits


class FramePeer:
    """For one event loop. Where the process is, is asked at the first use, and again after it was away."""

    def __init__(self, name: str, error_code: int, find_endpoint: Callable[[], Awaitable[str]]) -> None:
        """name stands in errors, as a plural or singular with its verb: "the readers do". error_code is that
        of frames that are errors. find_endpoint answers the path of the socket, or raises UnavailableError.
        """
        self._name, self._error_code = name, error_code
        self._find_endpoint = find_endpoint
        self._path: str | None = None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises UnavailableError."""
        if self._path is None:
            self._path = await self._find_endpoint()
        try:
            return await asyncio.open_unix_connection(self._path, limit=_INCOMING_BYTES)
        except OSError as error:
            self._path = None
            raise UnavailableError(f"{self._name} not answer: {error.strerror}") from error

    async def call(self, message: int, body: bytes, timeout_s: float | None) -> Frame:
        """One request, one answer. Raises UnavailableError, and the error that is the answer."""
        frame = None
        try:
            async with asyncio.timeout(timeout_s):
                incoming, outgoing = await self.connect()
                try:
                    outgoing.write(encode_frame(message, 0, body))
                    frame = await read_frame(incoming)
                finally:
                    outgoing.transport.abort()
        except TimeoutError:
            pass
        if frame is None:
            raise UnavailableError(f"{self._name} not answer")
        return checked(frame, self._error_code)


def checked(frame: Frame, error_code: int) -> Frame:
    """The frame, unless it is an error, which is raised."""
    if frame.code == error_code:
        raise decode_error(frame.body)
    return frame
