"""Words looked for among the literals of a graph, joined with two patterns, over HTTP, against Fuseki with
jena-text.

Each query is asked once, so that no kept answer counts. The words are those of a random literal, so frequent
ones are looked for more often. Ours and Fuseki run one after the other: each has the machine to itself.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import monotonic

import httpx
import psutil  # type: ignore[import-untyped]

from benchmarks import fuseki
from benchmarks.generator import Request
from benchmarks.reads import Measured, ReadFigure, Target, processor_ms
from benchmarks.service import BenchmarkError, running_service, work_dir

__all__ = ["run"]

LITERALS = 400_000
VOCABULARY = 40_000
WORDS = 8  # of a literal
HITS = 20  # of a search that is cut
ALL_MAX = 10_000  # hits that Fuseki returns without a limit
QUERIES = 4_000  # of one measurement; more than are asked in its time
CONNECTIONS = 4
SECONDS, WARMING_S = 2.5, 15.0
INDEXED_S = 300.0  # in which all literals are, on a busy machine
TARGET = 10.0  # times Fuseki
ASKED, ASKED_ALL = 2_000.0, 400.0  # where Fuseki is not beside: what that was on two quiet cores
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_QUERY, _JSON = "application/sparql-query", "application/sparql-results+json"
_TEXT = """PREFIX text: <http://jena.apache.org/text#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX : <http://books.example/>
SELECT ?s ?score ?year ?author {{
  (?s ?score) text:query (rdfs:label "{words}"{limit}) .
  ?s :year ?year ; :author ?author
}}"""


def run(rounds: int, scale: float, peer: str) -> list[ReadFigure]:
    """Queries per second, with 1, 2 and 3 words. scale shortens the data and each measurement; peer "yes":
    Fuseki beside, where there are Java and Maven.
    """
    with work_dir() as directory:
        books = _Books(directory / "books.nt", max(1_000, int(LITERALS * scale)))
        with _service(directory, books) as target:
            ours = _measure(target, books, rounds, scale)
        beside: dict[str, list[Measured]] = {}
        if peer == "yes" and fuseki.is_installed():
            with _fuseki(directory, books) as target:
                beside = _measure(target, books, rounds, scale)
    return [_figure(work, limit, ours[work], beside.get(work)) for work, _, limit in _works()]


def _figure(
    work: str, limit: int | None, ours: Sequence[Measured], beside: Sequence[Measured] | None
) -> ReadFigure:
    peer = None if beside is None else _rate(beside)
    asked = (ASKED_ALL if limit is None else ASKED) if peer is None else TARGET * peer
    return ReadFigure(work, "queries/s", _rate(ours), "at least", asked, peer, *processor_ms(ours))


def _rate(measured: Sequence[Measured]) -> float:
    return median(each.load.requests_per_second for each in measured)


class _Books:
    """The data: a file, and the words of its literals."""

    def __init__(self, path: Path, count: int) -> None:
        self.path, self.count = path, count
        chance = random.Random(7)
        weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))
        names = [f"word{rank}" for rank in range(VOCABULARY)]
        self._texts = []
        self.frequencies: dict[str, int] = {}
        with path.open("w") as file:
            for number in range(count):
                words = chance.choices(names, cum_weights=weights, k=WORDS)
                self._texts.append(words)
                for word in set(words):
                    self.frequencies[word] = self.frequencies.get(word, 0) + 1
                subject = f"<http://books.example/book/{number}>"
                file.write(f'{subject} <{LABEL}> "{" ".join(words)}" .\n')
                file.write(f'{subject} <http://books.example/year> "{1900 + number % 120}" .\n')
                author = f"<http://books.example/author/{number % 5000}>"
                file.write(f"{subject} <http://books.example/author> {author} .\n")

    def requests(self, words: int, limit: int | None, seed: int) -> list[Request]:
        """Queries with so many words; without a limit, of words that Fuseki returns all hits of."""
        chance = random.Random(seed)
        made: dict[str, None] = {}
        while len(made) < min(QUERIES, self.count // 4):
            text = chance.sample(chance.choice(self._texts), words)
            if limit is not None or sum(self.frequencies[word] for word in text) <= ALL_MAX:
                cut = "" if limit is None else f" {limit}"
                made[_TEXT.format(words=" ".join(text), limit=cut)] = None
        return [Request("", _QUERY, _JSON, text) for text in made]


def _works() -> Iterator[tuple[str, int, int | None]]:
    for words in (1, 2, 3):
        yield (
            f"{words} word{'s' if words > 1 else ''} of {LITERALS:,} literals, the best {HITS} hits",
            words,
            HITS,
        )
    yield "1 word, all its hits (up to 10,000)", 1, None


def _measure(target: Target, books: _Books, rounds: int, scale: float) -> dict[str, list[Measured]]:
    """By the name of each work. The first round only warms: what hits are joined with is read meanwhile."""
    found: dict[str, list[Measured]] = {}
    for number in range(rounds + 1):
        seconds = max(0.3, (SECONDS if number else WARMING_S) * scale)
        for work, words, limit in _works():
            requests = books.requests(words, limit, 100 * number + words + (limit or 0))
            taken = target.load(requests, CONNECTIONS, seconds)
            found.setdefault(work, []).extend([taken] if number else [])
    return found


@contextmanager
def _service(directory: Path, books: _Books) -> Iterator[Target]:
    settings = {"GRAPHDB_TEXT__PREDICATES": f'["{LABEL}"]'}
    with running_service(directory, load=books.path, environment=settings) as service:
        url = f"{service.url}/sparql"
        _check(url, books)
        yield Target(url, psutil.Process())


@contextmanager
def _fuseki(directory: Path, books: _Books) -> Iterator[Target]:
    with fuseki.running_fuseki(directory, indexed={"label": LABEL}) as running:
        with books.path.open("rb") as content:
            headers = {"Content-Type": "application/n-triples"}
            httpx.post(
                f"{running.url}/data?default", content=content, headers=headers, timeout=600, trust_env=False
            ).raise_for_status()
        _check(f"{running.url}/query", books)
        yield Target(f"{running.url}/query", psutil.Process(running.pid))


def _check(url: str, books: _Books) -> None:
    """Wait until the literals are indexed, and see that a word is found as often as it stands there."""
    word, times = min(books.frequencies.items(), key=lambda each: abs(each[1] - 500))
    query = _TEXT.format(words=word, limit="")
    headers = {"Content-Type": _QUERY, "Accept": _JSON}
    until = monotonic() + INDEXED_S
    while True:
        answer = httpx.post(url, content=query, headers=headers, timeout=120, trust_env=False)
        if answer.status_code != 503 or monotonic() > until:
            break
    if answer.status_code != 200:
        raise BenchmarkError(f"{url} answers {answer.status_code}: {answer.text[:200]}")
    rows: Sequence[object] = answer.json()["results"]["bindings"]
    if len(rows) != times:
        raise BenchmarkError(f"{url} finds {len(rows)} of {times} literals with {word!r}")
