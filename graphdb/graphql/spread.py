"""`Spread`: along which paths a resource shows what it shows, and so which resources a change may concern."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyoxigraph import BlankNode, NamedNode

from graphdb.graphql.conditions import Condition
from graphdb.graphql.demand import Level
from graphdb.graphql.model import Path
from graphdb.live.neighbourhood import Around

__all__ = ["Spread"]


class _Place:
    """Where a way of paths leads. above and path: None at the beginning."""

    def __init__(self, above: "_Place | None", path: Path | None) -> None:
        self.above, self.path = above, path
        self.below: dict[Path, _Place] = {}

    def at(self, path: Path) -> "_Place":
        if path not in self.below:
            self.below[path] = _Place(self, path)
        return self.below[path]

    def take_condition(self, condition: Condition | None) -> None:
        for path, inner in condition.paths() if condition is not None else ():
            self.at(path).take_condition(inner)

    def take_level(self, level: Level, conditions: Mapping[int, Condition]) -> None:
        self.take_condition(conditions.get(level.branch))
        for path in level.values:
            self.at(path)
        for path, below in level.below.values():
            self.at(path).take_level(below, conditions)


class Spread:
    """All paths of a level, of the levels below it, and of their filters."""

    def __init__(self, level: Level, types: Path, conditions: Mapping[int, Condition]) -> None:
        """conditions: the filters of levels, by their branch. types: the path of rdf:type."""
        root = _Place(None, None)
        root.at(types)
        root.take_level(level, conditions)
        self._starts: dict[str, list[tuple[_Place, Path]]] = {}  # by predicate: where one looks along it
        waiting = [root]
        while waiting:
            place = waiting.pop()
            for path, below in place.below.items():
                self._starts.setdefault(path.iri, []).append((place, path))
                waiting.append(below)

    @property
    def predicates(self) -> frozenset[str]:
        """The IRIs of all predicates on the way."""
        return frozenset(self._starts)

    def concerned(self, around: Around) -> list[NamedNode]:
        """The resources from which a changed triple is in sight, before the change or after it, and perhaps
        others; in the order of their IRIs. Raises TooFar.
        """
        found: dict[str, NamedNode] = {}
        seen: set[tuple[_Place, Any]] = set()
        for triple in (*around.removed, *around.added):
            for place, path in self._starts.get(triple[1].value, ()):
                waiting = [(place, triple[2] if path.inverse else triple[0])]
                while waiting:
                    here = waiting.pop()
                    if here in seen or not isinstance(here[1], NamedNode | BlankNode):
                        continue
                    seen.add(here)
                    if here[0].above is not None:
                        waiting += _back(here[0], here[1], around)
                    elif isinstance(here[1], NamedNode):
                        found[here[1].value] = here[1]
        return [found[iri] for iri in sorted(found)]


def _back(place: _Place, resource: Any, around: Around) -> Iterator[tuple[_Place, Any]]:
    """One step towards the beginning, as it is after the change.

    A way that was there before and is not any more has lost triples. Of these the one nearest to the
    beginning is a changed triple too, and all that stands between them is there.
    """
    assert place.above is not None
    assert place.path is not None
    inverse, predicate = place.path.inverse, place.path.predicate
    subject, object_ = (resource, None) if inverse else (None, resource)
    for triple in around.triples(subject, predicate, object_, after=True):
        yield place.above, triple[2 if inverse else 0]
