"""What a benchmark answers: lines that pass or not, and the table that a person reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal, Protocol

from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "Line", "Row", "interleave", "print_lines"]


class Line(Protocol):
    """One line of an answer; all lines of one answer have the same cells."""

    @property
    def passes(self) -> bool:
        """Whether it meets its target."""

    def as_dict(self) -> dict[str, Any]:
        """All of it, for machines."""

    def cells(self) -> Mapping[str, str]:
        """What stands under each heading of the table."""

    def notes(self) -> Sequence[str]:
        """What is said below the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """Ours against its floor, both in `unit`, as medians over the rounds. ratio is ours divided by the floor.

    bound says whether the ratio must be at least or at most the target; a row without target only informs.
    """

    work: str
    unit: str
    floor: float
    ours: float
    bound: Literal["at least", "at most"] = "at least"
    target: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def passes(self) -> bool:
        if self.target is None:
            return True
        return self.ratio >= self.target if self.bound == "at least" else self.ratio <= self.target

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "passes": self.passes}

    def cells(self) -> dict[str, str]:
        return {
            "work": self.work,
            "unit": self.unit,
            "floor": _number(self.floor),
            "ours": _number(self.ours),
            "ratio": f"{self.ratio:.2f}",
            "target": f"{self.bound} {self.target:g}" if self.target is not None else "-",
            "": "" if self.target is None else "met" if self.passes else "MISSED",
        }

    def notes(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True, slots=True)
class Figure:
    """Ours against what is asked for, both in `unit`. peer is Fuseki's; None where it has none, or is not
    there.
    """

    work: str
    unit: str
    ours: float
    bound: Literal["at least", "at most"]
    asked: float
    peer: float | None

    @property
    def passes(self) -> bool:
        return self.ours >= self.asked if self.bound == "at least" else self.ours <= self.asked

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "work": self.work,
            "unit": self.unit,
            "ours": _number(self.ours),
            "asked": f"{self.bound} {_number(self.asked)}",
            "Fuseki": "-" if self.peer is None else _number(self.peer),
            **self.further_cells(),
            "": "met" if self.passes else "MISSED",
        }

    def further_cells(self) -> Mapping[str, str]:
        """What else was measured."""
        return {}

    def notes(self) -> Sequence[str]:
        return ()


def interleave(rounds: int, *measures: Callable[[], float]) -> tuple[float, ...]:
    """Take every measure in turn, rounds times, so that a slow minute meets all; the medians."""
    taken: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for values, measure in zip(taken, measures, strict=True):
            values.append(measure())
    return tuple(median(values) for values in taken)


def print_lines(lines: Sequence[Line]) -> None:
    """Print the table, and the notes below it. Words stand to the left, numbers to the right."""
    table = Table(show_edge=False)
    rows = [line.cells() for line in lines]
    for heading in rows[0] if rows else ():
        is_number = all(row[heading][:1].isdigit() or row[heading] in ("", "-") for row in rows)
        table.add_column(heading, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*row.values())
    console = Console()
    console = console if console.is_terminal else Console(width=200)
    console.print(table)
    for line in lines:
        for note in line.notes():
            console.print(note, markup=False, highlight=False, soft_wrap=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
