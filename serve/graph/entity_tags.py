"""Entity tags: of which state of the data an answer is, so that a client need not get it twice.

RFC 9110, 8.8.3 and 13.1.2.
"""

import re
from hashlib import blake2b
from secrets import token_hex

from starlette.requests import Request

__all__ = ["EntityTags"]

# 8.8.3: a comma, and even a backslash, may stand in a tag.
_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,[ \t,]*{_TAG})*[ \t,]*")
_OPAQUE = re.compile(_TAG)


class EntityTags:
    """Tags of the form W/"<start>-<log index>-<format>", and "-<view>" where not all of the graph is seen.

    They are weak: the order of rows and the names of blank nodes may differ. The first part is of this start
    of the process alone, because a data directory that was restored from a backup reaches the same log index
    again with other data.
    """

    def __init__(self) -> None:
        self._start = token_hex(6)

    def tag(self, index: int, format_name: str, view_key: str | None) -> str:
        """The tag of what a repeatable request gives at exactly this index, to who sees this view."""
        view = "" if view_key is None else f"-{blake2b(view_key.encode(), digest_size=12).hexdigest()}"
        return f'W/"{self._start}-{index}-{format_name}{view}"'

    @staticmethod
    def is_known(request: Request, tag: str) -> bool:
        """Whether If-None-Match says that the client holds what has this tag; malformed, it says nothing."""
        lines = request.headers.getlist("if-none-match")
        if not lines:
            return False
        header = ", ".join(lines).strip(" \t")
        if header == "*":
            return True
        if not _TAGS.fullmatch(header):
            return False
        return tag.removeprefix("W/") in (found.removeprefix("W/") for found in _OPAQUE.findall(header))
