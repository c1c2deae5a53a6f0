"""`Narrowing`: candidates of a search that whoever leads it lets pass or scores, by what only he knows.

Each shard says what it has to know of its own candidates (`Candidates`, then `Named`), the leader answers for
all of them at once, and each goes on with those of its own that are in the answer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphdb.search.errors import illegal_argument
from graphdb.search.extension.boosting import boosted, spoken_of
from graphdb.search.extension.extension_request import BoostOption
from graphdb.search.extension.request_rewriting import ids_of
from graphdb.search.leaf_reader import Bools
from graphdb.search.multi.prepared import Prepared
from graphdb.search.query.peers import Peers
from graphdb.search.results.matching import Found

__all__ = ["FOUND_MAX", "Advised", "Asked", "Narrowing", "all_texts", "check_found", "narrowed"]

FOUND_MAX = 1_000_000  # candidates of a filter


@dataclass(frozen=True, slots=True)
class Asked:
    """What a shard asks of its candidates: which ids the filter lets pass, or which IRIs are important."""

    texts: tuple[str, ...]
    is_of_filter: bool


Advised: TypeAlias = frozenset[str]
"""Those texts of all shards for which the answer is yes."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What is done with candidates: the filter first."""

    is_filtered: bool
    boost: BoostOption | None

    def __bool__(self) -> bool:
        return self.is_filtered or self.boost is not None


def narrowed(narrowing: Narrowing, prepared: Prepared, peers: Peers) -> Found:
    """The candidates of one shard, as they count. Errors: illegal_argument_exception."""
    found = prepared.find()
    if narrowing.is_filtered:
        check_found(len(found.docs))
        ids = ids_of(prepared.scope, found.docs)
        accepted: Advised = peers.advice(Asked(tuple(dict.fromkeys(ids)), is_of_filter=True))
        found = found.kept(np.fromiter((one in accepted for one in ids), np.bool_, len(ids)))
    if narrowing.boost is not None:
        spoken = spoken_of(narrowing.boost, prepared.scope, found)
        important: Advised = peers.advice(Asked(tuple(spoken), is_of_filter=False))

        def enough(iris: Iterable[str]) -> Bools:
            return np.array([iri in important for iri in iris], np.bool_)

        found = boosted(narrowing.boost, enough, prepared.scope, found)
    return found


def check_found(count: int) -> None:
    """Errors: illegal_argument_exception for more candidates than a filter may have."""
    if count > FOUND_MAX:
        raise illegal_argument(
            f"[sparql_filter] the query matches [{count}] documents, at most [{FOUND_MAX}] can be filtered"
        )


def all_texts(asked: Sequence[Asked]) -> list[str]:
    """What all shards ask of, each text once. Errors: illegal_argument_exception."""
    found = list(dict.fromkeys(text for one in asked for text in one.texts))
    if asked[0].is_of_filter:
        check_found(len(found))
    return found
