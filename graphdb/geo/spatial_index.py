"""`SpatialIndex`: the positions of a store's geometries, kept up to date.

It holds the values of some properties: those of GeoSPARQL for literals of geometries, and others from the
first query for them. A value is noted before it becomes visible, and read later, on another thread. A removed
value stays. So for any state of the store since a known one, the values of a property are among those in its
column and those that still wait.

Nothing here runs by itself. The owner of the index calls `begin` and `publish` while no change is being
applied. It calls `step` on a thread of its own, as long as `has_work`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from pyoxigraph import Literal, NamedNode

from graphdb.geometry.functions import Term
from graphdb.geometry.geosparql_names import SERIALIZATIONS
from graphdb.model import ChangeSet
from graphdb.rdf.quad_lines import AddedLines, ClearedLines

if TYPE_CHECKING:
    from graphdb.geo.geometry_column import GeometryColumn

__all__ = ["SpatialIndex", "Values"]

Scan: TypeAlias = Callable[[NamedNode], Iterable[Term]]

_PROPERTIES_MAX: Final = 16
_WAITING_MAX: Final = 50_000  # values to be read; with more, the column is rebuilt from the store
_NOTED_AT_ONCE: Final = 1_000  # quads of a large change
_AT_ONCE: Final = 32  # values that are read in one step
_VALUES_MAX: Final = 5_000_000  # of one property, about 400 bytes of memory each
_TRIED: Final = 5_000  # values; after these, one in ten must be a geometry
_GONE_MIN: Final = 1_000  # removed values before a column is rebuilt without them
_LENGTH_GONE: Final = 2_000  # characters of a removed value that count as one more: long values cost more


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one property: those in the column (None if it has none), and those that wait."""

    column: "GeometryColumn | None"
    waiting: tuple[Term, ...]


@dataclass(slots=True, eq=False)
class _Making:
    """A column that is being built: the values of the store that are still to be read."""

    values: Iterator[Term]
    column: "GeometryColumn | None" = None
    is_complete: bool = False


