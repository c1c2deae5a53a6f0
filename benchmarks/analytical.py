"""Analytical queries over the column view against pyoxigraph in process.

Four data sets of ../shared/data make one default graph of five million triples. Flights are there once; the
others, of which there are samples, are there several times, so that each is of a million triples or two:
every copy has athletes and medals, products, offers and reviews, or a university, with names of their own,
and shares teams, types, features and the vocabulary with the others. The queries, in the manner of
Sparqloscope, are in `analytical_queries/`. All go from the text of a query to the bytes of its answer in
JSON, one query at a time, one after the other; of each the best of its rounds counts.

- pyoxigraph: the engine in this process, with the store in memory.
- columns: the view in this process. A query that the estimate sends to a reader the engine answers here too.
- service: a service over HTTP, that keeps no answers, with the data on disk.
- Virtuoso, where it is installed, over HTTP. What it answers is not compared; the others are, as multisets.
"""

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import duckdb
import httpx
from duckdb import DuckDBPyConnection
from pyoxigraph import RdfFormat, Store

from benchmarks.columns import wait_until_following
from benchmarks.service import BenchmarkError, running_service
from benchmarks.shared_data import write_copies
from benchmarks.virtuoso import RunningVirtuoso, VirtuosoRefused, is_installed, running_virtuoso
from graphdb.columns.applying import take_statistics
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import NotCompiled, compile_query
from graphdb.columns.estimate import estimate
from graphdb.columns.loading import load_store, settle
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.schema import configure, create
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import Answer, ResultFormat, write_answer
from graphdb.sparql.translation import abstract_query

__all__ = ["DATA", "loaded", "mean", "query_texts", "run", "shown", "written"]

DATA = {"olympics-medals": 5, "openflights": 1, "bsbm375k": 4, "lubm1": 10}  # how many copies of each
TRIPLES = "all.nt"
QUERIES = Path(__file__).parent / "analytical_queries"
LEAST, MEAN, SHARE = 1 / 1.2, 20.0, 0.8  # how many times the engine's speed: each query, all; compiled of all
NO_CACHE = {"GRAPHDB_READERS__RESULT_CACHE_MB": "0"}
TIMEOUT_S = 120
PATIENCE_S = 5.0  # what takes longer is measured once


@dataclass(frozen=True, slots=True)
class Measured:
    """One query: milliseconds of the engine, of the columns, of the service and of Virtuoso, None where it
    is not installed or fails; refused is why it does not compile.

    to_reader: its estimate sends it to a reader, which is the engine again.
    """

    name: str
    rows: int
    engine_ms: float
    columns_ms: float | None
    service_ms: float
    virtuoso_ms: float | None = None
    refused: str = ""
    is_same: bool = True
    to_reader: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.columns_ms is None else self.engine_ms / self.columns_ms

    @property
    def over_http(self) -> float:
        return self.engine_ms / self.service_ms

    @property
    def passes(self) -> bool:
        return self.is_same and (self.ratio is None or self.ratio >= LEAST)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "over_http": self.over_http, "passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "query": self.name,
            "rows": str(self.rows),
            "pyoxigraph ms": f"{self.engine_ms:.1f}",
            "columns ms": shown(self.columns_ms),
            "ratio": shown(self.ratio),
            "service ms": shown(self.service_ms),
            "over HTTP": shown(self.over_http),
            "Virtuoso ms": shown(self.virtuoso_ms),
            "": "DIFFERS"
            if not self.is_same
            else self.refused or ("" if self.passes else "MISSED") or ("reader" if self.to_reader else ""),
        }

    def notes(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True, slots=True)
class Summary:
    """The geometric mean over the queries that do not have to go to a reader, how many of all those are, and
    the slowest ratio; over how many triples. over_http: the mean and the slowest over all queries, as the
    service answers. virtuoso: how many times its speed the service has, over what it answered.
    """

    mean: float
    slowest: float
    over_http: float
    slowest_over_http: float
    compiled: int
    queries: int
    triples: int
    virtuoso: float | None
    virtuoso_answered: int

    @property
    def passes(self) -> bool:
        return min(self.mean, self.over_http) >= MEAN and self.compiled >= SHARE * self.queries

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "query": "geometric mean",
            "rows": "",
            "pyoxigraph ms": "",
            "columns ms": "",
            "ratio": shown(self.mean),
            "service ms": "",
            "over HTTP": shown(self.over_http),
            "Virtuoso ms": "",
            "": "met" if self.passes else "MISSED",
        }

    def notes(self) -> Sequence[str]:
        share = f"{self.compiled / self.queries:.0%}"
        beside = (
            "Virtuoso is not installed (Debian: virtuoso-opensource-7)"
            if self.virtuoso is None
            else f"over HTTP {self.virtuoso:.1f} times Virtuoso's speed, of {self.virtuoso_answered} queries"
        )
        return (
            beside,
            f"{self.compiled} of {self.queries} queries compile ({share}); slowest ratio {self.slowest:.2f}, "
            f"over HTTP {self.slowest_over_http:.2f}",
            f"{self.triples:,} triples: " + ", ".join(f"{name} x {copies}" for name, copies in DATA.items()),
        )


