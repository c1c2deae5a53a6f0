"""A join whose two sides have different subjects: rows exchanged between our actors, by Ray Data and by Daft.

Two tables of numbers as column shards have them, subject and object, are in pieces, one for each shard and
none of them by what is joined. Each way has to bring equal keys together, join, and say how many rows there
are and what their subjects add up to. All ways run on one Ray cluster, one after the other: a Ray node for
each shard, all on this machine.

Ours is what `actors.columns.query_shards` does for an `Exchange`: arrays that go through Ray's object store
from actor to actor, each with its DuckDB, in which the pieces are already; the others begin with Parquet.

Ray Data needs pyarrow and polars, and Daft its package, which the project does not install: what is not there
is not measured, and the table says so.
"""

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import ray

from benchmarks.ray_nodes import lacking, medians, ray_nodes
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.shard import Piece, joined, read_piece, split_piece, take_piece

__all__ = ["run"]

_ROWS = 2_000_000  # of each table
Answer = tuple[int, int]  # rows of the join, the sum of their subjects
_QUERY = "SELECT count(*) AS rows, coalesce(sum(l.s), 0)::BIGINT AS subjects FROM l JOIN r ON l.o = r.s"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to join: median seconds, and processor seconds of all processes. missing: why not measured."""

    name: str
    seconds: float = 0.0
    processor_s: float = 0.0
    times_ours: float = 0.0
    is_same: bool = True
    missing: str = ""

    @property
    def passes(self) -> bool:
        return self.is_same

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> dict[str, str]:
        measured = not self.missing
        return {
            "way": self.name,
            "seconds": f"{self.seconds:.2f}" if measured else "-",
            "processor seconds": f"{self.processor_s:.2f}" if measured else "-",
            "times ours": f"{self.times_ours:.2f}" if measured else "-",
            "": self.missing or ("" if self.is_same else "DIFFERS"),
        }

    def notes(self) -> Sequence[str]:
        return ()


def run(rounds: int, scale: float, shards: int) -> list[Way]:
    """Each way, ours first."""
    rows = int(_ROWS * scale)
    with tempfile.TemporaryDirectory() as name, ray_nodes(shards):  # on one node Daft would exchange nothing
        directory = Path(name)
        expected = _write_tables(directory, rows, shards)
        ours = [_Shard.remote(str(directory), number) for number in range(shards)]  # type: ignore[attr-defined]
        ray.get([shard.__ray_ready__.remote() for shard in ours])
        ways: dict[str, tuple[Callable[[], Answer], str]] = {
            "arrays between our actors": (lambda: _by_actors(ours), ""),
            "Ray Data's join": (lambda: _by_ray_data(directory, shards), lacking("pyarrow", "polars")),
            "Daft on Ray": (lambda: _by_daft(directory), lacking("daft")),
        }
        found: list[Way] = []
        for way, (measure, missing) in ways.items():
            if missing:
                found.append(Way(way, missing=missing))
                continue
            seconds, processor_s, answers = medians(measure, rounds)
            first = found[0].seconds if found else seconds
            is_same = all(answer == expected for answer in answers)
            found.append(Way(way, seconds, processor_s, seconds / first, is_same))
        return found


def _write_tables(directory: Path, rows: int, shards: int) -> Answer:
    """Pieces of both tables in Parquet; what a single DuckDB answers."""
    with duckdb.connect() as connection:
        run = connection.execute
        # each object leads to one subject on average, as foaf:knows and foaf:name do
        run(f"CREATE TABLE l AS SELECT range AS s, hash(range) % {rows} AS o FROM range({rows})")
        run("ALTER TABLE l ALTER o TYPE BIGINT")
        run(f"CREATE TABLE r AS SELECT (range * 7919) % {rows} AS s, range AS o FROM range({rows})")
        for table, key in (("l", "s"), ("r", "o")):
            for number in range(shards):
                target = directory / f"{table}{number}.parquet"
                piece = f"FROM {table} WHERE hash({key}) % {shards} = {number}"
                run(f"COPY ({piece}) TO '{target}' (FORMAT parquet)")
        ((count, subjects),) = run(_QUERY).fetchall()
        return count, subjects


@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
class _Shard:
    """A shard, as far as this join needs one."""

    def __init__(self, directory: str, number: int) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        for table in ("l", "r"):
            path = Path(directory) / f"{table}{number}.parquet"
            self._connection.execute(f"CREATE TABLE {table} AS FROM '{path}'")

    def split(self, table: str, column: str, shards: int) -> list[Piece]:
        return split_piece(self._connection, f"(FROM main.{table})", column, Division.apart(shards))

    def put(self, table: str, *pieces: Piece) -> int:
        return take_piece(self._connection, table, joined(pieces))

    def answer(self) -> Piece:
        query = _QUERY.replace("FROM l JOIN r", "FROM arrived_l l JOIN arrived_r r")
        return read_piece(self._connection, query)


def _by_actors(shards: Sequence[Any]) -> Answer:
    puts = []
    for table, column in (("l", "o"), ("r", "s")):
        count = len(shards)
        split = [shard.split.options(num_returns=count).remote(table, column, count) for shard in shards]
        for place, shard in enumerate(shards):
            puts.append(shard.put.remote(f"arrived_{table}", *(pieces[place] for pieces in split)))
    ray.get(puts)
    found = joined(ray.get([shard.answer.remote() for shard in shards]))
    rows, subjects = (int(array.sum()) for array in found.arrays)
    return rows, subjects


def _by_ray_data(directory: Path, shards: int) -> Answer:
    from ray.data import DataContext, read_parquet

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    DataContext.get_current().enable_progress_bars = False
    left, right = (
        read_parquet([str(path) for path in sorted(directory.glob(f"{table}*.parquet"))]) for table in "lr"
    )
    right = right.rename_columns({"s": "o", "o": "target"})
    met = left.join(right, join_type="inner", num_partitions=shards, on=("o",))
    blocks = met.map_batches(_summed, batch_format="numpy").take_all()
    return sum(int(block["rows"]) for block in blocks), sum(int(block["subjects"]) for block in blocks)


def _summed(batch: dict[str, Any]) -> dict[str, list[int]]:
    return {"rows": [len(batch["s"])], "subjects": [int(batch["s"].sum())]}


def _by_daft(directory: Path) -> Answer:
    daft = import_module("daft")  # no dependency of the project: 150 MB for a line of this table
    if daft.get_or_infer_runner_type() != "ray":
        daft.set_runner_ray()  # once a process
    left, right = (daft.read_parquet(str(directory / f"{table}*.parquet")) for table in "lr")
    met = left.join(right.select(right["s"].alias("o")), on="o")
    found = met.agg(daft.col("s").count().alias("rows"), daft.col("s").sum().alias("subjects")).to_pydict()
    return int(found["rows"][0]), int(found["subjects"][0])