@dataclass(slots=True, eq=False)
class _Property:
    """The state of one property. It is changed only under the index's lock."""

    name: NamedNode
    is_noted: bool = False  # whether its changes are noted
    may_scan: bool = False  # noted since before all changes under way, so the store may be scanned
    making: _Making | None = None
    column: "GeometryColumn | None" = None
    since: int | None = None  # the log index of the first state whose values it holds; None: of no state
    waiting: deque[Term] = field(default_factory=deque)  # values to be read
    gone: int = 0  # values removed since the column was made
    is_lost: bool = False  # more values came than may wait
    is_given_up: bool = False  # its values are not geometries, or too many

    @property
    def is_due(self) -> bool:
        """Whether its column is to be built or rebuilt."""
        if self.making is not None or self.may_scan or self.is_given_up:
            return False
        count = 0 if self.column is None else self.column.count
        return self.since is None or self.gone > max(_GONE_MIN, count // 2)


class SpatialIndex:
    """See above. Lookups may run on any thread."""

    def __init__(
        self, scan: Scan, directory: Path | None = None, on_work: Callable[[], None] = lambda: None
    ) -> None:
        """scan returns the values of a property in the present state of the store; only `step` calls it.

        directory is for files of texts. on_work is called when there is something to do, on any thread.
        """
        self._scan, self._directory, self._on_work = scan, directory, on_work
        self._lock = Lock()
        self._properties = {iri: _Property(NamedNode(iri)) for iri in SERIALIZATIONS}
        self._noted: dict[NamedNode, _Property] = {}

    def note(self, change: ChangeSet) -> None:
        """Note a change that is about to be applied. If it is not applied after all, this does no harm."""
        noted, has_more = self._noted, False
        if not noted:
            return
        for quad in change.added:
            found = noted.get(quad.predicate)
            if found is not None:
                self._put(found, quad.object)
                has_more = True
        for quad in change.removed:
            found = noted.get(quad.predicate)
            if found is not None:
                found.gone += 1 + _length(quad.object) // _LENGTH_GONE
        if has_more:
            self._on_work()

    def note_lines(self, lines: AddedLines | ClearedLines) -> None:
        """The same for a change of many quads."""
        quads = lines.with_predicates(self._noted)
        while some := tuple(islice(quads, _NOTED_AT_ONCE)):
            self.note(ChangeSet(added=some) if isinstance(lines, AddedLines) else ChangeSet(removed=some))

    def noted(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """Pass on changes that are about to be applied together, and note each."""
        if not isinstance(changes, tuple):
            return self._passing(changes)
        for change in changes:
            self.note(change)
        return changes

    def values(self, iri: str, at: int | None = None) -> Values | None:
        """The values of a property in the present state, or in that of a log index; None if they are unknown.

        Asking for them makes them known from some later state on.
        """
        found = self._properties.get(iri)
        if found is None:
            self._add(iri)
            return None
        with self._lock:
            if found.since is None or (at is not None and at < found.since):
                return None
            return Values(found.column, tuple(found.waiting))

    @property
    def has_work(self) -> bool:
        """Whether there is something to begin, to read or to publish."""
        return any(
            each.is_due or each.may_scan or each.making is not None or each.waiting
            for each in self._properties.values()
        )

    def begin(self) -> None:
        """Begin to build what is due. Call it while no change is being applied."""
        with self._lock:
            for each in self._properties.values():
                if each.is_due:
                    each.is_noted = each.may_scan = True
                    each.is_lost = False
            self._noted = {each.name: each for each in self._properties.values() if each.is_noted}

    def step(self) -> bool:
        """Read some values, for about a millisecond. Returns whether there were any."""
        properties = tuple(self._properties.values())
        has_read = any([self._keep_up(each) for each in properties])
        for each in properties:
            making = each.making
            if making is not None and not making.is_complete:
                terms = list(islice(making.values, _AT_ONCE))
                making.column = self._added(making.column, terms)
                if not terms:
                    making.values, making.is_complete = iter(()), True
                elif making.column is not None and _is_hopeless(making.column):
                    self._give_up(each)
                return True
        return has_read

    def publish(self, index: int) -> None:
        """Publish complete columns. No change may be applied meanwhile; index is the present log index."""
        with self._lock:
            for each in self._properties.values():
                if each.making is not None and each.making.is_complete and not each.is_lost:
                    each.column, each.making = each.making.column, None
                    each.since, each.gone = index, 0

    def close(self) -> None:
        """Release the store. Call it on the thread of `step`."""
        for each in self._properties.values():
            each.making = None

    def _passing(self, changes: Iterable[ChangeSet]) -> Iterator[ChangeSet]:
        for change in changes:
            self.note(change)
            yield change

    def _keep_up(self, each: _Property) -> bool:
        """Add waiting values to a property's columns: the present one, and one that is being built."""
        if each.is_lost:
            each.making = None
            return False
        with self._lock:
            if each.may_scan:
                each.making, each.may_scan = _Making(iter(self._scan(each.name))), False
            waiting, making = each.waiting, each.making
            terms = list(islice(waiting, _AT_ONCE))
        if not terms:
            return False
        if each.since is not None:
            each.column = self._added(each.column, terms)
        if making is not None:
            making.column = self._added(making.column, terms)
        with self._lock:  # only now: a lookup finds them in one place or the other
            for _ in terms:
                waiting.popleft()
        return True

    def _added(self, column: "GeometryColumn | None", terms: list[Term]) -> "GeometryColumn | None":
        if column is None and terms:
            # at the top, every process with a store would load the libraries for geometries
            from graphdb.geo.geometry_column import GeometryColumn

            column = GeometryColumn(self._directory)
        if column is not None:
            column.add(terms)
        return column

    def _give_up(self, each: _Property) -> None:
        with self._lock:
            each.making, each.column, each.since, each.waiting = None, None, None, deque()
            each.is_given_up, each.is_noted = True, False
            self._noted = {other.name: other for other in self._noted.values() if other is not each}

    def _put(self, found: _Property, term: Term) -> None:
        with self._lock:
            if found.is_lost or found.is_given_up:
                return
            found.waiting.append(term)
            if len(found.waiting) > _WAITING_MAX:
                found.waiting, found.column, found.since = deque(), None, None
                found.is_lost, found.may_scan = True, False

    def _add(self, iri: str) -> None:
        with self._lock:
            if len(self._properties) < _PROPERTIES_MAX:
                self._properties.setdefault(iri, _Property(NamedNode(iri)))
        self._on_work()


def _length(term: Term) -> int:
    return len(term.value) if isinstance(term, Literal) else 0


def _is_hopeless(column: "GeometryColumn") -> bool:
    """Whether a property's values are not geometries, or too many."""
    return column.count > _VALUES_MAX or (column.count > _TRIED and 10 * column.placed < column.count)
