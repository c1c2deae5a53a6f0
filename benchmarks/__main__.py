"""`python -m benchmarks NAME [--json] [OPTIONS]`: run one and print its table; `NAME --help` says more."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from benchmarks import (
    acl,
    analytical,
    bulk_index,
    bulk_load,
    columns,
    durable_update,
    elasticsearch,
    exchange,
    fuzz,
    geo,
    graphql,
    history,
    hostile,
    hybrid,
    json_result,
    knn,
    live,
    point_query,
    quantized_vectors,
    raft_commit,
    reads,
    search_bm25,
    shacl,
    shards,
    sparqloscope,
    text_in_sparql,
    weight,
)
from benchmarks.report import Line, print_lines
from benchmarks.service import BenchmarkError


@dataclass(frozen=True, slots=True)
class Option:
    """`--name VALUE`, handed to the benchmark as the argument of that name."""

    name: str
    type: Callable[[str], Any]
    default: Any
    help: str
    choices: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A function of its options that gives lines, and what it is about."""

    run: Callable[..., Sequence[Line]]
    options: tuple[Option, ...]


ROUNDS = Option("rounds", int, 5, "times that floor and ours are measured, in turn")
SCALE = Option("scale", float, 1.0, "part of the full amount of work; for trying out")
RATIO = (ROUNDS, SCALE)
PEER = Option("peer", str, "yes", "whether to measure Fuseki beside, where Java is", ("no", "yes"))
BENCHMARKS = {
    "point_query": Benchmark(point_query.run, RATIO),
    "json_result": Benchmark(json_result.run, RATIO),
    "raft_commit": Benchmark(raft_commit.run, RATIO),
    "search_bm25": Benchmark(search_bm25.run, RATIO),
    "bulk_index": Benchmark(bulk_index.run, RATIO),
    "knn": Benchmark(knn.run, RATIO),
    "quantized_vectors": Benchmark(quantized_vectors.run, RATIO),
    "bulk_load": Benchmark(bulk_load.run, (*RATIO, PEER)),
    "durable_update": Benchmark(durable_update.run, RATIO),
    "columns": Benchmark(columns.run, RATIO),
    "history": Benchmark(
        history.run,
        (
            *RATIO,
            Option(
                "part",
                str,
                "all",
                "only the analytical queries, the look-ups or the updates",
                ("all", "queries", "look-ups", "updates"),
            ),
        ),
    ),
    "analytical": Benchmark(
        analytical.run,
        (ROUNDS, Option("only", str, "", "only the queries whose name has this in it")),
    ),
    "sparqloscope": Benchmark(
        sparqloscope.run,
        (
            Option("rounds", int, 3, "times that each query is asked, each time with another text"),
            Option("copies", int, 1, "of the data: 1.5 million triples each"),
            SCALE,
            Option("only", str, "", "only the queries whose name has this in it"),
            Option(
                "peer",
                str,
                "yes",
                "whether to ask other stores beside: those that are installed, none, or Virtuoso alone",
                ("no", "yes", "virtuoso"),
            ),
        ),
    ),
    "shards": Benchmark(
        shards.run,
        (
            Option("rounds", int, 3, "times that each query is asked of the view and of its shards, in turn"),
            Option("only", str, "", "only the queries whose name has this in it"),
            Option("shards", int, 4, "that the view is divided into"),
            Option("copies", int, 0, "of each of the four data sets; 0: of `analytical`, 5,000,000 triples"),
            Option("peer", str, "yes", "whether to ask shards on Ray and Daft too", ("no", "yes")),
        ),
    ),
    "exchange": Benchmark(
        exchange.run,
        (
            *RATIO,
            Option("shards", int, 4, "that both tables are divided among"),
        ),
    ),
    "shacl": Benchmark(shacl.run, RATIO),
    "geo": Benchmark(geo.run, RATIO),
    "graphql": Benchmark(graphql.run, RATIO),
    "text_in_sparql": Benchmark(text_in_sparql.run, (*RATIO, PEER)),
    "elasticsearch": Benchmark(
        elasticsearch.run,
        (
            Option("rounds", int, 2, "times that each is measured"),
            SCALE,
            Option("docs", int, 50_000, "that are searched"),
            Option("only", str, "", "only the searches whose name has this in it"),
            Option(
                "peer", str, "yes", "whether to measure Elasticsearch beside, where a JDK is", ("no", "yes")
            ),
        ),
    ),
    "live": Benchmark(live.run, RATIO),
    "acl": Benchmark(acl.run, RATIO),
    "hybrid": Benchmark(hybrid.run, (SCALE,)),
    "hostile": Benchmark(
        hostile.run,
        (
            SCALE,
            Option("only", str, "", "only the queries whose name has this in it"),
        ),
    ),
    "reads": Benchmark(
        reads.run,
        (
            Option("rounds", int, 3, "times that each is measured"),
            SCALE,
            PEER,
        ),
    ),
    "weight": Benchmark(
        weight.run,
        (
            Option("rounds", int, 3, "starts that are measured"),
            SCALE,
            PEER,
            Option("fresh", str, "no", "whether to install in a fresh clone as well", ("no", "yes")),
        ),
    ),
    "fuzz": Benchmark(
        fuzz.run,
        (
            Option("seconds", float, 600.0, "for all targets together"),
            Option("seed", int, 0, "of the first case; case n has this seed plus n"),
            Option("cases", int, None, "of each target, at most"),
            Option("target", str, None, "only this one", tuple(fuzz.PROGRAMS)),
        ),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code is 0 if every line passes, 1 if one does not, 2 if it could not be run."""
    chosen = vars(_parser().parse_args(arguments))
    name, as_json = chosen.pop("name"), chosen.pop("json")
    try:
        lines = BENCHMARKS[name].run(**chosen)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps([line.as_dict() for line in lines], indent=2))
    else:
        print_lines(lines)
    return 0 if all(line.passes for line in lines) else 1


def _end(_number: int, _frame: object) -> NoReturn:
    """End as at an interrupt: everything that runs is stopped, and its data removed. A second signal is not
    to interrupt that.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + signal.SIGTERM)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, benchmark in BENCHMARKS.items():
        described = (sys.modules[benchmark.run.__module__].__doc__ or "").partition("\n")[0]
        sub = names.add_parser(name, help=described, description=described)
        sub.add_argument("--json", action="store_true", help="print the lines as JSON")
        for option in benchmark.options:
            sub.add_argument(
                f"--{option.name}",
                type=option.type,
                default=option.default,
                help=option.help,
                choices=option.choices,
            )
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)  # else services and directories would be left behind
    sys.exit(main())
