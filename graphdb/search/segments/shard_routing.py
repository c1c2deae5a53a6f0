"""`ShardRouting`: which shard of an index a document is in: Elasticsearch's formula, with its numbers.

    shard = floor_mod(murmur3(routing) + floor_mod(murmur3(_id), partition size), routing shards) / factor

where the routing of a document that names none is its `_id`, and the factor is the number of routing shards
by that of shards. Source: `IndexRouting`, `Murmur3HashFunction` and `MetadataCreateIndexService` of
Elasticsearch 8.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import mmh3

from graphdb.search.errors import illegal_argument

__all__ = ["ShardRouting", "default_routing_shards", "routing_hash"]

_ROUTING_SHARDS_LOG2_MAX = 10  # 1024, the most that an index may have


def routing_hash(text: str) -> int:
    """Murmur3 (x86, 32 bits, seed 0) of the UTF-16 code units, little-endian; signed, as Java has it."""
    return mmh3.hash(text.encode("utf-16-le", "surrogatepass"), 0, signed=True)


def default_routing_shards(shards: int) -> int:
    """`shards` * 2**x, the largest up to 1024, twice `shards` at least: what an index can be split into."""
    splits = _ROUTING_SHARDS_LOG2_MAX - (shards - 1).bit_length()
    return shards << max(1, splits)


@dataclass(frozen=True, slots=True)
class ShardRouting:
    """Of one index; none of it changes while the index exists.

    shards divides routing_shards. partition_size: over how many shards one routing is spread.
    """

    shards: int = 1
    routing_shards: int = 1024
    partition_size: int = 1

    @classmethod
    def checked(
        cls, index: str, shards: int, routing_shards: int | None, partition_size: int
    ) -> "ShardRouting":
        """routing_shards: None for as many as an index gets by itself. Errors: illegal_argument_exception."""
        if routing_shards is None:
            routing_shards = default_routing_shards(shards)
        if routing_shards < shards:
            raise illegal_argument(
                f"index.number_of_routing_shards [{routing_shards}] must be >= "
                f"index.number_of_shards [{shards}]"
            )
        if routing_shards % shards:
            raise illegal_argument(
                f"the number of source shards [{shards}] must be a factor of [{routing_shards}]"
            )
        if partition_size != 1 and partition_size >= routing_shards:
            raise illegal_argument(
                f"routing partition size [{partition_size}] should be a positive number less than the number "
                f"of routing shards [{routing_shards}] for [{index}]"
            )
        return cls(shards, routing_shards, partition_size)

    def shard_of(self, doc_id: str, routing: str | None) -> int:
        """Where a document is, in [0, shards)."""
        if self.shards == 1:
            return 0
        hashed = routing_hash(doc_id if routing is None else routing)
        if self.partition_size > 1:
            hashed += routing_hash(doc_id) % self.partition_size
        return self._shard(hashed)

    def shards_of(self, routings: Iterable[str]) -> frozenset[int]:
        """Where documents can be that have one of these routings."""
        return frozenset(
            self._shard(hashed + offset)
            for hashed in map(routing_hash, routings)
            for offset in range(self.partition_size)
        )

    def _shard(self, hashed: int) -> int:
        """hashed: a sum of hashes, which wraps around at 32 bits, as Java's does."""
        hashed = (hashed + (1 << 31)) % (1 << 32) - (1 << 31)
        return hashed % self.routing_shards // (self.routing_shards // self.shards)
