"""How alike two strings are, from 0 to 1: the `string_distance` of the suggester `term`.

Sources: Levenshtein (1966); Winkler (1990), as Lucene computes it; Kondrak, "N-gram similarity and distance"
(2005), of pairs.
"""

from collections.abc import Callable

from graphdb.search.near_names import likeness

__all__ = ["DISTANCES"]

_THRESHOLD = 0.7  # of Jaro's measure: from there on a common beginning counts
_BEGINNING_MAX = 0.1


def _jaro_winkler(first: str, second: str) -> float:
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    reach = max(len(longer) // 2 - 1, 0)
    taken: dict[int, int] = {}  # places in the longer one by those in the shorter one
    used: set[int] = set()
    for at, char in enumerate(shorter):
        for place in range(max(at - reach, 0), min(at + reach + 1, len(longer))):
            if place not in used and longer[place] == char:
                taken[at] = place
                used.add(place)
                break
    matches = len(taken)
    if not matches:
        return 0.0
    ordered = [longer[place] for place in sorted(used)]
    transpositions = sum(shorter[at] != char for at, char in zip(taken, ordered, strict=True)) // 2
    jaro = (matches / len(first) + matches / len(second) + (matches - transpositions) / matches) / 3
    if jaro < _THRESHOLD:
        return jaro
    common = next(
        (at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter)
    )
    return jaro + min(_BEGINNING_MAX, 1 / len(longer)) * common * (1 - jaro)


def _pairs(first: str, second: str) -> float:
    """Kondrak's distance of pairs of characters; what stands before the first is like nothing else."""
    if not first or not second:
        return 1.0 if first == second else 0.0
    if len(first) < 2 or len(second) < 2:
        return sum(a == b for a, b in zip(first, second, strict=False)) / max(len(first), len(second))
    padded = "\x00" + first
    row = [float(place) for place in range(len(first) + 1)]
    for at, char in enumerate(second, 1):
        pair = ("\x00" if at == 1 else second[at - 2]) + char
        before, row = row, [float(at)]
        for place in range(1, len(first) + 1):
            row.append(
                min(
                    row[-1] + 1,
                    before[place] + 1,
                    before[place - 1] + _cost(padded[place - 1 : place + 1], pair),
                )
            )
    return 1 - row[-1] / max(len(first), len(second))


def _cost(one: str, other: str) -> float:
    """Of two pairs: characters that differ, where the padding counts for none."""
    size, differ = 2, 0
    for a, b in zip(one, other, strict=True):
        if a != b:
            differ += 1
        elif a == "\x00":
            size -= 1
    return differ / size


DISTANCES: dict[str, Callable[[str, str], float] | None] = {
    "internal": None,
    "damerau_levenshtein": None,
    "levenshtein": likeness,
    "jaro_winkler": _jaro_winkler,
    "ngram": _pairs,
}
"""By the names that requests use; None: by the edits that have found a term."""
