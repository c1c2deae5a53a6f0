"""Six of the queries of `analytical` on Ray: over shards that are actors, and by Daft over Parquet.

Both have the same tables, of each predicate the subjects and objects as numbers, in pieces by subject, one
for each Ray node. Ours goes from the query's algebra to the bytes of its answer, over what shards have in
memory; Daft goes from the SQL below to the rows, and reads Parquet each time. Neither limits the other.

The project does not install Daft: where it is not there, ours is measured alone, and the table says so.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from benchmarks.analytical import query_texts, written
from benchmarks.ray_nodes import lacking, medians, ray_nodes
from benchmarks.service import BenchmarkError
from graphdb.columns.catalog import Catalog
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.sharding.cutting import CutLimits, cut
from graphdb.columns.sharding.moves import carried_out
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query

__all__ = ["OnRay", "on_ray"]

_WITHIN_S = 120.0
_OLY, _OF = "http://wallscope.co.uk/ontology/olympics/", "http://openflights.example/ont#"
_UB, _BSBM = (
    "http://swat.cse.lehigh.edu/onto/univ-bench.owl#",
    "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/",
)
_TABLES = {
    "athlete": f"{_OLY}athlete",
    "games": f"{_OLY}games",
    "event": f"{_OLY}event",
    "medal": f"{_OLY}medal",
    "team": "http://dbpedia.org/ontology/team",
    "starts": f"{_OF}from",
    "ends": f"{_OF}to",
    "located": f"{_OF}country",
    "reviewer": "http://purl.org/stuff/rev#reviewer",
    "review_for": f"{_BSBM}vocabulary/reviewFor",
    "lives": f"{_BSBM}vocabulary/country",
    "producer": f"{_BSBM}vocabulary/producer",
    "author": f"{_UB}publicationAuthor",
    "member": f"{_UB}memberOf",
    "takes": f"{_UB}takesCourse",
}
_GOLD = "<http://wallscope.co.uk/resource/olympics/medal/Gold>"
_QUERIES = {
    "star_of_four": """SELECT count(*) AS n FROM athlete a
        JOIN games g ON g.s = a.s JOIN event e ON e.s = a.s JOIN medal m ON m.s = a.s""",
    "gold_by_team": """SELECT t.text AS team, f.n AS n FROM (
            SELECT t.o AS team, count(*) AS n FROM medal m
            JOIN athlete a ON a.s = m.s JOIN team t ON t.s = a.o WHERE m.o = {gold} GROUP BY t.o) f
        JOIN terms t ON t.id = f.team ORDER BY n DESC, team LIMIT 10""",
    "routes_between_countries": """SELECT x.text AS c1, y.text AS c2, f.n AS n FROM (
            SELECT p.o AS c1, q.o AS c2, count(*) AS n FROM starts a JOIN ends b ON b.s = a.s
            JOIN located p ON p.s = a.o JOIN located q ON q.s = b.o GROUP BY p.o, q.o) f
        JOIN terms x ON x.id = f.c1 JOIN terms y ON y.id = f.c2 ORDER BY n DESC, c1, c2 LIMIT 20""",
    "reviews_by_country": """SELECT x.text AS place, y.text AS maker, f.n AS n FROM (
            SELECT l.o AS place, c.o AS maker, count(*) AS n FROM reviewer w
            JOIN review_for r ON r.s = w.s JOIN lives l ON l.s = w.o
            JOIN producer p ON p.s = r.o JOIN lives c ON c.s = p.o GROUP BY l.o, c.o) f
        JOIN terms x ON x.id = f.place JOIN terms y ON y.id = f.maker
        ORDER BY n DESC, place, maker LIMIT 20""",
    "coauthors": "SELECT count(*) AS n FROM author x JOIN author y ON y.s = x.s WHERE x.o <> y.o",
    "students_per_department": """SELECT x.text AS d, f.students AS students, f.courses AS courses FROM (
            SELECT m.o AS d, count(DISTINCT m.s) AS students, count(DISTINCT t.o) AS courses
            FROM member m JOIN takes t ON t.s = m.s GROUP BY m.o) f
        JOIN terms x ON x.id = f.d ORDER BY d""",
}
Rows = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class OnRay:
    """One query in one of both ways: median milliseconds, and milliseconds of processor time of all
    processes. times_ours is of the processor time.
    """

    name: str
    way: str
    ms: float = 0.0
    processor_ms: float = 0.0
    times_ours: float = 0.0
    is_same: bool = True
    missing: str = ""

    @property
    def passes(self) -> bool:
        return self.is_same

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "query": f"{self.name}, {self.way}",
            "view ms": "",
            "one host ms": "",
            "its ratio": "",
            "shards ms": "-" if self.missing else f"{self.processor_ms:.1f}",
            "of these the shards'": "",
            "ratio": "",
            "steps": "",
            "moved rows": "",
            "moved kB": "",
            "": self.missing or ("" if self.is_same else "DIFFERS"),
        }

    def notes(self) -> Sequence[str]:
        if self.missing:
            return ()
        return (
            f"{self.name}, {self.way}: {self.ms:.0f} ms, {self.processor_ms:.0f} of processor time, "
            f"{self.times_ours:.1f} times ours",
        )


def on_ray(view: DuckDBPyConnection, rounds: int, only: str, shards: int) -> list[OnRay]:
    """Those of the six whose name has `only` in it."""
    from actors.cluster import SHARD_RESOURCE

    texts = {name: text for name, text in query_texts("").items() if name in _QUERIES and only in name}
    if not texts:
        return []
    found = []
    with tempfile.TemporaryDirectory() as name, ray_nodes(shards, {SHARD_RESOURCE: 1}):
        with _our_actors(view, shards, Path(name)) as answered:
            measures = {each: _asking(answered, text) for each, text in texts.items()}
            ours = {each: _measured(measure, rounds) for each, measure in measures.items()}
        missing = lacking("daft")
        if not missing:
            daft_query = _by_daft(view, shards, Path(name))
        for query in texts:
            ms, processor_ms, rows = ours[query]
            found.append(OnRay(query, "our actors on Ray", ms, processor_ms, 1.0))
            if missing:
                found.append(OnRay(query, "Daft on Ray", missing=missing))
                continue
            ms, theirs_ms, theirs = _measured(_asking(daft_query, _QUERIES[query]), rounds)
            times = theirs_ms / processor_ms
            found.append(OnRay(query, "Daft on Ray", ms, theirs_ms, times, sorted(theirs) == sorted(rows)))
    return found


def _measured(measure: Callable[[], Rows], rounds: int) -> tuple[float, float, Rows]:
    """Milliseconds, those of processor time, the rows."""
    seconds, processor_s, answers = medians(measure, rounds)
    return seconds * 1000, processor_s * 1000, answers[-1]


def _asking(answered: Callable[[str], Rows], text: str) -> Callable[[], Rows]:
    return lambda: answered(text)


@contextmanager
def _our_actors(view: DuckDBPyConnection, shards: int, directory: Path) -> Iterator[Callable[[str], Rows]]:
    """What answers a query over shards that are filled from the view."""
    from actors.columns.column_shard import ShardSettings
    from actors.columns.shard_set import ShardSet
    from actors.shard_actors import RayShards

    def settings(numbers: Sequence[int]) -> ShardSettings:
        return ShardSettings(f"benchmark-{numbers[0]}", 1024, 256, str(directory), 4096)

    catalog, texts = Catalog(view), TermTexts(view)
    divided = ShardSet(RayShards(shards, calls=8), settings)
    try:
        divided.follow(view)
        deadline = time.monotonic() + _WITHIN_S
        while (reason := divided.away()) is not None:
            if time.monotonic() > deadline:
                raise BenchmarkError(reason)
            time.sleep(0.1)
        ((index,),) = view.execute("SELECT value::BIGINT FROM meta WHERE key = 'log_index'").fetchall()

        def answered(text: str) -> Rows:
            query = abstract_query(parse_query(text))
            cursor = view.cursor()
            asked = divided.asked(cursor, _WITHIN_S, lambda: None)
            try:
                asked.begin(index, _WITHIN_S)
                plan = cut(query, Dataset(), catalog, asked.division, CutLimits(), has_quads=True)
                compiled = carried_out(plan, asked)
                return _rows_of(written(answer_of(compiled, cursor.execute(compiled.sql).fetchmany, texts)))
            finally:
                asked.end()
                cursor.close()

        yield answered
    finally:
        divided.close()


def _by_daft(view: DuckDBPyConnection, shards: int, directory: Path) -> Callable[[str], Rows]:
    """What answers SQL over the tables, which are written here."""
    daft = import_module("daft")  # no dependency of the project
    if daft.get_or_infer_runner_type() != "ray":
        daft.set_runner_ray()  # once a process
    catalog = Catalog(view)

    def number(text: str) -> int:
        ((found,),) = view.execute("SELECT id FROM terms WHERE text = $1", [text]).fetchall()
        return int(found)

    tables = {}
    sources = {name: f"SELECT s, o {catalog.source(number(f'<{iri}>'))}" for name, iri in _TABLES.items()}
    for name, source in (sources | {"terms": "SELECT id, text FROM terms"}).items():
        key = "id" if name == "terms" else "s"
        for shard in range(shards):
            piece = f"SELECT * FROM ({source}) WHERE hash({key}) % {shards} = {shard}"
            view.execute(f"COPY ({piece}) TO '{directory / name}-{shard}.parquet' (FORMAT parquet)")
        tables[name] = daft.read_parquet(str(directory / f"{name}-*.parquet"))
    gold = number(_GOLD)

    def answered(sql: str) -> Rows:
        found = daft.sql(sql.format(gold=gold), **tables).to_pydict()
        return [tuple(map(str, row)) for row in zip(*found.values(), strict=True)]

    return answered


def _rows_of(answer: bytes) -> Rows:
    """The cells of each row: numbers as they are, other terms in N-Triples."""
    found = json.loads(answer)
    names = found["head"]["vars"]
    return [tuple(_cell(row[name]) for name in names) for row in found["results"]["bindings"]]


def _cell(term: Mapping[str, str]) -> str:
    value = term["value"]
    if term["type"] == "uri":
        return f"<{value}>"
    if "datatype" in term:
        return value
    return f'"{value}"@{term["xml:lang"]}' if "xml:lang" in term else f'"{value}"'
