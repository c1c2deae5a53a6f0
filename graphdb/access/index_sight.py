"""`IndexSight`: which search indexes a principal may see, and which documents in them."""

import json
import re
from dataclasses import dataclass
from functools import cached_property

__all__ = ["NO_INDEXES", "WHOLE_INDEXES", "IndexSight"]


@dataclass(frozen=True)
class IndexSight:
    """patterns: names of indexes, in which `*` stands for any letters. sids: a document that lists SIDs is
    seen by whoever has one of them. is_whole: everything, those lists too; the others then say nothing.
    """

    is_whole: bool = False
    patterns: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()

    def sees_index(self, name: str) -> bool:
        """Whether the index may be known of, or made."""
        return self.is_whole or self._names.fullmatch(name) is not None

    @cached_property
    def _names(self) -> re.Pattern[str]:
        one_of = ("[^\n]*".join(map(re.escape, pattern.split("*"))) for pattern in sorted(self.patterns))
        return re.compile("|".join(one_of) if self.patterns else "(?!)")

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


WHOLE_INDEXES = IndexSight(is_whole=True)
NO_INDEXES = IndexSight()
