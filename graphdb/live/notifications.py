"""What a change means to a client: `Difference` for one record; `Notification`, as a subscription gets it."""

from dataclasses import dataclass
from functools import cached_property

import orjson

from graphdb.live.records import Record

__all__ = ["Difference", "Notification"]


@dataclass(frozen=True, slots=True)
class Difference:
    """What becomes of one record: CREATE, UPDATE (the record as it is now) or DELETE (its id)."""

    action: str
    result: Record


class Notification:
    """One change of one record, for all who asked for the same; index is the log index of the change."""

    def __init__(self, index: int, action: str, result: Record) -> None:
        self.index, self.action, self.result = index, action, result

    @cached_property
    def tail(self) -> bytes:
        """The members of the message after its id, and the end of it."""
        result = orjson.dumps(self.result)
        return b'"action":"%s","result":%s,"index":%d}' % (self.action.encode(), result, self.index)
