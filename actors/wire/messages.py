"""Messages as bytes: what one process of a service says to another on a Unix domain socket.

A message is a frozen dataclass. A protocol is a `Messages`: the kinds that its two ends know. On the socket
each message is a frame; integers are little-endian:

    offset  bytes  field
         0      4  length n of the body, at most MESSAGE_BYTES_MAX
         4      1  code: which kind it is
         5      4  number of the call that it belongs to, chosen by the client
         9      n  body

The body of a `Piece` is its data. That of a failure (code 0) is what `encode_error` makes. Every other body
is the dataclass as msgspec writes it in MessagePack. The codes follow from the order of the kinds, because
both ends are always of one version: the processes of one service on one machine. Nothing is pickled.
"""

import inspect
import json
import logging
import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from graphdb import errors
from graphdb.errors import GraphDBError, LimitExceeded, OutcomeUnknown, UnavailableError
from graphdb.public_text import without_paths

__all__ = [
    "HEAD_BYTES",
    "MESSAGE_BYTES_MAX",
    "Done",
    "Frame",
    "FrameReader",
    "Messages",
    "Piece",
    "decode_error",
    "encode_error",
    "expect",
]

logger = logging.getLogger(__name__)

_KINDS: dict[str, type[GraphDBError]] = {
    name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GraphDBError)
}


def encode_error(error: BaseException, otherwise: type[UnavailableError] = UnavailableError) -> bytes:
    """The bytes of an error; one that this project does not name becomes an `otherwise`."""
    if _KINDS.get(type(error).__name__) is not type(error):
        logger.error("a part of the service failed", exc_info=error)
        error = otherwise(f"a part of the service failed: {without_paths(repr(error))}")
    return json.dumps({"kind": type(error).__name__, "arguments": error.args}).encode()


def decode_error(body: bytes) -> GraphDBError:
    """The error that encode_error was given; OutcomeUnknown where it is of a class that is not known here.
    Raises ValueError where these bytes are not of its making.
    """
    try:
        fields = json.loads(body)
        name, arguments = fields["kind"], map(_as_argument, fields["arguments"])
        if isinstance(name, str) and name not in _KINDS:
            # which may say what was changed, so the caller must not take it that nothing was
            return OutcomeUnknown(f"a part of the service failed with an unknown error, {name[:100]}")
        return _KINDS[name](*arguments)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no error: {body[:100]!r}") from error


def _as_argument(value: Any) -> Any:
    """JSON has no tuples, which is what errors hold."""
    return tuple(value) if isinstance(value, list) else value


T = TypeVar("T")

# of one body. The largest there are: an entry of the log that holds a request's body
MESSAGE_BYTES_MAX = 1 << 30
_HEAD = struct.Struct("<IBI")
HEAD_BYTES = _HEAD.size
_FAILURE, _PIECE, _FIRST_KIND = 0, 1, 2
_BUFFER_BYTES = 96 << 10  # a piece of an answer fits, which has 64 kB mostly
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an answer, of which there are more, or a Done, to come. Every protocol has it."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Done:
    """An answer that says no more than that it is complete. Every protocol has it."""


class Frame(NamedTuple):
    """A message as it travels."""

    code: int
    number: int
    body: bytes


class FrameReader:
    """Cuts a stream of bytes into frames. Whoever receives writes into `room` and says how much it was."""

    def __init__(self, codes: range) -> None:
        """codes: those that the other end may send."""
        self._codes = codes
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._end = 0  # of what has come and was not handed on: the beginning of a frame

    def room(self) -> memoryview:
        """Where the next bytes belong. It is of use until `received`."""
        return self._buffer[self._end :] if self._end else self._buffer

    def received(self, count: int) -> list[Frame]:
        """So many bytes have come: the frames that are complete now. Raises ValueError for one that is too
        large or has another code, as soon as its head is there: its length is not to be waited for.
        """
        buffer, end = self._buffer, self._end + count
        frames, start, body = [], 0, HEAD_BYTES
        while body <= end:
            length, code, number = _HEAD.unpack_from(buffer, start)
            if code not in self._codes:
                raise ValueError(f"a frame of {length} bytes with the code {code}")
            if body + length > end:
                self._make_room(HEAD_BYTES + length)
                break
            frames.append(Frame(code, number, bytes(buffer[body : body + length])))
            start, body = body + length, body + length + HEAD_BYTES
        self._end = end - start
        if self._end == 0 and len(buffer) > _BUFFER_BYTES:
            self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        elif self._end and (start or self._buffer is not buffer):
            self._buffer[: self._end] = bytes(buffer[start:end])
        return frames

    def _make_room(self, frame_bytes: int) -> None:
        if frame_bytes > HEAD_BYTES + MESSAGE_BYTES_MAX:
            raise ValueError(f"a frame of {frame_bytes} bytes")
        if frame_bytes > len(self._buffer):
            self._buffer = memoryview(bytearray(frame_bytes))


class Messages:
    """The kinds of message that two ends may send each other, beside `Piece`, `Done` and failures."""

    def __init__(self, *kinds: type[Any]) -> None:
        self.kinds = kinds
        self._codes = {kind: code for code, kind in enumerate((Done, *kinds), _FIRST_KIND)}
        self._decode = {code: msgspec.msgpack.Decoder(kind).decode for kind, code in self._codes.items()}
        self._codes[Piece] = _PIECE

    def reader(self, *, failures: bool = True) -> FrameReader:
        """For what the other end sends: failures too, unless it is the one that asks."""
        return FrameReader(range(_FAILURE if failures else _PIECE, _FIRST_KIND + len(self._decode)))

    def extended(self, *kinds: type[Any]) -> "Messages":
        """A protocol that has these, with their codes, and more."""
        return Messages(*self.kinds, *kinds)

    def encode(self, message: object, number: int = 0) -> bytes:
        """A whole frame. Raises LimitExceeded where the message is too large."""
        if type(message) is Piece:
            body = message.data
            code = _PIECE
        else:
            body = _encode(message)
            code = self._codes[type(message)]
        length = len(body)
        if length > MESSAGE_BYTES_MAX:
            raise LimitExceeded("the bytes of a message between processes", length, MESSAGE_BYTES_MAX)
        return _HEAD.pack(length, code, number) + body

    @staticmethod
    def encode_failure(
        error: BaseException, number: int = 0, otherwise: type[UnavailableError] = UnavailableError
    ) -> bytes:
        """A whole frame that has the other end raise an error. otherwise: see `encode_error`."""
        body = encode_error(error, otherwise)
        return _HEAD.pack(len(body), _FAILURE, number) + body

    def is_of(self, kind: type[Any], frame: Frame) -> bool:
        """Whether a frame holds a message of this kind."""
        return frame.code == self._codes[kind]

    def decode(self, frame: Frame) -> Any:
        """The message. Raises the error that a failure is, and ValueError for what is not a message."""
        code, _, body = frame
        if code == _PIECE:
            return Piece(body)
        if code == _FAILURE:
            raise decode_error(body)
        decode = self._decode.get(code)
        if decode is None:
            raise ValueError(f"no message has the code {code}")
        try:
            return decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"a message with the code {code} is not one: {error}") from error


def expect(kind: type[T], message: object) -> T:
    """The message, of this kind. Raises UnavailableError where it is of another one: a fault of ours."""
    if not isinstance(message, kind):
        raise UnavailableError(f"{type(message).__name__} was answered where {kind.__name__} was expected")
    return message
