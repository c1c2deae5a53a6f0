"""What all tests share."""

import gc

import pytest

from actors.disk_room import DiskRoom
from graphdb.config.service import Server


@pytest.fixture(autouse=True)
def reserves_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories of tests stay for a while: none keeps a reserve of the default size, in this process."""
    made = DiskRoom.of.__func__  # type: ignore[attr-defined] # it is a class method

    def of(server: Server, *margin: int) -> DiskRoom:
        if "disk_reserve_mb" not in server.model_fields_set:
            server = server.model_copy(update={"disk_reserve_mb": 0})
        room: DiskRoom = made(DiskRoom, server, *margin)
        return room

    monkeypatch.setattr(DiskRoom, "of", of)


@pytest.fixture(autouse=True, scope="module")
def collections_are_short() -> None:
    """The garbage collector passes over what was imported and what earlier modules have left: in a process
    that has run thousands of tests it looks at millions of objects else, for a second and longer.
    """
    gc.collect()
    gc.freeze()
