"""`python -m benchmarks NAME [--json] [--rounds N] [--scale X]`: run one benchmark and print its table."""

import argparse
import json
import sys
from collections.abc import Callable

from benchmarks import bulk_load, durable_update, json_result, point_query
from benchmarks.report import Row, print_rows
from benchmarks.service import BenchmarkError

BENCHMARKS: dict[str, Callable[[int, float], list[Row]]] = {
    "point_query": point_query.run,
    "json_result": json_result.run,
    "bulk_load": bulk_load.run,
    "durable_update": durable_update.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code is 0 if every row meets its target, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument(
        "--rounds", type=int, default=5, help="times that floor and ours are measured, in turn"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="part of the full amount of work; for trying out"
    )
    chosen = parser.parse_args(arguments)
    try:
        rows = BENCHMARKS[chosen.name](chosen.rounds, chosen.scale)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    if chosen.json:
        print(json.dumps([row.as_dict() for row in rows], indent=2))
    else:
        print_rows(rows)
    return 0 if all(row.passes for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
