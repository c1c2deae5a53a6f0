"""What an operation wants of the graph: levels of resources, and on each the values that are shown.

A `Level` is one set of resources, those of a root field or those that a field leads to. What stands in the
answer (`selection.py`) points at levels; aliases that ask the same share one. Each set of rows of the SPARQL
query has a number, its branch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from graphdb.graphql.cursors import Cursor, OrderKey
from graphdb.graphql.model import ObjectType, Path
from graphdb.shacl.shacl_names import RDF

__all__ = ["TYPES", "Demand", "Level", "Page", "RootLevel"]

TYPES = Path(RDF + "type")


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a collection; limit is of the resources shown, and one more is asked for."""

    limit: int
    forward: bool
    after: Cursor | None = None
    before: Cursor | None = None


@dataclass(slots=True)
class Level:
    """branch: its rows are (resource before, resource here). type None: any type of the model.

    values: branches whose rows are (resource here, value), by path.
    """

    branch: int
    type: ObjectType | None
    filter: Mapping[str, Any] | None = None
    orders: tuple[OrderKey, ...] = ()
    values: dict[Path, int] = field(default_factory=dict)
    below: dict[Any, tuple[Path, "Level"]] = field(default_factory=dict)


@dataclass(slots=True)
class RootLevel(Level):
    """The resources of a root field: one that is given, or a page of a collection.

    branch: its rows are (resource here, class). counted, before, after: branches of their own, where wanted:
    how many there are, and whether some stand before or behind the page.
    """

    iri: str | None = None
    page: Page | None = None
    graph: str | None = None
    counted: int | None = None
    before: int | None = None
    after: int | None = None


class Demand:
    """Everything that one query asks for."""

    def __init__(self) -> None:
        self.roots: dict[Any, RootLevel] = {}
        self._numbers = count()
        self.branches = 0

    def branch(self) -> int:
        """A number not given before."""
        number = next(self._numbers)
        self.branches = number + 1
        return number

    def values(self, level: Level, path: Path) -> int:
        """The branch of a path's values. The classes of a root's resources are its own rows."""
        if path == TYPES and isinstance(level, RootLevel):
            return level.branch
        if path not in level.values:
            level.values[path] = self.branch()
        return level.values[path]
