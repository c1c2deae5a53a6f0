"""What a shard and the coordinator of a search tell each other. All of it is pickled, pieces on their own:
the coordinator hands them on and does not read them.
"""

from dataclasses import dataclass

from graphdb.search.errors import SearchError

__all__ = ["Answered", "Asking", "Consulting", "Failed", "Gathering", "Step"]


@dataclass(frozen=True, slots=True)
class Gathering:
    """The shard has come to a place where it needs what all shards have there."""

    place: str
    piece: bytes


@dataclass(frozen=True, slots=True)
class Asking:
    """The shard needs what all shards answer. Equal questions are the same bytes, if they can be."""

    question: bytes


@dataclass(frozen=True, slots=True)
class Consulting:
    """The shard needs what whoever leads the search says to what all shards ask him; asked is its part."""

    asked: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """The task is done."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The task has ended with an error of the request."""

    error: SearchError


Step = Gathering | Asking | Consulting | Answered | Failed
