"""`ScriptedSimilarity`: scores that a script computes of the statistics of a term and of a document.

Source: Elasticsearch's documentation of the similarity `scripted`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument
from graphdb.search.other_similarities import Doubles, OtherSimilarity, TermStatistics

if TYPE_CHECKING:  # scripts read mappings, which are above this module; few indexes have such a similarity
    from graphdb.search.scripts.script import Script

__all__ = ["ScriptedSimilarity"]

_CHECKED = 256  # runs between two looks at the deadline


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a script finds under one name: `doc`, `term`, `field` or `query`."""

    name: str
    members: Mapping[str, float]

    def script_member(self, name: str) -> Any:
        from graphdb.search.scripts.faults import unsupported

        if name not in self.members:
            raise unsupported(f"dynamic getter [{self.name}, {name[:100]}] not found")
        return self.members[name]


@dataclass(frozen=True, slots=True)
class ScriptedSimilarity(OtherSimilarity):
    """weight: of a term, without a document; the script finds what it returns. None: the boost."""

    script: "Script"
    weight: "Script | None" = None
    name = "ScriptedSimilarity"

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> "ScriptedSimilarity":
        """values: its settings. Raises SearchError, also where a script does not compile."""
        from graphdb.search.scripts.script import Purpose, parse_script

        unknown = values.keys() - {"type", "script", "weight_script"}
        if unknown:
            raise illegal_argument(
                f"Unknown settings for similarity of type [scripted]: [{min(unknown)[:100]}]"
            )
        if values.get("script") is None:
            raise illegal_argument(f"Similarity [{name}] of type [scripted] needs a [script]")
        known = frozenset({"query", "field", "term", "params"})
        script = parse_script(values["script"], Purpose("similarity", known | {"doc", "weight"}))
        script.check()
        weight = None
        if values.get("weight_script") is not None:
            weight = parse_script(values["weight_script"], Purpose("similarity_weight", known))
            weight.check()
        return cls(script, weight)

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        return self.boosted(freqs, lengths, term, 1.0)

    def boosted(self, freqs: Doubles, lengths: Doubles, term: TermStatistics, boost: float) -> Doubles:
        """Once for each frequency in each length. Raises SearchError."""
        boost = float(np.float32(boost))  # as Elasticsearch, whose boosts are floats
        names: dict[str, Any] = {
            "query": _Seen("query", {"boost": boost}),
            "field": _Seen("field", {"docCount": term.doc_count, "sumTotalTermFreq": term.total_terms}),
            "term": _Seen("term", {"docFreq": term.doc_freq, "totalTermFreq": term.total_freq}),
        }
        names["weight"] = boost if self.weight is None else _number(self.weight, names)
        kinds, which = np.unique(freqs + 1j * lengths, return_inverse=True)
        found = np.empty(len(kinds))
        for place, kind in enumerate(kinds.tolist()):
            if place % _CHECKED == 0:
                checkpoint()
            names["doc"] = _Seen("doc", {"freq": kind.real, "length": int(kind.imag)})
            found[place] = score = _number(self.script, names)
            if not score >= 0:
                raise illegal_argument(
                    f"a similarity must not return negative scores, and has returned [{score}]"
                )
        scores: Doubles = found[which.reshape(-1)]
        return scores


def _number(script: "Script", names: Mapping[str, Any]) -> float:
    from graphdb.search.scripts.faults import class_cast

    value = script.run(names)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise script.error(class_cast("Cannot cast what a script of a similarity returns to [double]."))
    return float(value)
