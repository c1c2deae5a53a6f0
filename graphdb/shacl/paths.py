"""Property paths (SHACL section 2.3.1): the tree, and its words in SPARQL."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import NamedNode

__all__ = [
    "AlternativePath",
    "InversePath",
    "Path",
    "PredicatePath",
    "RepeatedPath",
    "SequencePath",
    "is_nullable",
    "path_text",
    "predicates_of",
]


@dataclass(frozen=True, slots=True)
class PredicatePath:
    """One property, from subject to object."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class InversePath:
    path: "Path"


@dataclass(frozen=True, slots=True)
class SequencePath:
    """Two steps or more."""

    steps: tuple["Path", ...]


@dataclass(frozen=True, slots=True)
class AlternativePath:
    """Two paths or more."""

    paths: tuple["Path", ...]


@dataclass(frozen=True, slots=True)
class RepeatedPath:
    """sign is "*", "+" or "?", as in SPARQL."""

    path: "Path"
    sign: str


Path: TypeAlias = PredicatePath | InversePath | SequencePath | AlternativePath | RepeatedPath


def path_text(path: Path) -> str:
    """The path as SPARQL writes it, in brackets where it may stand within another."""
    match path:
        case PredicatePath():
            return str(path.predicate)
        case InversePath():
            inner = path_text(path.path)
            return f"^({inner})" if inner[0] == "^" else "^" + inner
        case SequencePath():
            return f"({'/'.join(map(path_text, path.steps))})"
        case AlternativePath():
            return f"({'|'.join(map(path_text, path.paths))})"
        case RepeatedPath():
            inner = path_text(path.path)
            return f"({inner}){path.sign}" if inner[0] == "^" or inner[-1] in "*+?" else inner + path.sign


def predicates_of(path: Path) -> Iterator[NamedNode]:
    """Every property that the path names, repeated as they are."""
    match path:
        case PredicatePath():
            yield path.predicate
        case InversePath() | RepeatedPath():
            yield from predicates_of(path.path)
        case SequencePath():
            for step in path.steps:
                yield from predicates_of(step)
        case AlternativePath():
            for branch in path.paths:
                yield from predicates_of(branch)


def is_nullable(path: Path) -> bool:
    """Whether a path leads from every node to itself, in the graph or not."""
    match path:
        case PredicatePath():
            return False
        case InversePath():
            return is_nullable(path.path)
        case SequencePath():
            return all(map(is_nullable, path.steps))
        case AlternativePath():
            return any(map(is_nullable, path.paths))
        case RepeatedPath():
            return path.sign != "+" or is_nullable(path.path)
