"""From the terms of each document to the documents of each term, and back (Numba)."""

from typing import Any

import numba
import numpy as np

from graphdb.search.segment import Bools

__all__ = ["any_in", "invert", "transpose"]


@numba.njit(cache=True, nogil=True)
def invert(tokens: Any, positions: Any, docs: Any, counts: Any, ranks: Any) -> Any:
    """Postings of one field.

    tokens (int32) are all documents' tokens in turn, docs ascend, and docs[i] has counts[i] of them. ranks
    gives each token its term's number in the dictionary. Returns (starts, docs, freqs, position_starts,
    positions): term t is in docs[starts[t]:starts[t + 1]], at positions[position_starts[t]:...] of them all.
    """
    token_starts = np.zeros(len(ranks) + 1, np.int64)
    for token in tokens:
        token_starts[ranks[token] + 1] += 1
    token_starts = np.cumsum(token_starts)
    cursors = token_starts[ranks]
    # document and position together, so that the one random write is one
    places = np.empty(len(tokens), np.int64)
    number = 0
    for i in range(len(docs)):
        doc = np.int64(docs[i]) << 32
        for _ in range(counts[i]):
            token = tokens[number]
            places[cursors[token]] = doc | positions[number]
            cursors[token] += 1
            number += 1
    starts, found, freqs, sorted_positions = _group(token_starts, places)
    return starts, found, freqs, token_starts, sorted_positions


@numba.njit(cache=True, nogil=True)
def _group(token_starts: Any, places: Any) -> Any:
    """Make one posting of a term's tokens in the same document: (starts, docs, freqs, positions)."""
    starts = np.zeros(len(token_starts), np.int64)
    docs, freqs = np.empty(len(places), np.int32), np.empty(len(places), np.int32)
    positions = np.empty(len(places), np.int32)
    count = 0
    for term in range(len(token_starts) - 1):
        before = np.int64(-1)
        for i in range(token_starts[term], token_starts[term + 1]):
            doc, positions[i] = places[i] >> 32, places[i] & 0xFFFFFFFF
            if doc == before:
                freqs[count - 1] += 1
            else:
                before = doc
                docs[count], freqs[count] = doc, 1
                count += 1
        starts[term + 1] = count
    return starts, docs[:count].copy(), freqs[:count].copy(), positions


@numba.njit(cache=True, nogil=True)
def transpose(starts: Any, docs: Any, size: int) -> Any:
    """Ordinals from postings: (starts, terms), the terms of each of `size` documents, ascending."""
    doc_starts = np.zeros(size + 1, np.int32)
    for doc in docs:
        doc_starts[doc + 1] += 1
    doc_starts = np.cumsum(doc_starts).astype(np.int32)
    cursors = doc_starts[:-1].copy()
    terms = np.empty(len(docs), np.int32)
    for term in range(len(starts) - 1):
        for i in range(starts[term], starts[term + 1]):
            terms[cursors[docs[i]]] = term
            cursors[docs[i]] += 1
    return doc_starts, terms


@numba.njit(cache=True, nogil=True)
def any_in(members: Any, starts: Any, chosen: Any) -> Bools:
    """Which groups have a member that is chosen: of documents their terms, of terms their documents.

    Group g has members[starts[g]:starts[g + 1]]; chosen (bool) is by member.
    """
    mask = np.zeros(len(starts) - 1, np.bool_)
    for group in range(len(starts) - 1):
        for i in range(starts[group], starts[group + 1]):
            if chosen[members[i]]:
                mask[group] = True
                break
    return mask
