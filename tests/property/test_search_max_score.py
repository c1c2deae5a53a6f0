"""The best documents of a disjunction are the same, to the last bit, whether all are counted or not, and
whether postings are merged or added up in windows.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.query.document_rows import row_of as compiled_row
from graphdb.search.query.few_terms import NEVER
from graphdb.search.query.few_terms import top_of_few as compiled_of_few
from graphdb.search.query.field_table import (
    BASE,
    CEILINGS,
    DOCS,
    FREQS,
    HIDDEN,
    HIGH,
    HIGHS,
    NORMS,
    POSTINGS,
    STARTS,
    address_of,
)
from graphdb.search.query.field_table import SIZE as SIZES
from graphdb.search.query.max_score import top_of_any as compiled
from graphdb.search.query.max_score import top_of_leaves as compiled_of_leaves
from graphdb.search.segments.postings import narrow_freqs, whole_freqs

SIZE = 9000  # more than two windows
# compiled: their types are not seen
top_of_any: Any = compiled
top_of_few: Any = compiled_of_few
top_of_leaves: Any = compiled_of_leaves
row_of: Any = compiled_row


@st.composite
def postings(draw: Any) -> dict[str, Any]:
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = draw(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.2, 0.9]), min_size=1, max_size=6))
    lists = [np.flatnonzero(random.random(SIZE) < share).astype(np.int32) for share in shares]
    ends = np.cumsum([len(one) for one in lists]).astype(np.int64)
    freqs = random.integers(1, 4, int(ends[-1]))
    freqs[random.random(len(freqs)) < draw(st.sampled_from([0.0, 0.01]))] = draw(st.integers(250, 260))
    narrow, high = narrow_freqs(freqs.astype(np.int32))
    return {
        "docs": np.concatenate(lists),
        "freqs": narrow,
        "high": high,
        "begins": ends - np.array([len(one) for one in lists]),
        "ends": ends,
        "weights": -np.sort(-random.choice(np.array([0, 0.1, 1, 2, 2, 7], np.float32), len(lists))),
        "norms": random.integers(1, 4, SIZE).astype(np.uint8),
        "inverse": np.linspace(1, 0.2, 256).astype(np.float32),
        "allowed": random.random(SIZE) < draw(st.sampled_from([0.1, 1.0])),
        "ceilings": np.zeros(int(ends[-1]) // 128 + 1, np.uint32),
    }


def _all_scores(given: dict[str, Any]) -> Any:
    scores = np.zeros(SIZE)
    freqs = whole_freqs(given["freqs"], given["high"], 0, len(given["docs"])).astype(np.float32)
    for begin, end, weight in zip(given["begins"], given["ends"], given["weights"], strict=True):
        docs = given["docs"][begin:end]
        inverse = given["inverse"][given["norms"][docs]]
        saturation = np.float32(1) + freqs[begin:end] * inverse
        scores[docs] += weight - weight / saturation
    return np.where(given["allowed"], scores, 0).astype(np.float32)


tops = st.sampled_from([top_of_few, top_of_any])


@settings(deadline=None)  # the first call may have to compile
@given(postings(), st.integers(1, 20), st.sampled_from([0, 100, 5000]), tops)
def test_the_same_best(given: dict[str, Any], k: int, counted: int, top: Any) -> None:
    scores = _all_scores(given)
    order = np.lexsort((np.arange(SIZE), -scores))[:k]
    order = order[scores[order] > 0]
    found = np.count_nonzero(scores)
    docs, best, count = top(*given.values(), k, -np.inf, NEVER)
    assert (docs.tolist(), best.tolist(), count) == (order.tolist(), scores[order].tolist(), found)
    docs, best, count = top(*given.values(), k, -np.inf, counted)
    assert (docs.tolist(), best.tolist()) == (order.tolist(), scores[order].tolist())
    assert count == found if found <= counted else counted < count <= found


@settings(deadline=None)  # the first call may have to compile
@given(postings(), st.integers(1, 20), st.sampled_from([0, NEVER]), tops)
def test_only_what_is_above_the_floor(given: dict[str, Any], k: int, counted: int, top: Any) -> None:
    scores = _all_scores(given)
    floor = float(np.sort(scores)[-5])
    docs, best, _ = top(*given.values(), k, floor, counted)
    order = np.lexsort((np.arange(SIZE), -scores))[:k]
    order = order[scores[order] > floor]
    assert (docs.tolist(), best.tolist()) == (order.tolist(), scores[order].tolist())


@settings(deadline=None)  # the first call may have to compile
@given(postings(), tops)
def test_counts_alone(given: dict[str, Any], top: Any) -> None:
    docs, _, count = top(*given.values(), 0, -np.inf, 0)
    assert (len(docs), count) == (0, np.count_nonzero(_all_scores(given)))


@settings(deadline=None)  # the first call may have to compile
@given(postings(), st.integers(0, 1000))
def test_a_ceiling_is_above_all(given: dict[str, Any], place: int) -> None:
    """Also where a frequency is as high as can be."""
    if len(given["docs"]):
        freqs = whole_freqs(given["freqs"], given["high"], 0, len(given["docs"])).copy()
        freqs[place % len(freqs)] = 2**31 - 1
        given["freqs"], given["high"] = narrow_freqs(freqs)
    test_the_same_best.hypothesis.inner_test(given, 3, 0, top_of_few)  # type: ignore[attr-defined]


def _table(leaves: list[dict[str, Any]]) -> tuple[Any, Any, list[Any]]:
    """(rows, live) of a `FieldTable`, and what has to be kept."""
    rows, live = np.zeros((len(leaves), HIDDEN + 1), np.int64), np.zeros(len(leaves), np.int64)
    kept: list[Any] = []
    for number, leaf in enumerate(leaves):
        starts = np.append(leaf["begins"], leaf["ends"][-1])
        hidden = SIZE - int(leaf["allowed"].sum())
        rows[number, [SIZES, BASE, HIDDEN]] = SIZE, number * SIZE, hidden
        rows[number, [POSTINGS, HIGHS]] = len(leaf["docs"]), len(leaf["high"])
        arrays = {DOCS: "docs", FREQS: "freqs", HIGH: "high", NORMS: "norms", CEILINGS: "ceilings"}
        for column, name in arrays.items():
            rows[number, column] = address_of(leaf[name])
        rows[number, STARTS], live[number] = address_of(starts), address_of(leaf["allowed"])
        kept += [starts, leaf]
    return rows, live, kept


def _dense(leaves: list[dict[str, Any]], has_rows: list[bool]) -> tuple[Any, list[Any]]:
    """(addresses, what has to be kept): the rows of those terms that shall have some, in each leaf."""
    dense, kept = np.zeros((len(has_rows), len(leaves)), np.int64), []
    for number, leaf in enumerate(leaves):
        for term, has_row in enumerate(has_rows):
            begin, end = leaf["begins"][term], leaf["ends"][term]
            if has_row:
                row = row_of(leaf["docs"][begin:end], leaf["freqs"][begin:end], leaf["norms"])
                dense[term, number] = address_of(row)
                kept.append(row)
    return dense, kept


has_rows = st.lists(st.booleans(), min_size=6, max_size=6)


@settings(deadline=None)  # the first call may have to compile
@given(
    st.lists(postings(), min_size=1, max_size=3),
    st.integers(0, 20),
    st.sampled_from([0, 100, 5000, NEVER]),
    st.booleans(),
    has_rows,
)
def test_the_best_of_several_leaves(
    leaves: list[dict[str, Any]], k: int, counted: int, masked: bool, has_rows: list[bool]
) -> None:
    """Also where it is known without counting that many match, and where filters hide more than deletions."""
    terms = min(len(leaf["weights"]) for leaf in leaves)
    weights = np.maximum(leaves[0]["weights"][:terms], np.float32(0.1))
    for leaf in leaves:
        leaf["begins"], leaf["ends"], leaf["weights"] = leaf["begins"][:terms], leaf["ends"][:terms], weights
        leaf["inverse"] = leaves[0]["inverse"]
        leaf["docs"], leaf["freqs"] = leaf["docs"][: leaf["ends"][-1]], leaf["freqs"][: leaf["ends"][-1]]
    rows, live, kept = _table(leaves)
    dense, kept_rows = _dense(leaves, has_rows[:terms])
    if masked:
        rows[:, HIDDEN] = 0
    scores = np.concatenate([_all_scores(leaf) for leaf in leaves])
    numbers = np.repeat(np.arange(terms)[:, np.newaxis], len(leaves), axis=1)
    found, best = np.empty(k, np.int64), np.empty(k, np.float32)
    given_order = np.arange(terms)
    some, count = top_of_leaves(
        rows,
        live,
        numbers,
        dense,
        weights,
        leaves[0]["inverse"],
        False,
        given_order,
        found,
        best,
        0,
        counted,
        masked,
    )
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    order = order[scores[order] > 0]
    assert found[:some].tolist() == order.tolist()
    assert best[:some].tolist() == scores[order].tolist()
    matching = np.count_nonzero(scores)
    assert count == matching if matching <= counted else counted < count <= matching
    del kept, kept_rows


@settings(deadline=None)  # the first call may have to compile
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([0.01, 0.25, 0.5, 0.9]), min_size=1, max_size=4),
    st.integers(0, 20),
    st.sampled_from([0, 100, 1500, NEVER]),
    st.sampled_from([0.2, 1.0]),
    st.integers(1, 2),
    has_rows,
)
def test_the_best_that_have_all_terms(
    seed: int,
    shares: list[float],
    k: int,
    counted: int,
    share_allowed: float,
    leaves: int,
    has_rows: list[bool],
) -> None:
    """Those that cannot be among the best are only counted, and not even that when enough are."""
    random = np.random.default_rng(seed)
    weights = np.sort(random.choice(np.array([0.5, 1, 1, 3], np.float32), len(shares)))[::-1].copy()
    order = random.permutation(len(shares))  # of the query
    inverse = np.linspace(1, 0.2, 256).astype(np.float32)
    made, scores = [], []
    for _ in range(leaves):
        lists = [np.flatnonzero(random.random(SIZE) < share).astype(np.int32) for share in shares]
        ends = np.cumsum([len(one) for one in lists]).astype(np.int64)
        freqs = random.integers(1, 4, int(ends[-1]))
        freqs[random.random(len(freqs)) < 0.01] = 257
        narrow, high = narrow_freqs(freqs.astype(np.int32))
        norms = random.integers(1, 40, SIZE).astype(np.uint8)
        allowed = random.random(SIZE) < share_allowed
        made.append(
            {
                "docs": np.concatenate(lists),
                "freqs": narrow,
                "high": high,
                "begins": ends - np.array([len(one) for one in lists]),
                "ends": ends,
                "norms": norms,
                "allowed": allowed,
                "ceilings": np.zeros(int(ends[-1]) // 128 + 1, np.uint32),
            }
        )
        there, total = allowed.copy(), np.zeros(SIZE)
        for term in order:
            own, docs = np.zeros(SIZE), lists[term]
            its_freqs = freqs[ends[term] - len(docs) : ends[term]].astype(np.float32)
            own[docs] = weights[term] - weights[term] / (np.float32(1) + its_freqs * inverse[norms[docs]])
            total += own
            there &= own > 0
        scores.append(np.where(there, total, 0).astype(np.float32))
    rows, live, kept = _table(made)
    found, best = np.empty(k, np.int64), np.empty(k, np.float32)
    numbers = np.repeat(np.arange(len(shares))[:, np.newaxis], leaves, axis=1)
    dense, kept_rows = _dense(made, has_rows[: len(shares)])
    given_table = (rows, live, numbers, dense, weights, inverse, True, order)
    some, count = top_of_leaves(*given_table, found, best, 0, counted, False)
    whole = np.concatenate(scores)
    wanted = np.lexsort((np.arange(len(whole)), -whole))[:k]
    wanted = wanted[whole[wanted] > 0]
    assert found[:some].tolist() == wanted.tolist()
    assert best[:some].tolist() == whole[wanted].tolist()
    matching = np.count_nonzero(whole)
    assert count == matching if matching <= counted else counted < count <= matching
    del kept, kept_rows
