"""`IndexSight`: which search indexes a principal may see, and which documents in them."""

import json
import re
from dataclasses import dataclass
from functools import cached_property

__all__ = ["EVERY_INDEX", "EVERY_PLAIN_INDEX", "NO_INDEXES", "WHOLE_INDEXES", "IndexSight"]

EVERY_PLAIN_INDEX = "*"  # the pattern of every index but those that follow the graph
EVERY_INDEX = "**"


@dataclass(frozen=True)
class IndexSight:
    """patterns: names of indexes, in which `*` stands for any letters; `*` alone is not for indexes that
    follow the graph, `**` is for all. sids: a document that lists SIDs is seen by whoever has one of them.
    is_whole: everything, those lists too; the others then say nothing.
    """

    is_whole: bool = False
    patterns: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()

    def sees_index(self, name: str, follows_graph: bool = False) -> bool:
        """Whether the index may be known of, or made. follows_graph: its documents are made of the graph, of
        which the principal may not see everything.
        """
        if self.is_whole:
            return True
        names = self._names_of_followers if follows_graph else self._names
        return names.fullmatch(name) is not None

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return _one_of(self.patterns)

    @cached_property
    def _names_of_followers(self) -> re.Pattern[str]:
        return _one_of(self.patterns - {EVERY_PLAIN_INDEX})

    def to_json(self) -> str:
        """The same text for the same sight; `from_json` reads it."""
        return json.dumps([self.is_whole, sorted(self.patterns), sorted(self.sids)])

    @classmethod
    def from_json(cls, text: str) -> "IndexSight":
        """Raises ValueError for what `to_json` has not written."""
        match json.loads(text):
            case [bool(is_whole), [*patterns], [*sids]] if all(
                isinstance(one, str) for one in (*patterns, *sids)
            ):
                return cls(is_whole, frozenset(patterns), frozenset(sids))
        raise ValueError("no sight of indexes")


def _one_of(patterns: frozenset[str]) -> re.Pattern[str]:
    one_of = ("[^\n]*".join(map(re.escape, re.split(r"\*+", pattern))) for pattern in sorted(patterns))
    return re.compile("|".join(one_of) if patterns else "(?!)")


WHOLE_INDEXES = IndexSight(is_whole=True)
NO_INDEXES = IndexSight()
