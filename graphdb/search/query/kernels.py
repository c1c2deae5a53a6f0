"""The loops that Numba compiles: plain arrays in and out; what they mean stands with their callers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Longs

__all__ = [
    "accumulate",
    "any_between",
    "any_within",
    "between",
    "edit_distances",
    "find_sorted",
    "glob_matches",
    "mark",
    "term_scores",
    "top_k",
]


@compiled(nogil=True)
def accumulate(
    scores: Doubles,
    counts: NDArray[Any],
    docs: Ints,
    freqs: NDArray[Any],
    norms: NDArray[np.uint8],
    inverse: Floats,
    weight: np.float32,
) -> None:
    """Add one term's BM25 scores, and 1 to counts, for each document of its postings."""
    for i in range(len(docs)):
        doc = docs[i]
        saturation = np.float32(1) + np.float32(freqs[i]) * inverse[norms[doc]]
        scores[doc] += weight - weight / saturation
        counts[doc] += 1


@compiled(nogil=True)
def term_scores(
    docs: Ints, freqs: NDArray[Any], norms: NDArray[np.uint8], inverse: Floats, weight: np.float32
) -> Floats:
    """One term's BM25 scores of the documents of its postings, as `accumulate` has them."""
    scores = np.empty(len(docs), np.float32)
    for i in range(len(docs)):
        scores[i] = weight - weight / (np.float32(1) + np.float32(freqs[i]) * inverse[norms[docs[i]]])
    return scores


@compiled(nogil=True)
def mark(mask: Bools, docs: Ints) -> None:
    """Set these documents; NumPy takes ten times as long for it."""
    for doc in docs:
        mask[doc] = True


@compiled(nogil=True)
def top_k(scores: NDArray[Any], allowed: Bools, floor: float, k: int) -> tuple[Longs, Floats, int]:
    """The k best documents with a score above floor, ties by number; and how many have one at all."""
    docs, best = np.full(k, -1, np.int64), np.full(k, -np.inf, np.float32)
    count = 0
    for doc in range(len(scores)):
        score = np.float32(scores[doc])
        if score > floor and allowed[doc]:
            count += 1
            if k > 0 and (score > best[k - 1] or docs[k - 1] < 0):
                place = k - 1
                while place > 0 and (best[place - 1] < score or docs[place - 1] < 0):
                    best[place], docs[place] = best[place - 1], docs[place - 1]
                    place -= 1
                best[place], docs[place] = score, doc
    kept = min(k, count)
    return docs[:kept], best[:kept], count


@compiled(nogil=True)
def find_sorted(wanted: Ints, docs: Ints) -> Longs:
    """Where each of wanted stands in docs, -1 where it does not. Both ascend; galloping, so that few wanted
    ones do not pay for many docs.
    """
    found = np.full(len(wanted), -1, np.int64)
    low = 0
    for i in range(len(wanted)):
        step = 1
        while low + step < len(docs) and docs[low + step] < wanted[i]:
            step *= 2
        high = min(low + step, len(docs))
        low += np.searchsorted(docs[low:high], wanted[i])
        if low >= len(docs):
            break
        if docs[low] == wanted[i]:
            found[i] = low
    return found


@compiled(nogil=True)
def between(values: NDArray[Any], low: Any, high: Any) -> Bools:
    """Which values are in [low, high]."""
    mask = np.empty(len(values), np.bool_)
    for i in range(len(values)):
        mask[i] = (values[i] >= low) & (values[i] <= high)
    return mask


@compiled(nogil=True)
def any_between(values: NDArray[Any], starts: Ints, low: Any, high: Any) -> Bools:
    """Which documents have a value in [low, high]; document d has values[starts[d]:starts[d + 1]]."""
    mask = np.zeros(len(starts) - 1, np.bool_)
    for doc in range(len(starts) - 1):
        for i in range(starts[doc], starts[doc + 1]):
            if low <= values[i] <= high:
                mask[doc] = True
                break
    return mask


@compiled(nogil=True)
def any_within(distances: Doubles, starts: Ints) -> Doubles:
    """The least of each document's distances, infinity where it has none."""
    least = np.full(len(starts) - 1, np.inf)
    for doc in range(len(starts) - 1):
        for i in range(starts[doc], starts[doc + 1]):
            least[doc] = min(least[doc], distances[i])
    return least


@compiled(nogil=True)
def _glob(codes: NDArray[np.uint32], begin: int, end: int, pattern: NDArray[np.uint32]) -> bool:
    """Match one term: on failure only the last `*` takes one more, for an earlier one never needs to."""
    at, place, star, resume = begin, 0, -1, begin
    while at < end:
        if place < len(pattern) and pattern[place] == 0x110001:
            star, resume = place, at
            place += 1
        elif place < len(pattern) and (pattern[place] == 0x110000 or pattern[place] == codes[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = resume, star + 1
        else:
            return False
    while place < len(pattern) and pattern[place] == 0x110001:
        place += 1
    return place == len(pattern)


@compiled(nogil=True)
def glob_matches(
    codes: NDArray[np.uint32], starts: Longs, pattern: NDArray[np.uint32], start: int, stop: int
) -> Bools:
    """Which terms in [start, stop) match a pattern; 0x110000 in it is any character, 0x110001 any string."""
    mask = np.zeros(stop - start, np.bool_)
    for number in range(start, stop):
        mask[number - start] = _glob(codes, starts[number], starts[number + 1], pattern)
    return mask


@compiled(nogil=True)
def _distance(part: NDArray[np.uint32], term: NDArray[np.uint32], most: int, swaps: bool, rows: Ints) -> int:
    """Optimal string alignment, given up as soon as a row has nothing within `most`.

    rows is room for (3, len(term) + 1) numbers.
    """
    for j in range(len(term) + 1):
        rows[0, j] = j
    for i in range(1, len(part) + 1):
        before, row, after = (i - 2) % 3, (i - 1) % 3, i % 3
        rows[after, 0] = least = i
        for j in range(1, len(term) + 1):
            same = part[i - 1] == term[j - 1]
            cost = min(rows[row, j - 1] + (0 if same else 1), rows[row, j] + 1, rows[after, j - 1] + 1)
            if swaps and i > 1 and j > 1 and part[i - 1] == term[j - 2] and part[i - 2] == term[j - 1]:
                cost = min(cost, rows[before, j - 2] + 1)
            rows[after, j] = cost
            least = min(least, cost)
        if least > most:
            return most + 1
    return int(min(rows[len(part) % 3, len(term)], most + 1))


@compiled(nogil=True)
def edit_distances(
    codes: NDArray[np.uint32],
    starts: Longs,
    term: NDArray[np.uint32],
    prefix: int,
    most: int,
    swaps: bool,
    start: int,
    stop: int,
) -> NDArray[np.int8]:
    """How far each term in [start, stop) is from one, most + 1 where farther; all share its prefix."""
    result = np.full(stop - start, most + 1, np.int8)
    wanted = term[prefix:]
    rows = np.zeros((3, len(wanted) + 1), np.int32)
    for number in range(start, stop):
        begin, end = starts[number] + prefix, starts[number + 1]
        if end >= begin and abs((end - begin) - len(wanted)) <= most:
            result[number - start] = _distance(codes[begin:end], wanted, most, swaps, rows)
    return result
