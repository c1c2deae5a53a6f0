"""`travelled`: a message as it comes out at the other end of a socket."""

from typing import Any

from actors.wire.messages import Messages

__all__ = ["travelled"]


def travelled(messages: Messages, message: object) -> Any:
    """What the other end of a protocol makes of its bytes."""
    data = messages.encode(message, 7)
    reader, frames = messages.reader(), []
    while data:
        room = reader.room()[: len(data)]
        room[:] = data[: len(room)]
        data = data[len(room) :]
        frames += reader.received(len(room))
    [frame] = frames
    assert frame.number == 7
    return messages.decode(frame)
