"""The analytical queries of a state of the past, behind ten changes for each quad of the present.

Two services are filled with the same data. One is left as it is. In the other, half of all quads, those of
whole predicates, get other subjects and their own ones again, a third of them at a time, and end with other
ones. Then each query of `benchmarks analytical` is asked of the one, and of the other as of its beginning:
what is compared is a state of the past with a store whose present it is. Answers have to be the same.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx

from benchmarks.analytical import mean, query_texts
from benchmarks.columns import view_process, wait_until_following
from benchmarks.process_usage import processor_seconds_of, spent
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, running_service, work_dir
from benchmarks.shared_data import write_copies

__all__ = ["making_seconds", "rows"]

# a fifth of the data of `benchmarks analytical`
COPIES = {"olympics-medals": 1, "openflights": 1, "bsbm375k": 1, "lubm1": 2}
CHANGES_A_QUAD = 10
REWRITTEN_SHARE = 0.5  # of all quads, those of whole predicates
MOVED = "urn:moved:"
THIRDS = ("0-3", "4-6", "7-9")  # by the last digit of the subject's name
RATIO_MAX = 2.0
PATIENT = {"GRAPHDB_READERS__RESULT_CACHE_MB": "0", "GRAPHDB_HISTORY__AS_OF_SECONDS": "1800"}
MAKING_S_MAX = 1800.0  # of a store of the past
PAUSE_S = 2.0  # while one is made: sooner than the service closes a connection that rests
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
COUNT_MOVED = f'SELECT (COUNT(*) AS ?n) {{ ?s ?p ?o FILTER(STRSTARTS(STR(?s), "{MOVED}")) }}'


def rows(rounds: int, scale: float) -> list[Row]:
    """Milliseconds of each query, and of all by geometric mean; what the first queries of a state take; bytes
    of the view for each change. scale shortens the history.
    """
    texts = query_texts("")
    with work_dir() as directory:
        data = directory / "all.nt"
        write_copies(data, COPIES)
        (directory / "present").mkdir()
        (directory / "past").mkdir()
        with (
            running_service(directory / "present", load=data, environment=PATIENT) as present,
            running_service(directory / "past", load=data, environment=PATIENT) as past,
            _client(present) as now_client,
            _client(past) as then_client,
        ):
            for service in (present, past):
                wait_until_following(service)
            before_bytes = _view_bytes(directory / "past")
            first, last, changes = _rewritten(then_client, scale)
            differing = 2 * _number(then_client, COUNT_MOVED)
            wait_until_following(past, last)
            kept_bytes = _view_bytes(directory / "past") - before_bytes
            tables_ms = _seconds(lambda: _answer(then_client, COUNT, first)) * 1000
            now, then = _Asked(now_client, None), _Asked(then_client, first)
            firsts = [_same(name, text, now, then) for name, text in texts.items()]
            views = {view_process(each): each for each in (present, past)}
            used = processor_seconds_of(views)
            compared = [_compared(name, text, now, then, rounds) for name, text in texts.items()]
            used_now = processor_seconds_of(views)
            store_s = making_seconds(then_client, first)
    now_s, then_s = (spent({pid: used[pid]}, {pid: seconds}) for pid, seconds in used_now.items())
    means = mean([row.floor for row in compared]), mean([row.ours for row in compared])
    beyond = sum(row.ratio > RATIO_MAX for row in compared)
    worst = max(compared, key=lambda row: row.ratio)
    return [
        *compared,
        Row(f"{len(compared)} analytical queries, as of the past", "ms", *means, "at most", RATIO_MAX),
        Row(f"those beyond {RATIO_MAX:g} times now", "queries", float(len(compared)), float(beyond)),
        Row(f"the slowest of them beside now, {worst.work}", "ms", worst.floor, worst.ours),
        Row("all of them, the view's processor", "s", now_s, then_s),
        Row("all of them, asked the first time", "ms", *(sum(each) for each in zip(*firsts, strict=True))),
        Row("a count before, with the making of the tables", "ms", means[0], tables_ms),
        Row("a store of the state, unless a query has needed one", "s", 1.0, store_s),
        Row(f"quads that differ, after {changes:,} changes", "quads", float(changes), float(differing)),
        Row("the view on the disk, for each change", "bytes", 1.0, kept_bytes / changes),
    ]


class _Asked:
    """Where a text is asked, of the present or of a state; each time as a text that was not asked before."""

    def __init__(self, client: httpx.Client, as_of: int | None) -> None:
        self._client, self._as_of, self._number = client, as_of, 0

    def __call__(self, text: str) -> Any:
        self._number += 1
        return _answer(self._client, f"{text}\n# {self._number}", self._as_of)


def _client(service: RunningService) -> httpx.Client:
    return httpx.Client(base_url=service.url, timeout=600, trust_env=False)


def making_seconds(client: httpx.Client, as_of: int) -> float:
    """Until the store of a state is made, by who reads a graph. Raises BenchmarkError."""
    began, params = perf_counter(), {"default": "", "as_of": str(as_of)}
    while (answer := client.head("/data", params=params)).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        if perf_counter() - began > MAKING_S_MAX:
            raise BenchmarkError(f"the state as of {as_of} was not made within {MAKING_S_MAX:g} s")
        sleep(PAUSE_S)
    answer.raise_for_status()
    return perf_counter() - began


def _rewritten(client: httpx.Client, scale: float) -> tuple[int, int, int]:
    """Rewrites predicates; the log indexes before and after, and how many quads have come or gone."""
    chosen = _chosen(client)
    wanted = CHANGES_A_QUAD * _number(client, COUNT) * scale
    first = last = changes = turns = 0
    # not behind a turn of all, or of all twice, which is what was there
    while changes < wanted or turns % len(THIRDS) != len(THIRDS) - 1 or turns // len(THIRDS) % 2:
        digits = THIRDS[turns % len(THIRDS)]
        for predicate in chosen:
            answer = client.post("/update", data={"update": _turned(predicate, digits)}).raise_for_status()
            done = answer.json()
            last = int(done["snapshot_index"])
            first = first or last - 1
            changes += int(done["affected_triples"])
        turns += 1
    return first, last, changes


def _chosen(client: httpx.Client) -> list[str]:
    """Predicates that have about half of all quads, frequent and rare ones."""
    sizes = "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n)"
    found = _answer(client, sizes, None)["results"]["bindings"]
    quads = [(row["p"]["value"], int(row["n"]["value"])) for row in found]
    left = REWRITTEN_SHARE * sum(size for _, size in quads)
    chosen = list[str]()
    for predicate, size in quads[1::2] + quads[::2]:
        if size <= left:
            left -= size
            chosen.append(predicate)
    return chosen


def _turned(predicate: str, digits: str) -> str:
    """An update: some subjects of a predicate have another name afterwards, or their own again."""
    other = (
        f'IRI(IF(STRSTARTS(STR(?s), "{MOVED}"), STRAFTER(STR(?s), "{MOVED}"), CONCAT("{MOVED}", STR(?s))))'
    )
    return (
        f"DELETE {{ ?s <{predicate}> ?o }} INSERT {{ ?other <{predicate}> ?o }} WHERE {{ ?s <{predicate}> ?o "
        f'FILTER(ISIRI(?s) && REGEX(STR(?s), "[{digits}][^0-9]*$")) BIND({other} AS ?other) }}'
    )


def _same(name: str, text: str, now: _Asked, then: _Asked) -> tuple[float, float]:
    """Milliseconds that both take the first time. Raises BenchmarkError where the answers differ."""
    answers = list[Any]()
    taken = [_seconds(lambda: answers.append(ask(text))) * 1000 for ask in (now, then)]  # noqa: B023 at once
    if len({str(_sorted(answer)) for answer in answers}) > 1 and "LIMIT" not in text:
        raise BenchmarkError(f"the answer to {name} as of the past is not that of then")
    return taken[0], taken[1]


def _compared(name: str, text: str, now: _Asked, then: _Asked, rounds: int) -> Row:
    floor, ours = interleave(
        max(3, rounds),
        lambda: _seconds(lambda: now(text)) * 1000,
        lambda: _seconds(lambda: then(text)) * 1000,
    )
    return Row(name, "ms", floor, ours)


def _answer(client: httpx.Client, text: str, as_of: int | None) -> Any:
    fields = {"query": text} | ({} if as_of is None else {"as_of": str(as_of)})
    headers = {"Accept": "application/sparql-results+json", "Cache-Control": "no-store"}
    ends = perf_counter() + MAKING_S_MAX
    while True:
        answer = client.post("/sparql", data=fields, headers=headers)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and as_of and perf_counter() < ends:
            sleep(PAUSE_S)
            continue
        if answer.is_error:
            raise BenchmarkError(f"{answer.status_code} {answer.text}: {text}")
        return answer.json()


def _number(client: httpx.Client, text: str) -> int:
    return int(_answer(client, text, None)["results"]["bindings"][0]["n"]["value"])


def _sorted(answer: Mapping[str, Any]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in answer.get("results", {}).get("bindings", []))


def _view_bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("view.duckdb*"))


def _seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began
