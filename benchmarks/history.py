"""The past: queries of it against those of the present, the making of a state, what is kept of changes."""

from itertools import count
from pathlib import Path
from time import perf_counter

import httpx

from benchmarks import history_queries
from benchmarks.columns import wait_until_following
from benchmarks.durable_update import update_load
from benchmarks.report import Row, interleave
from benchmarks.service import RunningService, running_service, work_dir

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
WITHOUT = {"GRAPHDB_COLUMNS__PAST": "false"}
UPDATES_LEAST = 0.9  # as many as without
CLIENTS = 64


def run(rounds: int, scale: float, part: str) -> list[Row]:
    """A part of it, or all. scale shortens the data of look-ups, the history, and the time of updates."""
    rows: list[Row] = []
    if part in ("all", "look-ups"):
        rows += _look_ups(rounds, scale)
    if part in ("all", "queries"):
        rows += history_queries.rows(rounds, scale)
    if part in ("all", "updates"):
        rows.append(_updates(rounds, scale))
    return rows


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
            making_s = history_queries.making_seconds(client, indexes[0])
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


def _latency_ms(
    client: httpx.Client, text: str, numbers: "count[int]", as_of: int | None, scale: float
) -> float:
    """Of one query after the other, for a while."""
    began, asked = perf_counter(), 0
    while asked == 0 or perf_counter() - began < SECONDS * scale:
        _ask(client, text.format(number=next(numbers) % 1_000), as_of)
        asked += 1
    return (perf_counter() - began) / asked * 1000
