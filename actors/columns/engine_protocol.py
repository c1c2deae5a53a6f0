"""What an engine asks of its `ColumnView` (`actors.wire`), over a socket pair:

    engine                          ColumnView
    AskSetup, first                 EngineSetup
    Alive, each ALIVE_S from when   Done
    it listens on
    FindLog                         LogAt

Whoever finds the socket closed ends: the engine in order, the view's side by starting another.
"""

from dataclasses import dataclass
from typing import Any

from actors.wire.messages import Messages

__all__ = ["ALIVE_S", "ENGINE_MESSAGES", "Alive", "AskSetup", "EngineSetup", "FindLog", "LogAt"]

ALIVE_S = 0.5


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """What an engine opens, and where it listens."""

    directory: str  # of the view, in that of the data
    disk_reserve_mb: int
    socket_path: str
    columns: dict[str, Any]  # the section of the settings
    limits: dict[str, int]  # those of the gate


@dataclass(frozen=True, slots=True)
class AskSetup:
    """What is there to do?"""


@dataclass(frozen=True, slots=True)
class Alive:
    """The engine has its turn of the processor."""


@dataclass(frozen=True, slots=True)
class FindLog:
    """Where does the log listen?"""


@dataclass(frozen=True, slots=True)
class LogAt:
    """There."""

    path: str


ENGINE_MESSAGES = Messages(AskSetup, EngineSetup, Alive, FindLog, LogAt)
