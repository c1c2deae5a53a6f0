"""Which segments are merged, by example."""

import pytest

from graphdb.search.segments.merge_policy import Candidate, TieredMergePolicy

MB = 1 << 20
POLICY = TieredMergePolicy(segments_per_tier=3, segments_per_merge=3, merged_bytes_max=100 * MB)


@pytest.mark.parametrize(
    ("sizes_mb", "chosen"),
    [
        ([], None),
        ([2, 2, 2], None),
        ([2, 2, 2, 2], None),
        ([2, 2, 2, 2, 2], slice(0, 3)),
        ([20, *[2] * 7], slice(1, 4)),
        ([*[20] * 5, *[2] * 6], slice(5, 8)),
        ([90, 90, 90, 90, 90], None),  # too large to grow
        ([2, 90] * 8, None),  # no neighbours
        ([*[2] * 6, *[20] * 5, 2], slice(0, 3)),
    ],
)
def test_neighbours_of_like_size_are_merged(sizes_mb: list[int], chosen: slice | None) -> None:
    assert POLICY.choose([Candidate(size * MB, 0.0) for size in sizes_mb]) == chosen


def test_a_segment_with_many_deleted_documents_is_written_anew() -> None:
    candidates = [Candidate(90 * MB, 0.2), Candidate(90 * MB, 0.4), Candidate(90 * MB, 0.35)]
    assert POLICY.choose(candidates) == slice(1, 2)


@pytest.mark.parametrize(
    ("sizes_mb", "segments_max", "chosen"),
    [
        ([], 1, None),
        ([2], 1, None),
        ([2, 2], 2, None),
        ([2, 2], 3, None),
        ([2, 90, 3], 1, slice(0, 3)),
        ([90, 2, 3, 90], 3, slice(1, 3)),
        ([90, 2, 3, 90], 0, slice(0, 4)),
    ],
)
def test_merging_down_to_a_number_takes_the_smallest_neighbours(
    sizes_mb: list[int], segments_max: int, chosen: slice | None
) -> None:
    candidates = [Candidate(size * MB, 0.0) for size in sizes_mb]
    assert POLICY.choose_for(candidates, segments_max) == chosen


def test_merging_down_to_one_also_drops_what_is_deleted() -> None:
    assert POLICY.choose_for([Candidate(90 * MB, 0.01)], 1) == slice(0, 1)
    assert POLICY.choose_for([Candidate(90 * MB, 0.01)], 2) is None


def test_the_segment_with_the_most_deleted_documents_is_written_again_where_it_is_asked_for() -> None:
    assert POLICY.choose_deleted([]) is None
    assert POLICY.choose_deleted([Candidate(MB, 0.1), Candidate(MB, 0.0)]) is None
    assert POLICY.choose_deleted([Candidate(MB, 0.11), Candidate(MB, 0.2), Candidate(MB, 0.0)]) == slice(1, 2)


@pytest.mark.parametrize(
    ("sizes_mb", "chosen"),
    [
        ([], None),
        ([2], None),
        ([2, 2], slice(0, 2)),
        ([2, 1], None),
        ([9, 8, 7, 6], slice(0, 4)),
        ([40, 1, 1, 1], slice(1, 4)),
        ([40, 20, 10, 10], slice(0, 4)),
        ([300, 300, 300], None),  # too large together
        ([300, 200, 10, 10, 200], slice(1, 5)),
    ],
)
def test_what_is_at_rest_is_merged_as_far_as_it_doubles(sizes_mb: list[int], chosen: slice | None) -> None:
    assert TieredMergePolicy().choose_at_rest([Candidate(size * MB, 0.0) for size in sizes_mb]) == chosen


def test_rests_between_writes_leave_few_segments_and_write_little() -> None:
    policy, sizes, written, most = TieredMergePolicy(), list[int](), 0, 0
    for _ in range(400):
        sizes.append(MB)
        while chosen := policy.choose_at_rest([Candidate(size, 0.0) for size in sizes]):
            written += sum(sizes[chosen])
            sizes[chosen] = [sum(sizes[chosen])]
        most = max(most, len(sizes))
    assert most <= 10
    assert written <= 10 * 400 * MB


def test_a_merge_is_never_larger_than_allowed() -> None:
    chosen = POLICY.choose([Candidate(45 * MB, 0.0)] * 10)
    assert chosen == slice(0, 2)


def test_many_refreshes_leave_few_segments() -> None:
    """10,000 small segments, one after the other: their number grows as the logarithm of all."""
    policy = TieredMergePolicy()
    sizes: list[int] = []
    most = written = 0
    for _ in range(10_000):
        sizes.append(MB)
        while chosen := policy.choose([Candidate(size, 0.0) for size in sizes]):
            written += sum(sizes[chosen])
            sizes[chosen] = [sum(sizes[chosen])]
        most = max(most, len(sizes))
    assert sum(sizes) == 10_000 * MB
    assert most <= 50
    assert written <= 6 * sum(sizes)
