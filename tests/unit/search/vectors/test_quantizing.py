"""Codes of 4 bits and 1 bit: what they say of distances and products, against the same in plain NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.leaf_reader import Floats, Ints
from graphdb.search.vectors.codes import Codes, prepared
from graphdb.search.vectors.quantizing import (
    ADDEND,
    FACTOR,
    PLANES,
    SUM,
    asked_of_bits,
    asked_of_nibbles,
    rotated,
    signs_for,
)
from graphdb.search.vectors.row_set import RowSet
from graphdb.search.vectors.walk import scan

SIMILARITIES = ("cosine", "dot_product", "l2_norm", "max_inner_product")


def rows_of(rows: int, dims: int, seed: int = 0) -> Floats:
    """Clusters, not around the origin, that differ more in the first elements than in the last."""
    random = np.random.default_rng(seed)
    spread = np.arange(1, dims + 1) ** -0.5
    centres = spread * random.standard_normal((5, dims)) + 0.1
    made = centres[random.integers(0, 5, rows)] + random.standard_normal((rows, dims)) * spread
    return made.astype(np.float32)


def grid_of(codes: Codes) -> Floats:
    """The codes of each row as numbers around 0."""
    raw = codes.codes.view(np.uint8)
    width = codes.steps.shape[1]
    if codes.bits == 1:
        return np.unpackbits(raw[:, : width // 8], axis=1, bitorder="little") - np.float32(0.5)
    bytes_ = raw[:, : width // 2]
    return np.concatenate([bytes_ & 15, bytes_ >> 4], axis=1) - np.float32(7.5)


def nearness_of(rows: Floats, query: Floats, similarity: str) -> Any:
    """The nearer, the more; but for what is the same for all rows, and for a factor."""
    wide, vector = prepared(rows, similarity).astype(np.float64), query.astype(np.float64)
    return -np.square(wide - vector).sum(axis=1) if similarity == "l2_norm" else wide @ vector


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 300), st.sampled_from([1, 4]), st.integers(0, 1_000))
def test_a_rotation_keeps_products_and_spreads_elements(dims: int, bits: int, seed: int) -> None:
    rows = rows_of(8, dims, seed)
    turned = rotated(rows, signs_for(dims, bits))
    assert turned.shape[1] >= dims
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=1e-3, atol=1e-3)
    assert (turned == rotated(rows, signs_for(dims, bits))).all()
    one = np.zeros((1, 256), np.float32)
    one[0, dims % 256] = 1
    assert np.abs(rotated(one, signs_for(256, bits))).max() < 0.5


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 200), st.sampled_from([1, 4]), st.sampled_from(SIMILARITIES), st.integers(0, 1_000))
def test_what_is_kept_of_a_row_gives_its_product_with_itself(
    dims: int, bits: int, similarity: str, seed: int
) -> None:
    rows = rows_of(20, dims, seed)
    codes = Codes.of(rows, similarity, bits)
    terms = codes.terms()
    assert terms is not None
    assert codes.bits == bits
    own = prepared(rows, similarity)
    turned = rotated(own - codes.offsets, codes.steps)
    grid = grid_of(codes)
    estimated = terms[:, FACTOR] * (grid * turned).sum(axis=1)
    np.testing.assert_allclose(estimated, np.square(own - codes.offsets).sum(axis=1), rtol=1e-3, atol=1e-4)
    if bits == 1:
        assert (terms[:, SUM] == (grid > 0).sum(axis=1)).all()
        assert ((grid > 0) == (turned > 0)).all()
    expected = own @ codes.offsets
    if similarity == "l2_norm":
        expected = np.square(own - codes.offsets).sum(axis=1) / 2
    np.testing.assert_allclose(terms[:, ADDEND], expected, rtol=1e-3, atol=1e-3)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(0, 1_000), st.sampled_from([1e-12, 1.0, 1e12]))
def test_queries_are_what_their_codes_say(words: int, seed: int, size: float) -> None:
    query = (rows_of(1, 64 * words, seed)[0] * np.float32(size)).astype(np.float32)
    planes, weights = np.zeros(PLANES * words, np.uint64), np.zeros(4, np.float32)
    asked_of_bits(query, planes, weights)
    bits = np.unpackbits(planes.view(np.uint8), bitorder="little").reshape(PLANES, -1)
    codes = (bits << np.arange(PLANES)[:, None]).sum(axis=0)
    assert codes.min() == 0
    assert codes.max() == 15
    read = weights[0] + weights[1] * codes
    assert np.abs(read - query).max() <= 0.51 * weights[1]
    assert weights[2] == pytest.approx(0.5 * read.sum(dtype=np.float64), rel=1e-3, abs=1e-3 * size)
    shorts = np.zeros(len(query), np.int16)
    asked_of_nibbles(query, shorts, weights)
    assert np.abs(weights[1] * shorts - query).max() <= 0.51 * weights[1]
    total = (weights[1] * shorts).sum(dtype=np.float64)
    assert weights[2] == pytest.approx(7.5 * total, rel=1e-3, abs=1e-2 * size)


@settings(deadline=None, max_examples=80)
@given(
    st.integers(1, 150),
    st.sampled_from([1, 4]),
    st.sampled_from(SIMILARITIES),
    st.integers(0, 1_000),
    st.integers(1, 40),
)
def test_a_scan_ranks_as_the_estimate_does(
    dims: int, bits: int, similarity: str, seed: int, count: int
) -> None:
    """The estimate said plainly, of the query as it is: what the query loses by its codes is small."""
    rows, query = rows_of(200, dims, seed), rows_of(1, dims, seed + 1)[0]
    codes = Codes.of(rows, similarity, bits)
    terms = codes.terms()
    assert terms is not None
    asked, share = query.astype(np.float64) - codes.offsets, -1.0
    if similarity != "l2_norm":
        share = float(query @ codes.offsets / (codes.offsets @ codes.offsets))
        asked = query - share * codes.offsets
    turned = rotated(asked[np.newaxis].astype(np.float32), codes.steps)[0]
    estimated = share * terms[:, ADDEND] + terms[:, FACTOR] * (grid_of(codes) @ turned)
    found: Ints = scan(codes.codes, *codes.asked(query), RowSet.every(len(rows)).bits, count)
    assert len(set(found.tolist())) == count
    step = (turned.max() - turned.min()) / 15 if bits == 1 else np.abs(turned).max() / 8_191
    lost = 2 * np.abs(terms[:, FACTOR]).max() * step * np.abs(grid_of(codes)).sum(axis=1).max() + 1e-3
    assert estimated[found].min() >= np.sort(estimated)[-count] - lost


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(("bits", "among", "least"), [(4, 20, 0.99), (1, 100, 0.93)])
def test_the_nearest_are_among_the_first_by_code(
    similarity: str, bits: int, among: int, least: float
) -> None:
    rows = rows_of(4_100, 96)
    if similarity == "dot_product":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows, queries = rows[:4_000], rows[4_000:]
    codes, every, hits = Codes.of(rows, similarity, bits), RowSet.every(4_000).bits, 0
    for query in queries:
        nearest = np.argsort(-nearness_of(rows, query, similarity))[:10]
        hits += len(np.intersect1d(scan(codes.codes, *codes.asked(query), every, among), nearest))
    assert hits >= least * 10 * len(queries)


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("dims", [1, 2, 3, 64, 65, 384, 768, 4_096])
def test_what_a_row_takes(dims: int, bits: int) -> None:
    codes = Codes.of(rows_of(3, dims), "cosine", bits)
    size = -(-dims // 64) * 8 if bits == 1 else -(-dims // 2)
    assert size + 16 <= codes.row_bytes <= size + 20
    assert not codes.codes.flags.writeable


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-15, 1e15])
def test_rows_of_any_size_are_numbers(bits: int, similarity: str, value: float) -> None:
    """Equal ones, too: their centre is where they are."""
    rows = np.full((5, 70), value, np.float32)
    rows[4, 0] = 2 * value
    codes = Codes.of(rows, similarity, bits)
    terms = codes.terms()
    assert terms is not None
    assert np.isfinite(terms).all()
    asked = codes.asked(np.full(70, value, np.float32))
    assert asked.weights is not None
    assert np.isfinite(asked.weights).all()
    assert len(scan(codes.codes, *asked, RowSet.every(5).bits, 5)) == 5
