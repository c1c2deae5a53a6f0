"""What a connection of a port hands to others in place of itself: to a parser, to uvicorn's answers."""

from collections.abc import Sized
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl

__all__ = ["BodyOnly", "Flow", "LentTransport"]

_READ_AHEAD_MAX = 8  # reading pauses while more requests wait


class Connection(Protocol):
    """`serve.port.bounded_protocol.BoundedProtocol`."""

    has_ended: bool

    @property
    def pipeline(self) -> Sized: ...
    def on_body(self, body: bytes) -> None: ...
    def on_last_message_complete(self) -> None: ...
    def note_resumed(self) -> None: ...
    def end(self) -> None: ...


class BodyOnly:
    """Callbacks of a parser that reads only the body of a request."""

    def __init__(self, protocol: Connection) -> None:
        self._protocol: Connection | None = protocol

    def on_body(self, body: bytes) -> None:
        if self._protocol is not None:
            self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        if self._protocol is not None:
            self._protocol.on_last_message_complete()
        self._protocol = None


class Flow(FlowControl):
    """Pauses reading while too many requests wait, and notifies the protocol when it resumes."""

    def __init__(self, protocol: Connection, transport: Any) -> None:
        super().__init__(transport)
        self._protocol: Connection | None = protocol

    def resume_reading(self) -> None:
        if not self.read_paused or self._protocol is None:
            return
        if len(self._protocol.pipeline) < _READ_AHEAD_MAX:
            super().resume_reading()
            self._protocol.note_resumed()

    def let_go(self) -> None:
        self._protocol = None


class LentTransport:
    """The connection's transport, for answers; the protocol decides how it is closed."""

    def __init__(self, protocol: Connection, transport: Any) -> None:
        self._protocol: Connection | None = protocol
        self.write, self.get_extra_info = transport.write, transport.get_extra_info
        self._is_closing = transport.is_closing

    def is_closing(self) -> bool:
        return self._protocol is None or self._protocol.has_ended or self._is_closing()

    def close(self) -> None:
        if self._protocol is not None:
            self._protocol.end()

    def let_go(self) -> None:
        self._protocol = None
