"""The tables of `_cat`: columns, units and formats."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from graphdb.node import NodeStatus
from graphdb.search.catalog.state import Index
from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.pool_use import PoolUse
from serve.search.administration.index_stats import Placement
from serve.search.backend import SearchBackend
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import TIME_UNITS, Parameters
from serve.search.frame.tasks import Task

__all__ = [
    "BYTE_UNITS",
    "CatView",
    "Column",
    "Listing",
    "Row",
    "Size",
    "Table",
    "TableOptions",
    "Time",
    "make_table",
    "render_help",
    "size_text",
    "time_text",
]

# Sizes and times as Elasticsearch writes them, and the units in which a caller may ask for them.

BYTE_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "pb": 1 << 50}


def size_text(count: int) -> str:
    """In the largest unit that it reaches, with one decimal: 225b, 1.2kb."""
    reached = [name for name in BYTE_UNITS if BYTE_UNITS[name] <= count]
    unit = reached[-1] if reached else "b"
    return _one_decimal(count / BYTE_UNITS[unit]) + unit


def time_text(milliseconds: float) -> str:
    """As `size_text`: 0s, 12ms, 1.5m."""
    nanos = milliseconds * TIME_UNITS["ms"]
    if nanos == 0:
        return "0s"
    reached = [name for name in TIME_UNITS if TIME_UNITS[name] <= nanos]
    unit = reached[-1] if reached else "nanos"
    return _one_decimal(nanos / TIME_UNITS[unit]) + unit


def _one_decimal(value: float) -> str:
    """Cut off, not rounded."""
    return f"{int(value * 10) / 10:.1f}".removesuffix(".0")


# The tables of `_cat`: which columns, in which order, as aligned text, JSON or YAML.
#
# A table knows all its columns; a request chooses (`h`), sorts (`s`), wants headers (`v`) or only the list
# of columns (`help`). A cell is a str, an int, a `Size`, a `Time` or None.


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """Bytes."""

    count: int


@dataclass(frozen=True, slots=True, order=True)
class Time:
    """Milliseconds."""

    milliseconds: float


Value: TypeAlias = str | int | Size | Time | None


@dataclass(frozen=True, slots=True)
class Column:
    """One that a table can have. on: shown where the request chooses none; right: numbers are aligned so."""

    name: str
    aliases: tuple[str, ...]
    description: str
    on: bool = True
    right: bool = False

    def is_called(self, name: str) -> bool:
        return name == self.name or name in self.aliases

    def fits(self, pattern: str) -> bool:
        return any(wildcard_match(pattern, name) for name in (self.name, *self.aliases))


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The parameters for columns and rows. bytes, time: a unit; None chooses one for each value."""

    chosen: str | None = None  # h
    sort: str | None = None
    bytes: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        for parameter, value, units in (("bytes", self.bytes, BYTE_UNITS), ("time", self.time, TIME_UNITS)):
            if value is not None and value not in units:
                raise illegal_argument(f"Failed to parse [{parameter}] unit [{value}]")


Row: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Table:
    """The table as text: the columns under their requested names, and their cells."""

    columns: tuple[tuple[str, Column], ...]
    rows: tuple[tuple[str | None, ...], ...]

    def records(self) -> list[dict[str, str | None]]:
        """For JSON."""
        names = [name for name, _ in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def yaml(self) -> str:
        """A JSON string is a YAML string, too."""
        lines = ["---\n" if self.rows else "--- []\n"]
        for record in self.records():
            for number, (name, value) in enumerate(record.items()):
                text = json.dumps(value, ensure_ascii=False)
                lines.append(f"{'  ' if number else '- '}{name}: {text}\n")
        return "".join(lines)

    def text(self, verbose: bool) -> str:
        """Aligned; verbose: with a line of headers."""
        lines = [[cell or "" for cell in row] for row in self.rows]
        if verbose:
            lines.insert(0, [name for name, _ in self.columns])
        widths = [max((len(line[place]) for line in lines), default=0) for place in range(len(self.columns))]
        return "".join(self._line(line, widths) for line in lines)

    def _line(self, cells: list[str], widths: list[int]) -> str:
        padded = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, (_, column) in zip(cells, widths, self.columns, strict=True)
        ]
        if padded and not self.columns[-1][1].right:
            padded[-1] = cells[-1]  # the last column is not padded
        return " ".join(padded) + "\n"


