"""`NetLines`: what many changes of the log come to, as the N-Quads lines in which the log has them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from graphdb.log.codec import change_sections

__all__ = ["NetLines"]

T = TypeVar("T")


class NetLines:
    """Takes payloads of ChangeSets (`graphdb.log.codec`) in order, each the next after the one before.

    The log writes equal quads as equal lines, and only what really changes is in it; so a line that is added
    and removed again is none. Quads are never parsed here.
    """

    def __init__(self) -> None:
        self._quads: dict[bytes, bool] = {}  # line -> added
        self._graphs: dict[str, bool] = {}

    def add(self, payload: bytes) -> None:
        """Raises CorruptionError."""
        removed, added, dropped, created = change_sections(payload)
        _note(removed.splitlines(), self._quads, is_added=False)
        _note(added.splitlines(), self._quads, is_added=True)
        # unlike quads, a graph may be named as new by who only added quads to it: the last word counts
        self._graphs.update(dict.fromkeys(dropped.decode().split("\n")[:-1], False))
        self._graphs.update(dict.fromkeys(created.decode().split("\n")[:-1], True))

    def __bool__(self) -> bool:
        return bool(self._quads or self._graphs)

    def __len__(self) -> int:
        return len(self._quads)

    @property
    def has_quads(self) -> bool:
        return bool(self._quads)

    @property
    def created_graphs(self) -> list[str]:
        return [graph for graph, is_there in self._graphs.items() if is_there]

    @property
    def dropped_graphs(self) -> list[str]:
        return [graph for graph, is_there in self._graphs.items() if not is_there]

    def write(self, added: Path, removed: Path) -> None:
        """Make the files of what is added and what is removed."""
        for path, wanted in ((added, True), (removed, False)):
            with path.open("wb") as file:
                file.writelines(line + b"\n" for line, is_added in self._quads.items() if is_added is wanted)


def _note(items: Iterable[T], noted: dict[T, bool], *, is_added: bool) -> None:
    for item in items:
        if noted.get(item) is (not is_added):
            del noted[item]
        else:
            noted[item] = is_added
