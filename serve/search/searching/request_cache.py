"""`RequestCache`: answers of searches that show no hits, for as long as what is searched stays as it is."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any
from weakref import ref

import orjson

from graphdb.search.multi import Target
from graphdb.search.query import Searcher

__all__ = ["RequestCache"]

_KEPT_MAX = 256
_KEY_BYTES_MAX = 20_000

Answer = dict[str, Any]


class RequestCache:
    """For the event loop only. Least recently asked go first. Answers are shared: nobody may change one.

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
        # Dates with `now`, random scores and documents that are looked up make another answer each time.
        if len(text) > _KEY_BYTES_MAX or any(word in text for word in (b"now", b"random_score", b'"index"')):
            return None
        return tuple((one.name, orjson.dumps(one.filter), one.boost) for one in targets), text, more

    def get(self, key: Hashable, targets: Sequence[Target]) -> Answer | None:
        known = self._kept.get(key)
        if known is None or any(
            one() is not two.searcher for one, two in zip(known[0], targets, strict=True)
        ):
            return None
        self._kept.move_to_end(key)
        return known[1]

    def put(self, key: Hashable, targets: Sequence[Target], answer: Answer) -> None:
        self._kept[key] = tuple(ref(target.searcher) for target in targets), answer
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
