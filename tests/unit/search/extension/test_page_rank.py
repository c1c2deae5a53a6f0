"""PageRank against a dense twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.extension.boosting import LinkCollector, page_rank

LINKS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


def dense(links: list[tuple[int, int]], count: int) -> "np.typing.NDArray[np.float64]":
    """The eigenvector of the whole matrix of transitions."""
    matrix = np.zeros((count, count))
    for source, target in links:
        matrix[target, source] += 1
    sums = matrix.sum(axis=0)
    matrix = np.where(sums > 0, matrix / np.maximum(sums, 1), 1 / count)
    google = 0.85 * matrix + 0.15 / count
    values, vectors = np.linalg.eig(google)
    first = np.abs(vectors[:, np.argmax(values.real)].real)
    return np.asarray(first / first.sum())


@given(LINKS)
@settings(deadline=None)
def test_ranks_are_those_of_the_dense_twin(links: list[tuple[int, int]]) -> None:
    ends = np.array(links, np.int32).reshape(-1, 2)
    ranks = page_rank(ends[:, 0].copy(), ends[:, 1].copy(), 8)
    assert ranks.sum() == pytest.approx(1)
    np.testing.assert_allclose(ranks, dense(links, 8), atol=1e-5)


@given(LINKS, st.integers(1, 40))
@settings(deadline=None)
def test_links_come_in_pieces_of_any_length(links: list[tuple[int, int]], size: int) -> None:
    text = b"?s\t?o\n" + b"".join(b"<urn:%d>\t<urn:%d>\n" % link for link in links)
    collector = LinkCollector()
    for start in range(0, len(text), size):
        collector.feed(text[start : start + size])
    ranks = collector.ranks()
    used = sorted({end for link in links for end in link})
    assert collector.count == len(links)
    if used:
        expected = dense([(used.index(s), used.index(t)) for s, t in links], len(used))
        np.testing.assert_allclose(
            ranks.of(f"urn:{end}" for end in used), expected / expected.max(), atol=1e-4
        )
    assert ranks.of(["urn:none", "<", "\ud800"]).tolist() == [0.0, 0.0, 0.0]


def test_the_last_line_counts_without_its_end() -> None:
    collector = LinkCollector()
    collector.feed(b"<urn:a>\t_:b\r\n_:b\t<urn:a>")
    assert collector.ranks().of(["urn:a"]).tolist() == [1.0]
    assert collector.count == 2


def test_too_many_links_are_refused() -> None:
    with pytest.raises(OverflowError):
        LinkCollector(links_max=1).feed(b"<urn:a>\t<urn:b>\n<urn:b>\t<urn:c>\n")
