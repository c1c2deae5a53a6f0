"""`Division`: which database has which shards. Those of one machine share a database, its host: what is asked
of each shard is asked once of each host.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Division", "named_shards", "quads_of"]


def named_shards(numbers: Collection[int]) -> str:
    """In words for messages, counted from 1."""
    *first, last = [str(number + 1) for number in sorted(numbers)]
    return f"column shards {', '.join(first)} and {last}" if first else f"column shard {last}"


def quads_of(mine: Collection[int], shards: int) -> str:
    """SQL: whether a quad is of one of these shards. With DuckDB's `hash`, of the number of its subject."""
    if len(mine) == shards:
        return "true"
    return f"hash(s) % {shards} IN ({', '.join(map(str, sorted(mine)))})"


@dataclass(frozen=True)
class Division:
    """hosts: the numbers of the shards, from 0 on, that each host has; each number is there once."""

    hosts: tuple[tuple[int, ...], ...]

    @staticmethod
    def apart(shards: int) -> "Division":
        """Each shard on a host of its own."""
        return Division(tuple((number,) for number in range(shards)))

    @staticmethod
    def among(hosts: int, shards: int) -> "Division":
        """So many shards on as many hosts, or fewer, one after the other."""
        return Division(tuple(tuple(range(first, shards, hosts)) for first in range(min(hosts, shards))))

    @cached_property
    def shards(self) -> int:
        return sum(map(len, self.hosts))

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """(shards,): the place of each shard's host."""
        made = np.zeros(self.shards, np.int64)
        for place, numbers in enumerate(self.hosts):
            made[list(numbers)] = place
        return made

    def host_of(self, hashes: NDArray[Any]) -> NDArray[np.int64]:
        """The places of the hosts of subjects, given what DuckDB's `hash` is of these."""
        found: NDArray[np.int64] = self.owners[(hashes % np.uint64(self.shards)).astype(np.int64)]
        return found
