"""`ResultCache`: answers that are kept while the data stay as they are; `EntityTags`: conditional requests.

Entity tags follow RFC 9110, 8.8.3 and 13.1.2.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from secrets import token_hex

from starlette.requests import Request

from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat

__all__ = ["CacheKey", "EntityTags", "ResultCache"]

_ENTRY_BYTES = 1_000  # approximate size of an entry without its answer and key
_GRAPH_BYTES = 200  # approximate size of a graph of the dataset without its name
_SHARE = 8  # an answer of more than an eighth of the cache is not kept

# 8.8.3: a tag may contain commas and backslashes.
_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,[ \t,]*{_TAG})*[ \t,]*")
_OPAQUE = re.compile(_TAG)


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything that an answer depends on, except the state of the data."""

    text: str
    base_iri: str
    dataset: Dataset
    format: ResultFormat
    view: str | None = None  # key of the visible part of the data; None is everything
    is_past: bool = False  # view is of one state of the past, which stays as it is


class ResultCache:
    """Whole answers as pieces of bytes: of states of the past, and all others of one log index, which go with
    the first answer of a later index.

    Bounded in bytes; the least recently used answer goes first. Used on one thread.
    """

    def __init__(self, bytes_max: int) -> None:
        self.size = 0  # in bytes
        self.answer_bytes_max = bytes_max // _SHARE  # a longer answer is not kept
        self._bytes_max = bytes_max
        self._index = -1
        self._answers: OrderedDict[CacheKey, tuple[bytes, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: CacheKey, index: int) -> tuple[bytes, ...] | None:
        """The answer at exactly this log index, if it is cached."""
        answer = self._answers.get(key) if key.is_past or index == self._index else None
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: CacheKey, index: int, answer: Sequence[bytes]) -> None:
        """Keep a whole answer of exactly this index, unless the cache is of a later one."""
        size = _size(key, answer)
        if size > self.answer_bytes_max:
            return
        if not key.is_past:
            if index < self._index:
                return
            if index > self._index:
                self._index = index
                self._drop_present()
        if key in self._answers:
            return
        self._answers[key] = tuple(answer)
        self.size += size
        while self.size > self._bytes_max:
            self.size -= _size(*self._answers.popitem(last=False))

    def _drop_present(self) -> None:
        past = {key: answer for key, answer in self._answers.items() if key.is_past}
        self._answers = OrderedDict(past)
        self.size = sum(_size(key, answer) for key, answer in past.items())


def _size(key: CacheKey, answer: Sequence[bytes]) -> int:
    graphs = key.dataset.default_graphs + key.dataset.named_graphs
    key_size = len(key.text) + len(key.base_iri) + sum(_GRAPH_BYTES + len(graph.value) for graph in graphs)
    return _ENTRY_BYTES + key_size + sum(map(len, answer))


class EntityTags:
    """Tags of the form W/"<start>-<log index>-<format>", with "-<view>" if visibility is restricted.

    They are weak: the order of rows and the names of blank nodes may differ. The first part identifies this
    start of the process, because a data directory that is restored from a backup reaches the same log index
    again with other data.
    """

    def __init__(self) -> None:
        self._start = token_hex(6)

    def tag(self, index: int, format_name: str, view_key: str | None) -> str:
        """The tag of the answer to a repeatable request at exactly this index, in this view."""
        view = "" if view_key is None else f"-{blake2b(view_key.encode(), digest_size=12).hexdigest()}"
        return f'W/"{self._start}-{index}-{format_name}{view}"'

    @staticmethod
    def is_known(request: Request, tag: str) -> bool:
        """Whether If-None-Match has this tag; a malformed header is ignored."""
        lines = request.headers.getlist("if-none-match")
        if not lines:
            return False
        header = ", ".join(lines).strip(" \t")
        if header == "*":
            return True
        if not _TAGS.fullmatch(header):
            return False
        return tag.removeprefix("W/") in (found.removeprefix("W/") for found in _OPAQUE.findall(header))
