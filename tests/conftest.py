"""What all tests share."""

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
