"""Stars: patterns around one subject, which each shard matches by itself."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import count
from typing import Any

from graphdb.columns.triples import column_name
from graphdb.sparql.algebra import (
    EMPTY,
    SELECT_NODES,
    Algebra,
    Bgp,
    Exists,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    Path,
    Service,
    Union,
    Values,
)
from graphdb.sparql.patterns import (
    AlternativePath,
    InversePath,
    NegatedPropertySet,
    SequencePath,
    TriplePattern,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm
from graphdb.sparql.tree_walk import all_below, nodes_below, rewritten

__all__ = [
    "certain_in",
    "constant_subject",
    "is_plain",
    "key_of",
    "mentions",
    "names_in",
    "one_key",
    "stars_of",
    "unfolded",
]

_APART = (Exists, Graph, Service, Values, *SELECT_NODES)


def mentions(*roots: Any) -> Iterator[str]:
    """The name of each variable or blank node, as the columns of a block have it, wherever it stands."""
    for node in all_below(*roots):
        if (name := column_name(node)) is not None:
            yield name


def names_in(*roots: Any) -> set[str]:
    """As `mentions`, each once."""
    return set(mentions(*roots))


def unfolded(root: Algebra) -> Algebra:
    """The same pattern with triple patterns in place of paths that are sequences and inverses."""
    numbers = count()

    def change(node: Any) -> Any:
        if not isinstance(node, Path):
            return node
        steps = list(_steps(node.subject, node.predicate, node.object, numbers))
        triples = tuple(each for each in steps if isinstance(each, TriplePattern))
        paths = [each for each in steps if isinstance(each, Path)]
        if not all(map(_is_local, paths)):
            return node
        beside: list[Algebra] = [Bgp(triples)] if triples else []
        return reduce(Join, [*beside, *paths])

    result: Algebra = rewritten(root, change)
    return result


def stars_of(patterns: Iterable[Bgp | Path]) -> list[Algebra] | None:
    """Triple patterns and paths that are joined, by their subjects; None where a path has no subject."""
    triples: dict[Any, list[TriplePattern]] = {}
    paths: dict[Any, list[Path]] = {}
    for pattern in patterns:
        if isinstance(pattern, Bgp):
            for triple in pattern.triples:
                triples.setdefault(triple.subject, []).append(triple)
        elif _is_local(pattern):
            paths.setdefault(pattern.subject, []).append(pattern)
        else:
            return None
    stars: list[Algebra] = []
    for subject in dict.fromkeys((*triples, *paths)):
        beside: list[Algebra] = [Bgp(tuple(triples[subject]))] if subject in triples else []
        stars.append(reduce(Join, [*beside, *paths.get(subject, ())]))
    return stars


def key_of(star: Algebra) -> str | None:
    """The variable that the subject of a star is, or its blank node; None where it is a constant."""
    return next((column_name(subject) for subject in _subjects(star)), None)


def constant_subject(star: Algebra) -> Iri | None:
    """The subject of a star, where it is an IRI."""
    subject = next(_subjects(star), None)
    return subject if isinstance(subject, Iri) else None


def one_key(pattern: Algebra) -> tuple[bool, str | None]:
    """Whether all of a pattern is around one subject, so that each shard matches it by itself, and which."""
    below = list(nodes_below(pattern))
    if any(isinstance(node, _APART) or node == EMPTY for node in below):
        return False, None
    if not all(_is_local(node) for node in below if isinstance(node, Path)):
        return False, None
    subjects = set(_subjects(pattern))
    return len(subjects) == 1, column_name(next(iter(subjects), None))


def is_plain(pattern: Algebra) -> bool:
    """Whether a pattern only joins triple patterns."""
    return all(isinstance(node, Bgp | Join) for node in nodes_below(pattern))


def certain_in(node: Any) -> set[str]:
    """Variables that every solution of a pattern binds, at least some of them."""
    match node:
        case Bgp() | Path():
            return names_in(node)
        case Join(left=left, right=right):
            return certain_in(left) | certain_in(right)
        case LeftJoin(left=pattern) | Minus(left=pattern) | Filter(pattern=pattern) | Extend(pattern=pattern):
            return certain_in(pattern)
        case Union(branches=branches):
            return set.intersection(*map(certain_in, branches))
        case Values(variables=variables, rows=rows):
            places = [place for place in range(len(variables)) if all(row[place] is not None for row in rows)]
            return {variables[place].name for place in places}
        case Graph(pattern=pattern):
            return certain_in(pattern)
    return set()


def _subjects(pattern: Algebra) -> Iterator[Any]:
    for node in nodes_below(pattern):
        if isinstance(node, Bgp):
            yield from (triple.subject for triple in node.triples)
        elif isinstance(node, Path):
            yield node.subject


def _is_local(path: Path) -> bool:
    """Whether all quads that a path may go along have its subject."""
    match path.predicate:
        case AlternativePath(choices=members) | NegatedPropertySet(members=members):
            return all(isinstance(member, Iri) for member in members)
    return isinstance(path.predicate, Iri)


def _steps(
    subject: PatternTerm, path: Any, object_: PatternTerm, numbers: "Iterator[int]"
) -> Iterator[TriplePattern | Path]:
    match path:
        case Iri():
            yield TriplePattern(subject, path, object_)
        case InversePath(path=inner):
            yield from _steps(object_, inner, subject, numbers)
        case SequencePath(steps=steps):
            inner_ends: Sequence[PatternTerm] = [BlankNodeLabel(f"step {next(numbers)}") for _ in steps[1:]]
            ends = [subject, *inner_ends, object_]
            for start, step, end in zip(ends, steps, ends[1:], strict=False):
                yield from _steps(start, step, end, numbers)
        case AlternativePath(choices=choices):
            backward = tuple(each.path for each in choices if isinstance(each, InversePath))
            if len(backward) == len(choices):
                subject, path, object_ = object_, AlternativePath(backward), subject
            yield Path(subject, path, object_)
        case _:
            yield Path(subject, path, object_)