def make_table(columns: Sequence[Column], rows: Iterable[Row], options: TableOptions) -> Table:
    """rows: values by column name; a missing value is None."""
    shown = _shown(columns, options.chosen)
    ordered = _sorted(columns, list(rows), options.sort)
    cells = tuple(tuple(_text(row.get(column.name), options) for _, column in shown) for row in ordered)
    return Table(tuple(shown), cells)


def render_help(columns: Sequence[Column]) -> str:
    """The columns: name, aliases, description."""
    table = [(column.name, ",".join(column.aliases), column.description) for column in columns]
    widths = [max(len(row[place]) for row in table) for place in range(3)]
    lines = (" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "".join(f"{line}\n" for line in lines)


def _shown(columns: Sequence[Column], chosen: str | None) -> list[tuple[str, Column]]:
    """Each under its requested name; unknown ones are left out, as in Elasticsearch."""
    if chosen is None:
        return [(column.name, column) for column in columns if column.on]
    shown: dict[str, Column] = {}
    for asked in filter(None, (part.strip() for part in chosen.split(","))):
        if "*" in asked:
            shown |= {column.name: column for column in columns if column.fits(asked)}
        else:
            found = next((column for column in columns if column.is_called(asked)), None)
            shown |= {} if found is None else {asked: found}
    return list(shown.items())


def _sorted(columns: Sequence[Column], rows: list[Row], sort: str | None) -> list[Row]:
    """By the last key first, since sorting is stable."""
    for key in reversed([part.strip() for part in (sort or "").split(",") if part.strip()]):
        name, _, direction = key.partition(":")
        column = next((one for one in columns if one.is_called(name)), None)
        if column is None:
            raise illegal_argument(f"Unable to sort by unknown sort key `{name}`")
        rows = _sorted_by(rows, column.name, direction == "desc")
    return rows


def _sorted_by(rows: list[Row], name: str, descending: bool) -> list[Row]:
    return sorted(rows, key=lambda row: _order(row.get(name)), reverse=descending)


def _order(value: Value) -> tuple[int, Any]:
    """None before all; the values of a column are of one type."""
    return (0, 0) if value is None else (1, value)


def _text(value: Value, options: TableOptions) -> str | None:
    if isinstance(value, Size):
        return (
            size_text(value.count) if options.bytes is None else str(value.count // BYTE_UNITS[options.bytes])
        )
    if isinstance(value, Time):
        if options.time is None:
            return time_text(value.milliseconds)
        return str(int(value.milliseconds * TIME_UNITS["ms"]) // TIME_UNITS[options.time])
    return None if value is None else str(value)


# `CatView`: what the listings of `_cat` are made of, and `Listing`: one of them.


@dataclass(frozen=True)
class CatView:
    """One request for a listing. names: the rest of the path after the listing's name."""

    node: SearchBackend
    identity: Identity
    indexes: Sequence[Index]  # of the request; all without a name
    names: str | None
    parameters: Parameters
    tasks: Sequence[Task] = ()  # of this node, for the listing of them
    pools: Mapping[str, PoolUse] = field(default_factory=dict)  # of this node, by name
    snapshots: Sequence[Mapping[str, Any]] = ()  # as `_snapshot` shows them, for the listing of them

    @property
    def process_id(self) -> int:
        return os.getpid()

    @cached_property
    def status(self) -> NodeStatus:
        return self.node.status()

    @cached_property
    def placement(self) -> Placement:
        """Where copies of shards may be."""
        return Placement.of(self.node)


@dataclass(frozen=True, slots=True)
class Listing:
    """name: as in the path. by: the path parameter after it. parameters: of this listing."""

    name: str
    columns: Sequence[Column]
    rows: Callable[[CatView], Iterable[Row]]
    by: str | None = None
    parameters: str = ""
