"""The queries of `benchmarks.sparqloscope_queries` over HTTP, ours beside other stores.

All of ../shared/data make one default graph of 1.5 million triples; --copies 10 makes 15 million of it, and
takes some 12 GB below the directory for temporary files with all targets, 6 with ours alone. Each
text is asked once with each target in turn and then never again: the variables of every query and round have
names of their own, so that nothing that is kept of texts is measured. Of each query the best of its rounds
counts; one that takes longer than 5 s is asked once. Targets: the service as it is by default, and Virtuoso,
Fuseki and Oxigraph's server (the command `oxigraph`) where they are installed.

Answers are compared with ours as multisets of rows, numbers to six digits; where the engine may choose which
rows it gives, their number is. MB is what the process of the column view has in memory at its peak.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from benchmarks import fuseki, virtuoso
from benchmarks.columns import view_process, wait_until_following
from benchmarks.plain_client import PlainClient, PlainClientError
from benchmarks.process_usage import peak_memory_mb
from benchmarks.service import BenchmarkError, RunningService, free_port, running_service, stop, work_dir
from benchmarks.shared_data import DATA_SETS, write_copies
from benchmarks.sparqloscope_queries import AskedQuery, queries_for

__all__ = ["run"]

OURS, VIRTUOSO, FUSEKI, OXIGRAPH = "ours", "Virtuoso", "Fuseki", "Oxigraph"
# how many times a peer's speed ours shall have, by geometric mean, with 1.5 and with 15 million triples
_ASKED = {VIRTUOSO: (5.0, 10.0), FUSEKI: (20.0, 20.0), OXIGRAPH: (50.0, 50.0)}
_SLOWER_AT_MOST = 2.0  # than the best peer, of any query
_TIMEOUT_S, _PATIENCE_S, _EXPLAIN_S = 60.0, 5.0, 0.5
_JSON = "application/sparql-results+json"
_VARIABLE = re.compile(r"\?([a-z]\w*)")
_BY_READER = "by a reader"


@dataclass(frozen=True, slots=True)
class Measured:
    """One query: milliseconds by target, None where it fails or takes longer than 60 s; the memory of the
    column view's process; who answered ours, and why; the targets whose answer is another.
    """

    name: str
    rows: int
    ms: Mapping[str, float | None]
    memory_mb: float
    path: str
    reason: str
    differing: Sequence[str]

    @property
    def best_peer(self) -> float | None:
        return min((ms for target, ms in self.ms.items() if target != OURS and ms is not None), default=None)

    @property
    def passes(self) -> bool:
        ours, best = self.ms[OURS], self.best_peer
        return ours is not None and (best is None or ours <= _SLOWER_AT_MOST * best)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "query": self.name,
            "rows": str(self.rows),
            **{f"{target}, ms": "failed" if ms is None else f"{ms:.1f}" for target, ms in self.ms.items()},
            "MB": f"{self.memory_mb:.0f}",
            "by": self.path,
            "": " ".join(
                [*(f"{target} differs" for target in self.differing), *([] if self.passes else ["MISSED"])]
            ),
        }

    def notes(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True, slots=True)
class Summary:
    """All queries together: geometric means in milliseconds and failures by target; how many times each
    peer's speed ours has, over the queries that both answer; what the columns do not answer, and why; how
    long the column view took to be made, and the memory of its process, then and during all queries.
    """

    triples: int
    made: "_Made"
    memory_mb: float
    mean_ms: Mapping[str, float]
    failed: Mapping[str, int]
    times: Mapping[str, float]
    asked: Mapping[str, float]
    elsewhere: Mapping[str, str]
    missed: int

    @property
    def passes(self) -> bool:
        return not (self.missed or self.failed[OURS]) and all(
            times >= self.asked[peer] for peer, times in self.times.items()
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        means = {f"{target}, ms": f"{mean:.1f}" for target, mean in self.mean_ms.items()}
        return (
            {"query": "geometric mean", "rows": ""}
            | means
            | {"MB": f"{self.memory_mb:.0f}", "by": "", "": "met" if self.passes else "MISSED"}
        )

    def notes(self) -> Sequence[str]:
        return (
            f"{self.triples:,} triples; failed: "
            + ", ".join(f"{target} {count}" for target, count in self.failed.items()),
            f"the column view was made in {self.made.seconds:.0f} s, with {self.made.memory_mb:.0f} MB",
            *(
                f"{times:.1f} times {peer}'s speed, at least {self.asked[peer]:.0f} asked"
                for peer, times in self.times.items()
            ),
            f"{self.missed} queries take more than {_SLOWER_AT_MOST:.0f} times the best peer's time",
            *(f"not by the columns: {name}: {reason}" for name, reason in self.elsewhere.items()),
        )


@dataclass(frozen=True, slots=True)
class _Made:
    """How a column view was made: how long it took from when the service was ready, and in what memory."""

    seconds: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class _Ours:
    """The service, by its client, and what its column view is."""

    client: httpx.Client
    service: RunningService
    made: _Made


@dataclass(frozen=True, slots=True)
class _Target:
    """Who is asked: answer gives the results JSON, or raises `_FailedError`."""

    name: str
    answer: Callable[[str], bytes]


class _FailedError(Exception):
    """A query that is not answered; str() of it says why."""


def run(rounds: int, copies: int, scale: float, only: str, peer: str) -> list[Measured | Summary]:
    """Each query whose name has `only` in it, on so many copies of the data, or of this part of it; peer:
    "yes", "no", "virtuoso".
    """
    with work_dir() as directory, ExitStack() as stack:
        once, triples = directory / "once.nt", directory / "all.nt"
        write_copies(once, dict.fromkeys(DATA_SETS, 1), scale)
        write_copies(triples, dict.fromkeys(DATA_SETS, copies), scale)
        queries = [one for one in queries_for(once) if only in one.name]
        if not queries:
            raise BenchmarkError(f"no query has {only!r} in its name")
        count = sum(1 for _ in triples.open("rb"))
        ours = stack.enter_context(_service(directory, triples))
        targets = [_Target(OURS, _asking(ours.service.url, "/sparql", stack))]
        if peer != "no":
            targets += _peers(directory, triples, stack, others=peer == "yes")
        measured = [_measured(place, query, rounds, targets, ours) for place, query in enumerate(queries)]
    return [*measured, _summary(measured, count, copies, ours.made)]


def _measured(
    place: int, query: AskedQuery, rounds: int, targets: Sequence[_Target], ours: _Ours
) -> Measured:
    memory_mb: list[float] = []
    taken_ms: dict[str, float | None] = {}
    found: dict[str, Counter[Any] | int] = {}
    for number in range(rounds):
        # two features may have the same predicates, and so the same text
        text = _VARIABLE.sub(rf"?\1_{place}_{number}", query.text)
        for target in targets:
            least = taken_ms.get(target.name, math.inf)
            if least is None or (number and least > 1000 * _PATIENCE_S):
                continue
            with ExitStack() as watching:
                if target.name == OURS:
                    watching.enter_context(peak_memory_mb(view_process(ours.service), memory_mb))
                begun = time.perf_counter()
                try:
                    answer = target.answer(text)
                    took_ms = 1000 * (time.perf_counter() - begun)
                    found[target.name] = _content(answer, query)
                except _FailedError:
                    taken_ms[target.name] = None
                    found.pop(target.name, None)
                else:
                    taken_ms[target.name] = min(least, took_ms)
    evaluated, reason = _explained(ours.client, query)
    expected = found.get(OURS)
    differing = [] if expected is None else [name for name, content in found.items() if content != expected]
    rows = expected.total() if isinstance(expected, Counter) else expected or 0
    return Measured(
        query.name, rows, taken_ms, max(memory_mb, default=math.nan), evaluated, reason, differing
    )


def _explained(service: httpx.Client, query: AskedQuery) -> tuple[str, str]:
    """Who answers it, and why not the columns. What a reader would find is not waited for."""
    asked = {"query": query.text, "explain": "true", "timeout": str(_EXPLAIN_S)}
    told = service.get("/sparql", params=asked).json()
    columns = told["columns"] or {}
    return told["classification"]["evaluated"], columns.get("reason") or ""


def _content(answer: bytes, query: AskedQuery) -> Counter[Any] | int:
    """The rows, or how many they are.

    Raises _FailedError for an answer that breaks off, as of a query that is cancelled after its head.
    """
    if not answer.rstrip().endswith(b"}"):
        raise _FailedError("its answer breaks off")
    if query.counted:
        # each row binds the first variable; millions of rows are not to be read into memory
        variable = _VARIABLE.search(query.text)
        assert variable is not None
        return sum(1 for _ in re.finditer(rb'"%s(?:_\d+)*"\s*:\s*\{' % variable[1].encode(), answer))
    try:
        bindings = json.loads(answer)["results"]["bindings"]
    except ValueError as error:
        raise _FailedError(f"its answer is no JSON: {error}") from error
    return Counter(
        tuple(sorted((name.partition("_")[0], _value(term)) for name, term in row.items()))
        for row in bindings
    )


def _value(term: Mapping[str, str]) -> str:
    """A number to six digits: engines add decimals and doubles up in other ways."""
    try:
        return f"{float(term['value']):.6g}"
    except ValueError:
        return term["value"]


def _summary(measured: Sequence[Measured], triples: int, copies: int, made: _Made) -> Summary:
    targets = list(measured[0].ms)
    by_target = {target: [one.ms[target] for one in measured] for target in targets}
    ours = by_target[OURS]
    times = {
        target: _mean([peer / own for peer, own in zip(of_peer, ours, strict=True) if peer and own])
        for target, of_peer in by_target.items()
        if target != OURS
    }
    return Summary(
        triples,
        made,
        max(one.memory_mb for one in measured),
        {target: _mean([ms for ms in of_target if ms]) for target, of_target in by_target.items()},
        {target: sum(ms is None for ms in of_target) for target, of_target in by_target.items()},
        times,
        {peer: asked[copies > 1] for peer, asked in _ASKED.items()},
        {one.name: one.reason for one in measured if one.path == _BY_READER},
        sum(not one.passes for one in measured),
    )


def _mean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else 0.0


def _asking(url: str, path: str, stack: ExitStack) -> Callable[[str], bytes]:
    headers = {"Content-Type": "application/sparql-query", "Accept": _JSON}
    client = stack.enter_context(closing(PlainClient(url, _TIMEOUT_S + 10)))

    def answer(text: str) -> bytes:
        try:
            status, body = client.post(path, text.encode(), headers)
        except PlainClientError as error:
            raise _FailedError(str(error)) from error
        if status != HTTPStatus.OK:
            raise _FailedError(body[:200].decode(errors="replace"))
        return body

    return answer


@contextmanager
def _service(directory: Path, triples: Path) -> Iterator[_Ours]:
    """A service whose column view has the data."""
    environment = {"GRAPHDB_SERVER__QUERY_TIMEOUT_SECONDS": f"{_TIMEOUT_S:.0f}"}
    with running_service(directory, load=triples, environment=environment) as service:
        begun, memory_mb = time.perf_counter(), list[float]()
        with peak_memory_mb(view_process(service), memory_mb):
            wait_until_following(service)
        made = _Made(time.perf_counter() - begun, max(memory_mb, default=math.nan))
        with httpx.Client(base_url=service.url, timeout=_TIMEOUT_S + 10, trust_env=False) as client:
            yield _Ours(client, service, made)


def _peers(directory: Path, triples: Path, stack: ExitStack, *, others: bool) -> Iterator[_Target]:
    """Those that are installed, with the data; others: than Virtuoso, too."""
    if virtuoso.is_installed():
        running = stack.enter_context(virtuoso.running_virtuoso(directory))
        running.load(triples)

        def answer(text: str) -> bytes:
            try:
                return running.answer(text)
            except virtuoso.VirtuosoRefused as error:
                raise _FailedError(str(error)) from error

        yield _Target(VIRTUOSO, answer)
    for name, begin in ((FUSEKI, _fuseki), (OXIGRAPH, _oxigraph)) if others else ():
        url = begin(directory, triples, stack)
        if url is not None:
            yield _Target(name, _asking(url, urlsplit(url).path, stack))


def _fuseki(directory: Path, triples: Path, stack: ExitStack) -> str | None:
    if not fuseki.is_installed():
        return None
    running = stack.enter_context(fuseki.running_fuseki(directory, query_timeout_s=_TIMEOUT_S))
    with triples.open("rb") as content:
        headers = {"Content-Type": "application/n-triples"}
        httpx.post(
            f"{running.url}/data?default", content=content, headers=headers, timeout=3_600, trust_env=False
        ).raise_for_status()
    return f"{running.url}/query"


def _oxigraph(directory: Path, triples: Path, stack: ExitStack) -> str | None:
    places = [sysconfig.get_path("scripts"), os.environ["PATH"]]  # the package's command comes first
    command = shutil.which("oxigraph", path=os.pathsep.join(places))
    if command is None:
        return None
    data, port = directory / "oxigraph", free_port()
    subprocess.run([command, "load", "-l", data, "-f", triples], check=True, capture_output=True)
    options = ["-l", str(data), "-b", f"127.0.0.1:{port}", "--timeout-s", f"{_TIMEOUT_S:.0f}"]
    with (directory / "oxigraph.log").open("wb") as log:
        process = subprocess.Popen([command, "serve-read-only", *options], stdout=log, stderr=log)
    stack.callback(stop, process, 20)
    url = f"http://127.0.0.1:{port}/query"
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            httpx.get(url, params={"query": "ASK {}"}, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return url
    raise BenchmarkError("Oxigraph's server did not answer in time")
