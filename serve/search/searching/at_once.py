"""`AtOnce`: short searches of one index, made within the call that asks for them, in any process."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

import orjson

from graphdb.search.answer_room import LongAnswer, short_answer
from graphdb.search.multi import Searchers, Target
from graphdb.search.multi.known_requests import KnownRequests, with_name
from graphdb.search.multi.prepared import Prepared, is_short
from graphdb.search.query import Searcher
from graphdb.search.results import SearchOptions

__all__ = ["AtOnce", "Known", "Limits", "RequestCache", "is_large", "is_long_to_parse"]

# `RequestCache`: answers without hits, kept until the indexes change.

_KEPT_MAX = 256
_KEY_BYTES_MAX = 20_000
_AGGS_BYTES_MAX = 1_000
_VALUES_MAX = 1_000

Answer = dict[str, Any]


def _is_lasting(text: bytes) -> bool:
    """Dates with `now`, random scores and documents that are looked up make another answer each time."""
    changing = (b"now", b"random_score", b'"index"')
    return len(text) <= _KEY_BYTES_MAX and not any(word in text for word in changing)


class RequestCache:
    """For the event loop only. The least recently used answer is dropped first. Answers must not be changed.

    Searchers are not kept alive: they hold segments, which merges may have replaced.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[tuple[ref[Searcher], ...], Answer]] = OrderedDict()

    @staticmethod
    def key(
        targets: Sequence[Target], body: Mapping[str, Any], more: Hashable, wanted: bool | None
    ) -> Hashable:
        """None where the answer is not to be kept: hits are shown, or it depends on the clock.

        wanted: what `request_cache` says. As in Elasticsearch only searches without hits are cached.
        """
        if wanted is False or body.get("size") != 0 or body.get("profile") or "_ext" in body:
            return None
        text = orjson.dumps(body)
        if not _is_lasting(text):
            return None
        return tuple((one.name, orjson.dumps(one.filter), one.boost) for one in targets), text, more

    @staticmethod
    def key_of_text(name: str, text: bytes, more: Hashable) -> Hashable:
        """The same of a plain request without hits by its text, without escapes, to the whole of an index."""
        return (name, text, more) if _is_lasting(text) else None

    def get(self, key: Hashable, searchers: Sequence[Searcher]) -> Answer | None:
        known = self._kept.get(key)
        if known is None or any(one() is not two for one, two in zip(known[0], searchers, strict=True)):
            return None
        self._kept.move_to_end(key)
        return known[1]

    def put(self, key: Hashable, searchers: Sequence[Searcher], answer: Answer) -> None:
        self._kept[key] = tuple(map(ref, searchers)), answer
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """What answers depend on beside requests and indexes. text: all of that, for keys."""

    options: SearchOptions
    text: str = ""


Known = tuple[Prepared, str | None]
"""A search, and what its only aggregation is called (`with_name`)."""


class AtOnce:
    """For one thread."""

    def __init__(self, cache: RequestCache, searchers: Searchers) -> None:
        self._cache, self._searchers = cache, searchers
        self._known = KnownRequests()

    def known(self, target: Target, text: bytes, limits: Limits) -> Known | None:
        """A search that is known by its text; None for any other, which is to be read."""
        return self._known.of_text(text, target, limits.options)

    def answer(
        self, target: Target, asked: Mapping[str, Any] | Known, text: bytes, limits: Limits
    ) -> tuple[Answer | None, bool | None]:
        """The answer without its envelope, None where making it may take longer; and whether it was kept,
        None where such are not.

        asked: what is known, or a body of plain members, without scripts; text: as it was sent. Raises
        SearchError, AllFailed.
        """
        key = None
        size = asked[0].request.size if isinstance(asked, tuple) else asked.get("size")
        if target.filter is None and size == 0:
            key = self._cache.key_of_text(target.name, text, limits.text)
        if key is not None and (kept := self._cache.get(key, [target.searcher])) is not None:
            return kept, True
        was_kept = None if key is None else False
        if not isinstance(asked, tuple):
            asked = self._known.prepare(asked, target, self._searchers, limits.options, text)
        prepared, name = asked
        if not is_short(prepared):
            return None, was_kept
        try:
            with short_answer():
                answer = with_name(prepared.run(), name)
        except LongAnswer:
            return None, was_kept
        if key is not None:
            self._cache.put(key, [target.searcher], answer)
        return answer, was_kept


def is_long_to_parse(body: Mapping[str, Any]) -> bool:
    """Whether there may be many aggregations, or one with what takes long the first time: the changes of a
    time zone, an expression.
    """
    if "aggs" not in body:
        return False
    text = orjson.dumps(body["aggs"])
    return len(text) > _AGGS_BYTES_MAX or any(name in text for name in (b'_zone"', b'clude"', b"script"))


def is_large(body: Mapping[str, Any]) -> bool:
    """Whether it has so many values, or texts of such lengths, that others would notice its parsing."""
    waiting: list[Any] = [body]
    left = _VALUES_MAX
    while waiting:
        one = waiting.pop()
        left -= 1
        if isinstance(one, str):
            left -= len(one) >> 5
        else:
            left -= len(one) >> 3  # of numbers, many make a vector
            inside = one.values() if isinstance(one, dict) else one
            waiting += [value for value in inside if isinstance(value, (str, dict, list))]
        if left < 0:
            return True
    return False
