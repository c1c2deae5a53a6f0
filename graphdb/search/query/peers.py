"""What a search knows of the other shards of its index, where each shard is searched by itself.

Every shard runs the whole of the same search over its own documents. Where an answer depends on the documents
of all, the shards exchange what they know of theirs and go on with the same: counts, keys of buckets, places
of hits. So there is one implementation, for an index in one process and for one in many.
"""

from typing import Any, Protocol, TypeVar

__all__ = ["Peers", "Question"]

Piece = TypeVar("Piece")
Known_co = TypeVar("Known_co", covariant=True)


class Question(Protocol[Known_co]):
    """Can be pickled. Shards may ask different questions, at different times."""

    def answered(self, searcher: Any) -> Known_co:
        """By the documents of one shard, whose `Searcher` is given. It may ask other questions."""


class Peers(Protocol):
    """The shards that take part in one search, as one of them sees them. Shards are numbered from 0."""

    @property
    def number(self) -> int:
        """Of this shard, among those that take part."""

    def gather(self, place: str, piece: Piece) -> list[Piece]:
        """What each shard gives at this place, by number: all come by the same places, in the same order."""

    def everywhere(self, question: Question[Known_co]) -> list[Known_co]:
        """What each shard answers, by number."""

    def advice(self, asked: Any) -> Any:
        """What whoever leads the search answers to what all shards ask him at this place."""

    def place(self, owners: list[int]) -> None:
        """The shard of each hit of the answer, in order: each shows only its own."""
