"""Which shard a document is in, by Elasticsearch's formula and known values of its hash."""

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.segments.shard_routing import ShardRouting, default_routing_shards, routing_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # of Elasticsearch's Murmur3HashFunctionTests
        ("hell", 0x5A0CB7C3),
        ("hello", 0xD7C31989),
        ("hello w", 0x22AB2984),
        ("hello wo", 0xDF0CA123),
        ("hello wor", 0xE7744D61),
        ("The quick brown fox jumps over the lazy dog", 0xE07DB09C),
        ("The quick brown fox jumps over the lazy cog", 0x4E63D2AD),
    ],
)
def test_the_hash_is_that_of_elasticsearch(text: str, expected: int) -> None:
    assert routing_hash(text) % (1 << 32) == expected
    assert -(1 << 31) <= routing_hash(text) < 1 << 31


def test_any_text_of_json_has_a_hash() -> None:
    assert len({routing_hash(text) for text in ("", "é", "日本", "\U0001f600", "\ud800")}) == 5


@pytest.mark.parametrize(
    ("shards", "expected"),
    [(1, 1024), (2, 1024), (3, 768), (5, 640), (6, 768), (100, 800), (512, 1024), (513, 1026), (1024, 2048)],
)
def test_how_many_routing_shards_an_index_gets(shards: int, expected: int) -> None:
    """Elasticsearch's `MetadataCreateIndexService.calculateNumRoutingShards`."""
    assert default_routing_shards(shards) == expected


def test_a_document_is_where_its_routing_says() -> None:
    routing = ShardRouting.checked("i", 5, None, 1)
    expected = routing_hash("r") % 640 // 128
    assert routing.shard_of("1", "r") == routing.shard_of("2", "r") == expected
    assert routing.shards_of(["r"]) == {expected}
    assert routing.shard_of("r", None) == expected
    assert {routing.shard_of(str(number), None) for number in range(100)} == set(range(5))


def test_doubling_the_shards_splits_each_in_two() -> None:
    few, many = ShardRouting.checked("i", 3, None, 1), ShardRouting.checked("i", 6, None, 1)
    assert few.routing_shards == many.routing_shards
    for number in map(str, range(200)):
        assert many.shard_of(number, None) // 2 == few.shard_of(number, None)


def test_a_partitioned_index_spreads_a_routing() -> None:
    routing = ShardRouting.checked("i", 8, 8, 3)
    places = {routing.shard_of(str(number), "r") for number in range(100)}
    assert places == routing.shards_of(["r"])
    assert len(places) == 3


@pytest.mark.parametrize(
    ("shards", "routing_shards", "partition", "reason"),
    [
        (4, 2, 1, "index.number_of_routing_shards [2] must be >= index.number_of_shards [4]"),
        (4, 6, 1, "the number of source shards [4] must be a factor of [6]"),
        (
            2,
            2,
            2,
            "routing partition size [2] should be a positive number less than the number of routing shards "
            "[2] for [i]",
        ),
    ],
)
def test_numbers_that_do_not_fit(shards: int, routing_shards: int, partition: int, reason: str) -> None:
    with pytest.raises(SearchError) as raised:
        ShardRouting.checked("i", shards, routing_shards, partition)
    assert raised.value.reason == reason