def query_texts(only: str) -> dict[str, str]:
    """The text of each query whose name has `only` in it, by its name."""
    prefixes = (QUERIES / "prefixes.rq").read_text()
    texts = {
        path.stem: prefixes + path.read_text()
        for path in sorted(QUERIES.glob("*.rq"))
        if path.stem != "prefixes" and only in path.stem
    }
    if not texts:
        raise BenchmarkError(f"no query has {only!r} in its name")
    return texts


def run(rounds: int, only: str) -> list[Measured | Summary]:
    """Each query whose name has `only` in it."""
    texts = query_texts(only)
    with tempfile.TemporaryDirectory() as name, _peer(Path(name)) as virtuoso:
        store, connection = loaded(Path(name))
        if virtuoso is not None:
            virtuoso.load(Path(name) / TRIPLES)
        with _service(Path(name)) as service:
            contenders = Contenders(store, Catalog(connection), TermTexts(connection), service, virtuoso)
            measured = [_measured(query, text, rounds, contenders) for query, text in texts.items()]
        connection.close()
    ratios = [each.ratio for each in measured if each.ratio is not None]
    over_http = [each.over_http for each in measured]
    beside = [each.virtuoso_ms / each.service_ms for each in measured if each.virtuoso_ms is not None]
    summary = Summary(
        mean(ratios) if ratios else 0.0,
        min(ratios, default=0.0),
        mean(over_http),
        min(over_http),
        len(ratios),
        len(measured),
        len(store),
        mean(beside) if beside else None,
        len(beside),
    )
    return [*measured, summary]


@dataclass(frozen=True, slots=True)
class Contenders:
    """All that have the data, and are asked in turn."""

    store: Store
    catalog: Catalog
    terms: TermTexts
    service: httpx.Client
    virtuoso: RunningVirtuoso | None


def mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.1f}"


@contextmanager
def _peer(directory: Path) -> Iterator[RunningVirtuoso | None]:
    if not is_installed():
        yield None
        return
    with running_virtuoso(directory) as virtuoso:
        yield virtuoso


@contextmanager
def _service(directory: Path) -> Iterator[httpx.Client]:
    """A client of a service whose column view has the data."""
    with running_service(directory, load=directory / TRIPLES, environment=NO_CACHE) as service:
        wait_until_following(service)
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as client:
            yield client


def loaded(
    directory: Path, copies: Mapping[str, int] = MappingProxyType(DATA)
) -> tuple[Store, DuckDBPyConnection]:
    triples = directory / TRIPLES
    write_copies(triples, copies)
    store = Store()
    store.bulk_load(path=str(triples), format=RdfFormat.N_TRIPLES)
    connection = duckdb.connect(str(directory / "columns.duckdb"))
    configure(connection)
    create(connection)
    load_store(connection, store, directory)
    settle(connection, 1)
    while take_statistics(connection):  # as a view does that is at rest
        pass
    return store, connection


def _measured(name: str, text: str, rounds: int, among: Contenders) -> Measured:
    query = abstract_query(parse_query(text))
    compiled = compile_query(query, Dataset(), among.catalog)
    refused = compiled.construct if isinstance(compiled, NotCompiled) else ""
    engine_ms, expected = _best(lambda: written(among.store.query(text)), rounds)
    service_ms, served = _best(lambda: _of_service(among.service, text), rounds)
    columns_ms, ours = (None, expected) if refused else _best(lambda: _of_columns(among, text), rounds)
    wanted = _bindings(expected)
    return Measured(
        name,
        wanted.total(),
        engine_ms,
        columns_ms,
        service_ms,
        None if among.virtuoso is None else _of_virtuoso(among.virtuoso, text, rounds),
        refused,
        _bindings(ours) == wanted and _bindings(served) == wanted,
        estimate(query, among.catalog).reader_because is not None,
    )


def _best(answer: Callable[[], bytes], rounds: int) -> tuple[float, bytes]:
    """Milliseconds of the fastest of rounds; what takes long is done once."""
    taken_s: list[float] = []
    for _ in range(rounds):
        if not taken_s or min(taken_s) < PATIENCE_S:
            begun = perf_counter()
            written = answer()
            taken_s.append(perf_counter() - begun)
    return min(taken_s) * 1000, written


def _of_columns(among: Contenders, text: str) -> bytes:
    query = abstract_query(parse_query(text))
    if estimate(query, among.catalog).reader_because is not None:
        return written(among.store.query(text))
    compiled = compile_query(query, Dataset(), among.catalog)
    assert not isinstance(compiled, NotCompiled)
    cursor = among.catalog.connection.cursor()
    return written(answer_of(compiled, cursor.execute(compiled.sql).fetchmany, among.terms))


def _of_service(client: httpx.Client, text: str) -> bytes:
    answer = client.post(
        "/sparql", data={"query": text}, headers={"Accept": "application/sparql-results+json"}
    )
    if answer.status_code != httpx.codes.OK:
        raise BenchmarkError(f"the service answers {answer.status_code}: {answer.text[:200]}")
    return answer.content


def _of_virtuoso(virtuoso: RunningVirtuoso, text: str, rounds: int) -> float | None:
    try:
        return _best(lambda: virtuoso.answer(text), rounds)[0]
    except VirtuosoRefused:
        return None


def written(answer: Answer) -> bytes:
    pieces: list[bytes] = []
    write_answer(answer, ResultFormat.JSON, pieces.append)
    return b"".join(pieces)


def _bindings(written: bytes) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in json.loads(written)["results"]["bindings"])
