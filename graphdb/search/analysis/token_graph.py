"""`TokenGraph`: the paths that the tokens of a text make where some span several positions.

Synonyms of several words, and words that are both whole and in parts, stand beside each other: a token leads
from one node to a later one, and each way from the first node to the last is one reading of the text.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from graphdb.search.analysis.token import Token

__all__ = ["PathStep", "Section", "TokenGraph", "flattened"]


@dataclass(frozen=True, slots=True)
class PathStep:
    """A term of a path. gap: positions before it whose tokens were dropped."""

    term: str
    gap: int


@dataclass(frozen=True, slots=True)
class _Edge:
    step: PathStep
    start: int
    end: int


class TokenGraph:
    """Immutable. Its nodes are positions; a token after dropped ones begins wherever these did.

    Lucene's GraphTokenStreamFiniteStrings loses the paths that end where a token was dropped.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        """tokens by position, as an analyzer gives them."""
        edges = []
        open_ends, starts, before = [0], [0], -1  # ends that no token has gone on from, a heap
        for token in tokens:
            if token.position > before:
                free = set()
                while open_ends and open_ends[0] <= token.position:
                    free.add(heappop(open_ends))
                starts, before = sorted(free) or [max(starts)], token.position
            end = token.position + token.position_length
            edges += [_Edge(PathStep(token.term, token.position - start), start, end) for start in starts]
            heappush(open_ends, end)
        self._end = max(open_ends)
        self._edges = _connected(sorted(edges, key=lambda edge: edge.start), self._end)

    def sections(self) -> "list[Section]":
        """Between the nodes that all paths lead through, from the first to the last."""
        bounds, reach = [], 0
        for edge in self._edges:
            if edge.start >= reach:
                bounds.append(edge.start)
            reach = max(reach, edge.end)
        ends = [*bounds[1:], self._end]
        starts = [edge.start for edge in self._edges]
        parts = (
            self._edges[bisect_left(starts, low) : bisect_left(starts, high)]
            for low, high in zip(bounds, ends, strict=True)
        )
        return [Section(tuple(part), low, high) for part, low, high in zip(parts, bounds, ends, strict=True)]

    def whole(self) -> "Section":
        """All of it as one section."""
        return Section(tuple(self._edges), 0, self._end)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a graph in which no node but its first and its last is on all paths."""

    edges: tuple[_Edge, ...]
    start: int
    end: int

    @property
    def terms(self) -> tuple[str, ...] | None:
        """The terms where it is no more than one word or several words in one place; None otherwise."""
        first = [edge for edge in self.edges if edge.start == self.start]
        if len({edge.end for edge in first}) > 1:
            return None
        return tuple(dict.fromkeys(edge.step.term for edge in first))

    @property
    def gap(self) -> int:
        """Positions before its first node's words whose tokens were dropped."""
        return self.edges[0].step.gap

    def paths(self) -> Iterator[tuple[PathStep, ...]]:
        """Every way through, in the order of the tokens."""
        following: dict[int, list[_Edge]] = {}
        for edge in self.edges:
            following.setdefault(edge.start, []).append(edge)
        steps: list[PathStep] = []
        waiting = [iter(following.get(self.start, ()))]  # what is left to try behind each step
        while waiting:
            taken = next(waiting[-1], None)
            if taken is None:
                waiting.pop()
                del steps[-1:]
                continue
            steps.append(taken.step)
            if taken.end == self.end:
                yield tuple(steps)
                steps.pop()
            else:
                waiting.append(iter(following[taken.end]))


def _connected(edges: Sequence[_Edge], end: int) -> list[_Edge]:
    """Those that lead to the end, in their order. They are sorted by start, and each can be reached."""
    leading = {end}
    for edge in reversed(edges):
        if edge.end in leading:
            leading.add(edge.start)
    return [edge for edge in edges if edge.end in leading]


def flattened(tokens: Sequence[Token]) -> list[Token]:
    """The graph with its side paths at the same positions, as an index can hold it.

    A node moves behind all that lead to it: to the longest way from the first. Offsets become those of the
    nodes: the last start of what begins there, the first end of what ends there. Of positions side by side
    whose tokens were dropped one is left. Source: what Lucene's FlattenGraphFilter makes of texts.
    """
    places = {0: 0}
    open_ends, known = list[int](), 0  # a heap; the last node before the next token's
    for token in tokens:
        node = token.position
        while open_ends and open_ends[0] < node:
            known = max(known, heappop(open_ends))
        if node not in places:  # what led to it was dropped
            places[node] = places[known] + 1
        known = max(known, node)
        end = node + token.position_length
        places[end] = max(places.get(end, 0), places[node] + 1)
        heappush(open_ends, end)
    moved, starts, ends = [], dict[int, int](), dict[int, int]()
    for token in tokens:
        start, end = places[token.position], places[token.position + token.position_length]
        starts[start] = max(starts.get(start, 0), token.start_offset)
        ends[end] = min(ends.get(end, token.end_offset), token.end_offset)
        moved.append(replace(token, position=start, position_length=end - start))
    moved.sort(key=lambda token: token.position)
    latest = 0
    for token in moved:
        token.start_offset = latest = max(latest, starts[token.position])
        token.end_offset = max(latest, ends[token.position + token.position_length])
    return moved
