"""`SpatialIndex`: where the geometries of a store are, kept up with its changes.

It holds the values of some properties: those that GeoSPARQL writes geometries down by, and others from when
a query has asked for them. A value is noted before readers see it, and read later, on another thread; one
that is removed stays. So the values of a property in any state of the store, from a known one on, are among
those that its column holds and those that still wait.

Nothing here runs by itself. Whoever owns the index calls `begin` and `publish` when no change is being
applied, and `step` on a thread of its own, for as long as `has_work`.
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

if TYPE_CHECKING:
    from graphdb.geo.geometry_column import GeometryColumn

__all__ = ["SpatialIndex", "Values"]

Scan: TypeAlias = Callable[[NamedNode], Iterable[Term]]

_PROPERTIES_MAX: Final = 16
_WAITING_MAX: Final = 50_000  # values to be read; with more, a column is made anew from the store
_AT_ONCE: Final = 32  # values that are read in one step
_VALUES_MAX: Final = 5_000_000  # of one property, about 400 bytes of memory each
_TRIED: Final = 5_000  # values, after which one in ten has to be a geometry
_GONE_MIN: Final = 1_000  # values that are removed before a column is made anew, to be rid of them
_LENGTH_GONE: Final = 2_000  # characters of one that count as one more: long ones are in the way of others


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one property: those of the column, None where there are none, and others."""

    column: "GeometryColumn | None"
    waiting: tuple[Term, ...]


@dataclass(slots=True, eq=False)
class _Making:
    """A column on its way: values of the store that are still to be read."""

    values: Iterator[Term]
    column: "GeometryColumn | None" = None
    is_complete: bool = False


@dataclass(slots=True, eq=False)
class _Property:
    """What is known of one property's values. Whoever changes it holds the index's lock."""

    name: NamedNode
    is_noted: bool = False  # whether its changes are
    may_scan: bool = False  # they have been since before all changes under way: the store may be gone through
    making: _Making | None = None
    column: "GeometryColumn | None" = None
    since: int | None = None  # the log index of the first state whose values it holds; None: of none
    waiting: deque[Term] = field(default_factory=deque)  # values to be read
    gone: int = 0  # values removed since the column was made
    is_lost: bool = False  # more came than could wait
    is_given_up: bool = False  # its values are no geometries, or too many

    @property
    def is_due(self) -> bool:
        """Whether its column is to be made, or made anew."""
        if self.making is not None or self.may_scan or self.is_given_up:
            return False
        count = 0 if self.column is None else self.column.count
        return self.since is None or self.gone > max(_GONE_MIN, count // 2)


class SpatialIndex:
    """See above. What is asked for may be asked for on any thread."""

    def __init__(
        self, scan: Scan, directory: Path | None = None, on_work: Callable[[], None] = lambda: None
    ) -> None:
        """scan gives the values of a property in the present state of the store; `step` calls and uses it.

        directory is for files of texts. on_work is called when there is something to do, on any thread.
        """
        self._scan, self._directory, self._on_work = scan, directory, on_work
        self._lock = Lock()
        self._properties = {iri: _Property(NamedNode(iri)) for iri in SERIALIZATIONS}
        self._noted: dict[NamedNode, _Property] = {}

    def note(self, change: ChangeSet) -> None:
        """Take note of a change that is about to be applied; one that is then not does no harm."""
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

    def noted(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """Changes that are about to be applied together, each noted as it goes by."""
        if not isinstance(changes, tuple):
            return self._passing(changes)
        for change in changes:
            self.note(change)
        return changes

    def values(self, iri: str, at: int | None = None) -> Values | None:
        """Those of a property in the present state, or in that of a log index; None where they are not known.

        That they are asked for has them known from some later state on.
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
        """Whether there is something to begin, to step through or to publish."""
        return any(
            each.is_due or each.may_scan or each.making is not None or each.waiting
            for each in self._properties.values()
        )

    def begin(self) -> None:
        """Begin what is to be made. No change is being applied meanwhile."""
        with self._lock:
            for each in self._properties.values():
                if each.is_due:
                    each.is_noted = each.may_scan = True
                    each.is_lost = False
            self._noted = {each.name: each for each in self._properties.values() if each.is_noted}

    def step(self) -> bool:
        """Read some values, for a millisecond or so; whether there were any."""
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
        """Let what is complete be used. No change is being applied meanwhile; index is the present one."""
        with self._lock:
            for each in self._properties.values():
                if each.making is not None and each.making.is_complete and not each.is_lost:
                    each.column, each.making = each.making.column, None
                    each.since, each.gone = index, 0

    def close(self) -> None:
        """Let go of the store, on the thread of `step`."""
        for each in self._properties.values():
            each.making = None

    def _passing(self, changes: Iterable[ChangeSet]) -> Iterator[ChangeSet]:
        for change in changes:
            self.note(change)
            yield change

    def _keep_up(self, each: _Property) -> bool:
        """Bring one property's columns on, the present one and one that is being made, by what waits."""
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
        with self._lock:  # only now: whoever looks finds them in one place or the other
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
    """Whether a property's values are something else than geometries, or more than there is room for."""
    return column.count > _VALUES_MAX or (column.count > _TRIED and 10 * column.placed < column.count)
