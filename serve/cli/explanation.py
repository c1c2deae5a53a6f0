"""An explanation of a query (`docs/http.md`) as a person reads it."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from serve.cli.console import out, print_table

__all__ = ["print_explanation"]


def print_explanation(found: Mapping[str, Any]) -> None:
    """How it went and why so; what was scanned; which limits the query comes near to."""
    _print_evaluation(found["evaluation"])
    classification = found["classification"]
    _print(f"usually evaluated {classification['evaluated']}:")
    for reason in classification["reasons"]:
        _print(f"  {reason}")
    _print(f"the answer {'can' if classification['cacheable'] else 'cannot'} be kept")
    query = found["query"]
    if query["engine_text"] != query["text"]:
        _print(f"\nas the engine gets it:\n{query['engine_text']}")
    if found["scans"]:
        out.print()
        print_table(_scans(found["scans"]))
    for lookup in found["lookups"]:
        _print(_lookup(lookup))
    out.print()
    print_table(_complexity(found["complexity"]))


def _print(line: str) -> None:
    out.print(line, markup=False)


def _print_evaluation(evaluation: Mapping[str, Any]) -> None:
    rows = evaluation["rows"]
    counted = "" if rows is None else f", {rows:,} {'row' if rows == 1 else 'rows'}"
    seconds = f"{evaluation['seconds']:.3f} s"
    index = f"{'' if evaluation['snapshot_exact'] else 'or after '}index {evaluation['snapshot_index']}"
    _print(f"{evaluation['outcome']}{counted} in {seconds} by {evaluation['where']}, at {index}")
    if evaluation["error"] is not None:
        _print(f"  {evaluation['error']}")


def _scans(scans: list[Mapping[str, Any]]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("pattern", overflow="fold")
    table.add_column("quads", justify="right")
    for scan in scans:
        if scan["quads"] is None:
            count = "not counted"
        else:
            count = f"{scan['quads']:,}{'' if scan['complete'] else ' or more'}"
        table.add_row(Text(scan["pattern"]), count)
    return table


def _lookup(lookup: Mapping[str, Any]) -> str:
    what = f"spatial index, ?{lookup['variable']} {lookup['sought']}"
    if lookup["values"] is None:
        return f"{what}: not used, for {lookup['reason']}"
    return f"{what}: {lookup['values']:,} values"


def _complexity(complexity: Mapping[str, Mapping[str, Any]]) -> Table:
    """What the query has any of."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("complexity")
    table.add_column("of this query", justify="right")
    table.add_column("at most", justify="right")
    table.add_column("set by")
    for name, figure in complexity.items():
        if figure["value"]:
            table.add_row(
                name.replace("_", " "), f"{figure['value']:,}", f"{figure['limit']:,}", figure["setting"]
            )
    return table
