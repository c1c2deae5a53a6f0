"""Where the history stands. It loads nothing, for every process of the service asks."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphdb.config.service import History

__all__ = ["HISTORY", "LOG", "history_directory"]

LOG, HISTORY = "log", "history"  # in the data directory


def history_directory(data_dir: Path, config: "History") -> str | None:
    """Where compaction puts what it drops; None where nothing is kept."""
    return None if config.keep == "off" else str(data_dir / HISTORY)
