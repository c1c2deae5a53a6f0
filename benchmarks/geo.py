"""Airports within a polygon over HTTP, with the spatial index, against the same question without it.

Without it is the same service, asked in words that no index understands: `... || false`. Kept answers do not
count, on either side. Also the ten airports that are nearest to a place.
"""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from time import perf_counter

import httpx

from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, flight_triples, running_service, work_dir

__all__ = ["run"]

TRIPLES = 648_564
POLYGONS = 40
CORNERS = 12
RADIUS_DEGREES = 1.5  # of a polygon; that of a small country
NEAREST = 10
TARGET = 20.0
SECONDS = 2.0
PREFIXES = """PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/>
"""


def run(rounds: int, scale: float) -> list[Row]:
    """Queries per second, one at a time. scale shortens the data and each measurement."""
    with work_dir() as directory:
        triples = flight_triples(directory, max(20_000, int(TRIPLES * scale)))
        with running_service(directory, load=triples) as service, _client(service) as client:
            places = _places(client)
            areas = [_polygon(*place) for place in places]
            within = _Questions(client, [_within(area, "") for area in areas])
            within_all = _Questions(client, [_within(area, "|| false") for area in areas])
            nearest = _Questions(client, [_nearest(*place, "") for place in places])
            nearest_all = _Questions(client, [_nearest(*place, "+ 0") for place in places])
            _wait_for_index(client, areas[0])
            _check_same(within, within_all)
            _check_same(nearest, nearest_all)
            seconds = max(0.2, SECONDS * scale)
            all_, found, all_ordered, first = interleave(
                rounds,
                *(_rate_of(each, seconds) for each in (within_all, within, nearest_all, nearest)),
            )
    return [
        Row("airports within a polygon, by the index", "queries/s", all_, found, "at least", TARGET),
        Row(f"the {NEAREST} nearest airports, by the index", "queries/s", all_ordered, first),
    ]


class _Questions:
    """Queries that are asked in turn, over and over."""

    def __init__(self, client: httpx.Client, texts: list[str]) -> None:
        self._client, self.texts = client, texts
        self._next = cycle(texts)

    def answer(self, text: str) -> list[str]:
        """The rows, sorted."""
        answer = self._client.get("/sparql", params={"query": text}).raise_for_status()
        return sorted(answer.text.splitlines()[1:])

    def ask_next(self) -> None:
        self.answer(next(self._next))


@contextmanager
def _client(service: RunningService) -> Iterator[httpx.Client]:
    headers = {"Accept": "text/csv", "Cache-Control": "no-store"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def _rate_of(questions: _Questions, seconds: float) -> Callable[[], float]:
    def rate() -> float:
        began, count = perf_counter(), 0
        while not count or perf_counter() - began < seconds:
            questions.ask_next()
            count += 1
        return count / (perf_counter() - began)

    return rate


def _places(client: httpx.Client) -> list[tuple[float, float]]:
    """Longitude and latitude of some airports, the same in every run."""
    text = PREFIXES + "SELECT (STR(?w) AS ?wkt) { ?g geo:asWKT ?w } ORDER BY ?wkt"
    rows = client.get("/sparql", params={"query": text}).raise_for_status().text.splitlines()[1:]
    if len(rows) < POLYGONS:
        raise BenchmarkError("the flight data has too few airports with a place")
    chosen = random.Random(1).sample(rows, POLYGONS)
    points = (row.strip('"').removeprefix("POINT(").removesuffix(")").split() for row in chosen)
    return [(float(longitude), float(latitude)) for longitude, latitude in points]


def _polygon(longitude: float, latitude: float) -> str:
    ring = []
    for corner in range(CORNERS):
        angle = 2 * math.pi * corner / CORNERS
        x, y = longitude + RADIUS_DEGREES * math.cos(angle), latitude + RADIUS_DEGREES * math.sin(angle)
        ring.append(f"{x:.6f} {y:.6f}")
    return f'"POLYGON(({", ".join([*ring, ring[0]])}))"^^geo:wktLiteral'


def _within(area: str, disguise: str) -> str:
    return f"{PREFIXES}SELECT ?g {{ ?g geo:asWKT ?w FILTER(geof:sfWithin(?w, {area}) {disguise}) }}"


def _nearest(longitude: float, latitude: float, disguise: str) -> str:
    place = f'"POINT({longitude} {latitude})"^^geo:wktLiteral'
    distance = f"geof:distance(?w, {place}, uom:metre) {disguise}"
    return f"{PREFIXES}SELECT ?g {{ ?g geo:asWKT ?w }} ORDER BY ({distance}) LIMIT {NEAREST}"


def _wait_for_index(client: httpx.Client, area: str) -> None:
    """The index is made behind the start of the service."""
    for _ in range(600):
        parameters = {"query": _within(area, ""), "explain": "true"}
        [lookup] = client.get("/sparql", params=parameters).raise_for_status().json()["lookups"]
        if lookup["values"] is not None:
            return
    raise BenchmarkError(f"the index is not used: {lookup['reason']}")


def _check_same(one: _Questions, other: _Questions) -> None:
    """A ratio between different answers would mean nothing."""
    for first, second in zip(one.texts[:5], other.texts[:5], strict=True):
        if one.answer(first) != other.answer(second):
            raise BenchmarkError("the answers with the index and without differ")
