"""Shards of a column view against the whole view: the processor time of the queries of `analytical`.

The same data three times: in one DuckDB; as shards that share another, as those of one machine do; and as
shards of a DuckDB each, as on several machines. All are in this process and have one thread each, so what is
compared is the work. All compile a query each time. Of each query the best of its rounds counts.
The coordinator is the view, as on a database node. The service asks shards only what reads predicates of
`columns.shards_min_quads` quads (SERVICE_MIN), the view by itself the rest: so it is summed up too.
Six of the queries are then asked of shards that are Ray actors, and of Daft (`daft_queries`).

docs/scaling.md computes with what this measures: the work of the shards and of the coordinator, steps and
bytes, and what shards and view take on the disk.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from benchmarks.analytical import DATA, loaded, mean, query_texts, written
from benchmarks.daft_queries import OnRay, on_ray
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.estimate import scanned_quads
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.schema import configure
from graphdb.columns.sharding.cutting import CutLimits, cut
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.local import LocalShards
from graphdb.columns.sharding.moves import Move, Run, carried_out
from graphdb.columns.values import NotExact
from graphdb.config.service import Columns
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query

__all__ = ["run"]

TARGET = 1.5  # times the processor time of one view, of shards on one machine
STAR, STAR_TARGET = "star_of_four", 1.2
SERVICE_MIN = Columns().shards_min_quads


@dataclass(frozen=True, slots=True)
class Measured:
    """One query, or the sum of all (what moved as well): milliseconds of processor time, at_shards_ms of all
    shards together without the coordinator. host_ms is of shards that share a database, all else of those
    that do not. refused is why it cannot be cut. bound is of host_ratio.
    """

    name: str
    view_ms: float
    shards_ms: float
    at_shards_ms: float
    steps: int
    moved_rows: int
    moved_bytes: int
    gathered_bytes: int  # of those, to the coordinator
    refused: str = ""
    is_same: bool = True
    bound: float | None = None
    scanned: int = 0  # quads of the predicates that it reads
    host_ms: float = 0.0

    @property
    def ratio(self) -> float:
        return self.shards_ms / self.view_ms

    @property
    def host_ratio(self) -> float:
        return self.host_ms / self.view_ms

    @property
    def passes(self) -> bool:
        return self.is_same and not self.refused and (self.bound is None or self.host_ratio <= self.bound)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "host_ratio": self.host_ratio, "passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "query": self.name,
            "view ms": f"{self.view_ms:.1f}",
            "one host ms": f"{self.host_ms:.1f}",
            "its ratio": f"{self.host_ratio:.2f}",
            "shards ms": f"{self.shards_ms:.1f}",
            "of these the shards'": f"{self.at_shards_ms:.1f}",
            "ratio": f"{self.ratio:.2f}",
            "steps": str(self.steps),
            "moved rows": f"{self.moved_rows:,}",
            "moved kB": f"{self.moved_bytes / 1000:,.0f}",
            "": self.refused or ("DIFFERS" if not self.is_same else "" if self.passes else "MISSED"),
        }

    def notes(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True, slots=True)
class Stored:
    """What there is of the data: bytes on the disk, terms, and processor seconds to fill."""

    quads: int
    terms: int
    view_bytes: int
    shards_bytes: int
    shards_terms: int  # of all, one that is on several counted each time
    fill_s: float

    @property
    def passes(self) -> bool:
        return True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self) -> Mapping[str, str]:
        return dict.fromkeys(Measured("", 1, 1, 0, 0, 0, 0, 0).cells(), "") | {
            "query": f"{self.quads:,} quads"
        }

    def notes(self) -> Sequence[str]:
        return (
            f"a quad: {self.view_bytes / self.quads:.1f} bytes of the view, "
            f"{self.shards_bytes / self.quads:.1f} of the shards, "
            f"{self.fill_s / self.quads * 1e6:.2f} µs to fill them",
            f"{self.terms:,} terms, {self.shards_terms:,} on the shards",
        )


def run(rounds: int, only: str, shards: int, copies: int, peer: str) -> list[Measured | Stored | OnRay]:
    """Each query whose name has `only` in it, and all together. copies: of each of the data sets; 0: those of
    `analytical`. peer: whether to ask on Ray too.
    """
    texts = query_texts(only)
    with tempfile.TemporaryDirectory() as name:
        store, connection = loaded(Path(name), dict.fromkeys(DATA, copies) if copies else DATA)
        del store
        connection.execute("SET threads = 1")
        with (
            _divided(connection, Division.apart(shards), Path(name)) as (apart, stored),
            _divided(connection, Division.among(1, shards), Path(name)) as (together, _),
        ):
            contenders = _Contenders(connection, apart, together)
            found = [_measured(query, text, rounds, contenders) for query, text in texts.items()]
        beside = on_ray(connection, rounds, only, shards) if peer == "yes" else []
        connection.close()
    large = [each for each in found if each.scanned >= SERVICE_MIN]
    routed = [each if each in large else _by_view(each) for each in found]
    return [
        *found,
        _together("all together", found),
        _mean("geometric mean of the ratios", found),
        _together("all, as the service asks them", routed),
        _mean("geometric mean, as the service asks them", routed),
        *([_mean(f"geometric mean of the {len(large)} that it asks of shards", large)] if large else ()),
        stored,
        *beside,
    ]


def _mean(name: str, found: Sequence[Measured]) -> Measured:
    ratio, host_ratio = mean([each.ratio for each in found]), mean([each.host_ratio for each in found])
    return Measured(name, 1.0, ratio, 0.0, 0, 0, 0, 0, bound=TARGET, host_ms=host_ratio)


def _by_view(measured: Measured) -> Measured:
    """The query where no shard is asked."""
    return Measured(
        measured.name, measured.view_ms, measured.view_ms, 0.0, 0, 0, 0, 0, host_ms=measured.view_ms
    )


def _together(name: str, found: Sequence[Measured]) -> Measured:
    return Measured(
        name,
        sum(each.view_ms for each in found),
        sum(each.shards_ms for each in found),
        sum(each.at_shards_ms for each in found),
        sum(each.steps for each in found),
        sum(each.moved_rows for each in found),
        sum(each.moved_bytes for each in found),
        sum(each.gathered_bytes for each in found),
        bound=TARGET,
        host_ms=sum(each.host_ms for each in found),
    )


@contextmanager
def _divided(
    view: DuckDBPyConnection, division: Division, directory: Path
) -> Iterator[tuple["_Metered", Stored]]:
    hosts = len(division.hosts)
    paths = [directory / f"shard{place}-of-{hosts}.duckdb" for place in range(hosts)]
    made = [duckdb.connect(str(path), config={"threads": 1}) for path in paths]
    try:
        for each in made:
            configure(each)
        coordinator = view.cursor()
        made.append(coordinator)
        divided = _Metered(coordinator, made[:-1], has_quads=True, division=division)
        begun = process_time()
        divided.fill(view)
        fill_s = process_time() - begun
        for each in (view, *divided.shards):
            each.execute("CHECKPOINT")
        ((quads,),) = view.execute("SELECT sum(quads)::BIGINT FROM predicates").fetchall()
        ((terms,),) = view.execute("SELECT count(*) FROM terms").fetchall()
        on_shards = sum(row[0] for row in divided.ask("SELECT count(*) FROM terms"))
        of_view = (directory / "columns.duckdb").stat().st_size
        yield (
            divided,
            Stored(quads, terms, of_view, sum(path.stat().st_size for path in paths), on_shards, fill_s),
        )
    finally:
        for each in made:
            each.close()


class _Metered(LocalShards):
    """Notes the steps, and the processor time of those that shards make."""

    def __init__(
        self,
        coordinator: DuckDBPyConnection,
        shards: Sequence[DuckDBPyConnection],
        *,
        has_quads: bool,
        division: Division,
    ) -> None:
        super().__init__(coordinator, shards, has_quads=has_quads, division=division)
        self.steps = 0
        self.at_shards_s = 0.0

    def perform(self, move: Move) -> int:
        self.steps += 1
        begun = process_time()
        rows = super().perform(move)
        if not isinstance(move, Run):
            self.at_shards_s += process_time() - begun
        return rows

    def counters(self) -> tuple[int, int, int, int]:
        """Of all queries so far: steps, rows and bytes that moved, bytes that were gathered."""
        return self.steps, self.moved_rows, self.moved_bytes, self.gathered_bytes


class _Contenders:
    """The view, its shards apart and its shards together, which are asked in turn."""

    def __init__(self, view: DuckDBPyConnection, apart: _Metered, together: _Metered) -> None:
        self.apart, self.together = apart, together
        self._view, self.catalog, self._texts = view, Catalog(view), TermTexts(view)
        self._catalogs = {shards: shards.catalog() for shards in (apart, together)}

    def of_view(self, query: AbstractQuery) -> bytes:
        compiled = compile_query(query, Dataset(), self.catalog)
        assert isinstance(compiled, CompiledQuery)
        rows = self._view.cursor().execute(compiled.sql)
        return written(answer_of(compiled, rows.fetchmany, self._texts))

    def of_shards(self, query: AbstractQuery, shards: _Metered) -> bytes:
        """Raises NotExact."""
        catalog = self._catalogs[shards]
        plan = cut(query, Dataset(), catalog, shards.division, CutLimits(), has_quads=True)
        compiled = carried_out(plan, shards)
        rows = shards.coordinator.execute(compiled.sql)
        return written(answer_of(compiled, rows.fetchmany, self._texts))


def _measured(name: str, text: str, rounds: int, among: _Contenders) -> Measured:
    query = abstract_query(parse_query(text))
    scanned = scanned_quads(query.pattern, among.catalog)
    apart = among.apart
    before = apart.at_shards_s * 1000, *apart.counters()
    ways = (
        lambda: among.of_view(query),
        lambda: among.of_shards(query, apart),
        lambda: among.of_shards(query, among.together),
    )
    try:
        (view_ms, expected), (shards_ms, ours), (host_ms, hosts) = _best(ways, rounds)
    except NotExact as reason:
        return Measured(name, 1.0, 1.0, 0.0, 0, 0, 0, 0, str(reason), scanned=scanned, host_ms=1.0)
    at_shards_ms = (apart.at_shards_s * 1000 - before[0]) / rounds
    counts = [now - then for now, then in zip(apart.counters(), before[1:], strict=True)]
    steps, rows, moved, gathered = (count // rounds for count in counts)
    is_same = _bindings(ours) == _bindings(hosts) == _bindings(expected)
    return Measured(
        name,
        view_ms,
        shards_ms,
        at_shards_ms,
        steps,
        rows,
        moved,
        gathered,
        is_same=is_same,
        bound=STAR_TARGET if name == STAR else None,
        scanned=scanned,
        host_ms=host_ms,
    )


def _best(ways: Sequence[Callable[[], bytes]], rounds: int) -> list[tuple[float, bytes]]:
    """Of each way, in turn: milliseconds of processor time of the cheapest of rounds, and the answer."""
    taken_s: list[list[float]] = [[] for _ in ways]
    found = [b""] * len(ways)
    for _ in range(rounds):
        for place, answer in enumerate(ways):
            begun = process_time()
            found[place] = answer()
            taken_s[place].append(process_time() - begun)
    return [(min(each) * 1000, answer) for each, answer in zip(taken_s, found, strict=True)]


def _bindings(found: bytes) -> Counter[str]:
    """The rows; of doubles the first nine digits, because the order in which they are added is open."""
    rows = json.loads(found)["results"]["bindings"]
    for cell in (cell for row in rows for cell in row.values()):
        if cell.get("datatype", "").endswith(("#double", "#float")):
            cell["value"] = f"{float(cell['value']):.9g}"
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
