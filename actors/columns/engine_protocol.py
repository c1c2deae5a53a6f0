"""What a `ColumnView` and its engine say to each other, in frames whose code is a `Control`:

    ColumnView                      engine
    SETUP (an EngineSetup)
                                    ALIVE, each ALIVE_S from when it listens on
                                    FIND_LOG, numbered
    LOG (a path) or ERROR, with the number of the question

Whoever finds the socket closed ends: the engine in order, the view's side by starting another.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from actors.columns.protocol import JsonMessage

__all__ = ["ALIVE_S", "Control", "EngineSetup"]

ALIVE_S = 0.5


class Control(IntEnum):
    """What a frame says: its code."""

    SETUP = 1
    ALIVE = 2
    FIND_LOG = 3
    LOG = 4
    ERROR = 5


@dataclass(frozen=True, slots=True)
class EngineSetup(JsonMessage):
    """What an engine opens, and where it listens."""

    directory: str  # of the view, in that of the data
    disk_reserve_mb: int
    socket_path: str
    columns: dict[str, Any]  # the section of the settings
    limits: dict[str, int]  # those of the gate
