"""Shards of a column view against the whole view: the processor time of the queries of `analytical`.

The same data, once in one DuckDB, once divided among several, all in this process and with one thread each,
so what is compared is the work. Both compile a query each time. Of each query the best of its rounds counts.
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

from benchmarks.analytical import loaded, mean, query_texts, written
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.schema import configure
from graphdb.columns.sharding.cutting import CutLimits, cut
from graphdb.columns.sharding.local import LocalShards
from graphdb.columns.sharding.moves import carried_out
from graphdb.columns.values import NotExact
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query

__all__ = ["run"]

TARGET = 1.5  # times the processor time of one view


@dataclass(frozen=True, slots=True)
class Measured:
    """One query, or the sum of all (moved_rows as well): milliseconds of processor time. refused is why it
    cannot be cut.
    """

    name: str
    view_ms: float
    shards_ms: float
    moved_rows: int
    refused: str = ""
    is_same: bool = True
    bound: float | None = None

    @property
    def ratio(self) -> float:
        return self.shards_ms / self.view_ms

    @property
    def passes(self) -> bool:
        return self.is_same and not self.refused and (self.bound is None or self.ratio <= self.bound)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "query": self.name,
            "view ms": f"{self.view_ms:.1f}",
            "shards ms": f"{self.shards_ms:.1f}",
            "ratio": f"{self.ratio:.2f}",
            "moved rows": f"{self.moved_rows:,}",
            "": self.refused or ("DIFFERS" if not self.is_same else "" if self.passes else "MISSED"),
        }

    def notes(self) -> Sequence[str]:
        return ()


def run(rounds: int, only: str, shards: int) -> list[Measured]:
    """Each query whose name has `only` in it, and all together."""
    texts = query_texts(only)
    with tempfile.TemporaryDirectory() as name:
        store, connection = loaded(Path(name))
        del store
        connection.execute("SET threads = 1")
        with _divided(connection, shards) as divided:
            contenders = _Contenders(connection, divided)
            found = [_measured(query, text, rounds, contenders) for query, text in texts.items()]
        connection.close()
    ratios = mean([each.ratio for each in found])
    of_view, of_shards = sum(each.view_ms for each in found), sum(each.shards_ms for each in found)
    moved = sum(each.moved_rows for each in found)
    return [
        *found,
        Measured("all together", of_view, of_shards, moved, bound=TARGET),
        Measured("geometric mean of the ratios", 1.0, ratios, moved, bound=TARGET),
    ]


@contextmanager
def _divided(view: DuckDBPyConnection, shards: int) -> Iterator[LocalShards]:
    made = [duckdb.connect(":memory:", config={"threads": 1}) for _ in range(shards + 1)]
    try:
        for each in made:
            configure(each)
        divided = LocalShards(made[-1], made[:-1])
        divided.fill(view)
        yield divided
    finally:
        for each in made:
            each.close()


class _Contenders:
    """The view and its shards, which are asked in turn."""

    def __init__(self, view: DuckDBPyConnection, shards: LocalShards) -> None:
        self.shards = shards
        self._view, self._catalog, self._shards_catalog = view, Catalog(view), shards.catalog()
        self._view_texts, self._shards_texts = TermTexts(view), TermTexts(shards.coordinator)

    def of_view(self, query: AbstractQuery) -> bytes:
        compiled = compile_query(query, Dataset(), self._catalog)
        assert isinstance(compiled, CompiledQuery)
        rows = self._view.cursor().execute(compiled.sql)
        return written(answer_of(compiled, rows.fetchmany, self._view_texts))

    def of_shards(self, query: AbstractQuery) -> bytes:
        """Raises NotExact."""
        count = len(self.shards.shards)
        compiled = carried_out(cut(query, Dataset(), self._shards_catalog, count, CutLimits()), self.shards)
        rows = self.shards.coordinator.execute(compiled.sql)
        return written(answer_of(compiled, rows.fetchmany, self._shards_texts))


def _measured(name: str, text: str, rounds: int, among: _Contenders) -> Measured:
    query = abstract_query(parse_query(text))
    view_ms, expected = _best(lambda: among.of_view(query), rounds)
    before = among.shards.moved_rows
    try:
        shards_ms, ours = _best(lambda: among.of_shards(query), rounds)
    except NotExact as reason:
        return Measured(name, view_ms, view_ms, 0, str(reason))
    moved = (among.shards.moved_rows - before) // rounds
    return Measured(name, view_ms, shards_ms, moved, is_same=_bindings(ours) == _bindings(expected))


def _best(answer: Callable[[], bytes], rounds: int) -> tuple[float, bytes]:
    """Milliseconds of processor time of the cheapest of rounds."""
    taken_s: list[float] = []
    for _ in range(rounds):
        begun = process_time()
        found = answer()
        taken_s.append(process_time() - begun)
    return min(taken_s) * 1000, found


def _bindings(found: bytes) -> Counter[str]:
    """The rows; of doubles the first nine digits, because the order in which they are added is open."""
    rows = json.loads(found)["results"]["bindings"]
    for cell in (cell for row in rows for cell in row.values()):
        if cell.get("datatype", "").endswith(("#double", "#float")):
            cell["value"] = f"{float(cell['value']):.9g}"
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
