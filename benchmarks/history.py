"""The past: queries of it against those of the present, the making of a state, what is kept of changes.

The analytical queries are those of `benchmarks analytical`. The history has ten changes for each quad of the
present: some predicates are rewritten again and again. As they are in the end what they were, each answer of
the past has to be that of the present.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx

from benchmarks.analytical import mean, query_texts
from benchmarks.columns import wait_until_following
from benchmarks.durable_update import update_load
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, running_service, work_dir
from benchmarks.shared_data import write_copies

__all__ = ["run"]

SUBJECTS = 50_000  # with four triples each
UPDATES, SUBJECTS_AN_UPDATE = 200, 500  # a value of each is another one after each update
SECONDS = 1.0
RATIO_MAX = 2.0
PREDICATE = "http://x.example/p"
QUERIES = {
    "lookup": "SELECT ?o {{ <http://x.example/s{number}> <http://x.example/p1> ?o }}",
    "count": "SELECT ?o (COUNT(*) AS ?n) {{ ?s <http://x.example/p3> ?o }} GROUP BY ?o # {number}",
}
# a fifth of the data of `benchmarks analytical`, with scale 1
COPIES = {"olympics-medals": 1, "openflights": 1, "bsbm375k": 1, "lubm1": 2}
CHANGES_A_QUAD = 10
REWRITTEN_SHARE = 0.5  # of all quads, those of whole predicates
WITHOUT = {"GRAPHDB_COLUMNS__PAST": "false"}
PATIENT = {"GRAPHDB_READERS__RESULT_CACHE_MB": "0", "GRAPHDB_HISTORY__AS_OF_SECONDS": "1800"}
PAUSE_S = 5.0  # while a store of the past is made
UPDATES_LEAST = 0.9  # as many as without
CLIENTS = 64


def run(rounds: int, scale: float) -> list[Row]:
    """All of it. scale shortens the data of look-ups, the history, and the time of updates."""
    return [*_look_ups(rounds, scale), *_analytical(rounds, scale), _updates(rounds, scale)]


def _analytical(rounds: int, scale: float) -> list[Row]:
    """Milliseconds of all analytical queries, by geometric mean, and of the one that is slowed down most;
    bytes of the view for each change.
    """
    texts = query_texts("")
    with work_dir() as directory:
        data = directory / "all.nt"
        write_copies(data, COPIES)
        with (
            running_service(directory, load=data, environment=PATIENT) as service,
            httpx.Client(base_url=service.url, timeout=600, trust_env=False) as client,
        ):
            wait_until_following(service)
            before_bytes = _view_bytes(directory)
            first, changes = _rewritten(client, scale)
            _ask(client, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", None)
            wait_until_following(service)
            kept_bytes = _view_bytes(directory) - before_bytes
            # a store of this state is made for whatever the columns do not answer, then the columns' tables
            store_s = _seconds(lambda: _until_made(client, first))
            tables_ms = _seconds(lambda: _answer(client, next(iter(texts.values())), first)) * 1000
            rows = [_compared(client, name, text, first, rounds) for name, text in texts.items()]
    now, then = mean([row.floor for row in rows]), mean([row.ours for row in rows])
    worst = max(rows, key=lambda row: row.ratio)
    return [
        *rows,
        Row(f"{len(rows)} analytical queries, as of the past", "ms", now, then, "at most", RATIO_MAX),
        Row(f"the slowest of them beside now, {worst.work}", "ms", worst.floor, worst.ours),
        Row("the first of them, with the making of its tables", "ms", rows[0].floor, tables_ms),
        Row("a store of the state, for other queries", "s", 1.0, store_s),
        Row(f"the view on the disk, {changes:,} changes", "bytes a change", 1.0, kept_bytes / changes),
    ]


def _until_made(client: httpx.Client, as_of: int) -> None:
    params = {"query": "ASK {}", "as_of": str(as_of)}
    while client.get("/sparql", params=params).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        sleep(PAUSE_S)


def _rewritten(client: httpx.Client, scale: float) -> tuple[int, int]:
    """Rewrites predicates, and gives the log index before, and how many quads have come or gone."""
    sizes = "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n)"
    found = _answer(client, sizes, None)["results"]["bindings"]
    quads = [(row["p"]["value"], int(row["n"]["value"])) for row in found]
    total = sum(size for _, size in quads)
    first = changes = 0
    chosen = list[str]()
    for predicate, size in quads[1::2] + quads[::2]:
        if sum(dict(quads)[each] for each in chosen) + size <= REWRITTEN_SHARE * total:
            chosen.append(predicate)
    moved = "urn:moved"
    while changes < CHANGES_A_QUAD * total * scale:
        for predicate in chosen:
            for source, target in ((f"<{predicate}>", f"<{moved}>"), (f"<{moved}>", f"<{predicate}>")):
                text = f"DELETE {{ ?s {source} ?o }} INSERT {{ ?s {target} ?o }} WHERE {{ ?s {source} ?o }}"
                answer = client.post("/update", data={"update": text}).raise_for_status()
                first = first or int(answer.json()["snapshot_index"]) - 1
                changes += 2 * dict(quads)[predicate]
    return first, changes


def _compared(client: httpx.Client, name: str, text: str, as_of: int, rounds: int) -> Row:
    """Raises BenchmarkError where the answers differ."""
    now, then = (_answer(client, text, index) for index in (None, as_of))  # warm
    if _sorted(now) != _sorted(then) and "LIMIT" not in text:
        raise BenchmarkError(f"the answer to {name} as of {as_of} is not that of the present")
    floor, ours = interleave(
        max(3, rounds),
        lambda: _seconds(lambda: _answer(client, text, None)) * 1000,
        lambda: _seconds(lambda: _answer(client, text, as_of)) * 1000,
    )
    return Row(name, "ms", floor, ours)


def _answer(client: httpx.Client, text: str, as_of: int | None) -> Any:
    fields = {"query": text} | ({} if as_of is None else {"as_of": str(as_of)})
    headers = {"Accept": "application/sparql-results+json", "Cache-Control": "no-store"}
    return client.post("/sparql", data=fields, headers=headers).raise_for_status().json()


def _sorted(answer: Any) -> list[str]:
    return sorted(str(sorted(row.items())) for row in answer.get("results", {}).get("bindings", []))


def _view_bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("view.duckdb*"))


def _updates(rounds: int, scale: float) -> Row:
    measure = update_load(scale)
    with work_dir() as directory:
        for name in ("with", "without"):
            (directory / name).mkdir()
        with (
            running_service(directory / "with") as ours,
            running_service(directory / "without", environment=WITHOUT) as floor,
        ):

            def rate(service: RunningService) -> float:
                return measure(service, CLIENTS).requests_per_second

            for service in (ours, floor):
                wait_until_following(service)
                rate(service)  # warm
            without, kept = interleave(rounds, lambda: rate(floor), lambda: rate(ours))
    return Row(f"updates of {CLIENTS} clients", "updates/s", without, kept, "at least", UPDATES_LEAST)


def _look_ups(rounds: int, scale: float) -> list[Row]:
    """Milliseconds of one query after the other; seconds of the making."""
    subjects, updates = max(1_000, int(SUBJECTS * scale)), max(10, int(UPDATES * scale))
    with work_dir() as directory:
        data = _data(directory / "data.nt", subjects)
        with (
            running_service(directory, load=data) as service,
            httpx.Client(base_url=service.url, timeout=600, trust_env=False) as client,
        ):
            began = perf_counter()
            indexes = [_update(client, number, subjects) for number in range(updates)]
            updating_s = perf_counter() - began
            making_s = _seconds(lambda: _ask(client, "ASK {}", indexes[0]))
            rows = []
            for name, text in QUERIES.items():
                numbers = count()
                now, then = interleave(
                    rounds,
                    lambda: _latency_ms(client, text, numbers, None, scale),  # noqa: B023 called at once
                    lambda: _latency_ms(client, text, numbers, indexes[0], scale),  # noqa: B023
                )
                rows.append(Row(f"{name}, as of the past", "ms", now, then, "at most", RATIO_MAX))
    changed = updates * min(subjects, SUBJECTS_AN_UPDATE) * 2
    return [
        *rows,
        Row(f"a state, {changed:,} changed quads back, against their updates", "s", updating_s, making_s),
    ]


def _data(path: Path, subjects: int) -> Path:
    with path.open("w") as file:
        for number in range(4 * subjects):
            predicate, value = number % 4, number % 1_000
            file.write(f'<http://x.example/s{number // 4}> <{PREDICATE}{predicate}> "{value}" .\n')
    return path


def _update(client: httpx.Client, number: int, subjects: int) -> int:
    """Gives some subjects another value; the log index."""
    some = " ".join(
        f"<http://x.example/s{(number * SUBJECTS_AN_UPDATE + each) % subjects}>"
        for each in range(min(subjects, SUBJECTS_AN_UPDATE))
    )
    text = (
        f"DELETE {{ ?s <{PREDICATE}2> ?o }} INSERT {{ ?s <{PREDICATE}2> {number} }} "
        f"WHERE {{ VALUES ?s {{ {some} }} ?s <{PREDICATE}2> ?o }}"
    )
    answer = client.post("/update", data={"update": text}).raise_for_status()
    return int(answer.json()["snapshot_index"])


def _ask(client: httpx.Client, text: str, as_of: int | None) -> None:
    params = {"query": text} | ({} if as_of is None else {"as_of": str(as_of)})
    client.get("/sparql", params=params, headers={"Cache-Control": "no-store"}).raise_for_status()


def _seconds(work: Callable[[], None]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _latency_ms(
    client: httpx.Client, text: str, numbers: "count[int]", as_of: int | None, scale: float
) -> float:
    """Of one query after the other, for a while."""
    began, asked = perf_counter(), 0
    while asked == 0 or perf_counter() - began < SECONDS * scale:
        _ask(client, text.format(number=next(numbers) % 1_000), as_of)
        asked += 1
    return (perf_counter() - began) / asked * 1000
