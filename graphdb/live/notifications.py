"""`Notification`: what a subscription is told."""

from functools import cached_property

import orjson

from graphdb.live.records import Record

__all__ = ["Notification"]


class Notification:
    """One change of one record, for all who asked for the same; index is the log index of the change."""

    def __init__(self, index: int, action: str, result: Record) -> None:
        self.index, self.action, self.result = index, action, result

    @cached_property
    def tail(self) -> bytes:
        """The members of the message behind its id, and the end of it."""
        result = orjson.dumps(self.result)
        return b'"action":"%s","result":%s,"index":%d}' % (self.action.encode(), result, self.index)
