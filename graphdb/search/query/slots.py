"""The texts and numbers of a body, in whose places `forms` reads it."""

from typing import Any

__all__ = ["Slot", "slotted"]


class Slot:
    """A text or number in a body. place: its number among all of them, names of members included."""

    __slots__ = ("place", "value")

    def __init__(self, place: int, value: Any) -> None:
        self.place, self.value = place, value


def slotted(value: Any, place: int) -> tuple[Any, int]:
    """(the same JSON with slots, the place of the first text or number after it). place: of its first."""
    if isinstance(value, dict):
        members = {}
        for name, inner in value.items():
            members[name], place = slotted(inner, place + 1)
        return members, place
    if isinstance(value, list):
        items = []
        for inner in value:
            item, place = slotted(inner, place)
            items.append(item)
        return items, place
    if value is None or isinstance(value, bool):
        return value, place
    return Slot(place, value), place + 1
