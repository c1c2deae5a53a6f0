"""One line of a benchmark's answer, and the table that a person reads."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

__all__ = ["Row", "interleave", "print_rows"]


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


def interleave(rounds: int, *measures: Callable[[], float]) -> tuple[float, ...]:
    """Take every measure in turn, rounds times, so that a slow minute meets all; the medians."""
    taken: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for values, measure in zip(taken, measures, strict=True):
            values.append(measure())
    return tuple(median(values) for values in taken)


def print_rows(rows: list[Row]) -> None:
    """Print the table."""
    table = Table(show_edge=False)
    for heading in ("work", "unit", "floor", "ours", "ratio", "target", ""):
        table.add_column(heading, justify="left" if heading in ("work", "unit") else "right")
    for row in rows:
        target = f"{row.bound} {row.target:g}" if row.target is not None else "-"
        verdict = "" if row.target is None else "met" if row.passes else "MISSED"
        table.add_row(
            row.work, row.unit, _number(row.floor), _number(row.ours), f"{row.ratio:.2f}", target, verdict
        )
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
