"""What access control by triple costs: BSBM with every tenth triple annotated, asked by a reader who may see
half of those, against the same queries of the same reader over the same data without annotations.

Kept answers do not count, on either side.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from zlib import crc32

import httpx

from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, running_service, work_dir
from benchmarks.shacl import bsbm_triples
from graphdb.access.api_keys import key_digest

__all__ = ["run"]

SECONDS = 2.0
RATIO_MAX = 2.0
PRODUCTS = 50
SIDS = ("S-1-5-21-1", "S-1-5-21-2")  # the reader has the first
REIFIES = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
PREFIXES = """PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
LOOKUP = "SELECT ?p ?o { %s ?p ?o }"
JOIN = """SELECT ?label ?other { %s bsbm:productFeature ?feature . ?other bsbm:productFeature ?feature ;
  rdfs:label ?label . ?offer bsbm:product ?other ; bsbm:deliveryDays ?days FILTER(?days < 4) }"""
COUNT = """SELECT ?feature (COUNT(?product) AS ?products) { ?product bsbm:productFeature ?feature }
GROUP BY ?feature ORDER BY DESC(?products) ?feature LIMIT 10"""
SOME_PRODUCTS = f"SELECT DISTINCT ?product {{ ?o bsbm:product ?product }} ORDER BY ?product LIMIT {PRODUCTS}"
WRITE = (
    "INSERT DATA { <http://x.example/%d> <http://x.example/p> %d "
    f"{{| <urn:graphdb:acl#allowedSid> '{SIDS[1]}' |}} }}"
)


def run(rounds: int, scale: float) -> list[Row]:
    """Milliseconds of one query after the other. scale shortens the data and each measurement."""
    with work_dir() as directory:
        data = bsbm_triples(directory, scale)
        annotated = _annotated(data, directory / "annotated.nt")
        with (
            _service(directory / "plain", data) as plain,
            _service(directory / "annotated", annotated) as hiding,
            _client(plain, "reader") as without,
            _client(plain, "admin") as admin,
            _client(hiding, "reader") as restricted,
            _client(hiding, "admin") as writer,
        ):
            products = _rows(without, SOME_PRODUCTS)
            plain_s, first_s = _first(without), _first(restricted)
            _check_hidden(without, restricted)
            seconds = max(0.2, SECONDS * scale)
            rows = []
            for name, text in (("lookup", LOOKUP), ("join", JOIN), ("count", COUNT)):
                floor, ours, everything = interleave(
                    rounds,
                    *(_time_of(each, text, products, seconds) for each in (without, restricted, admin)),
                )
                rows.append(Row(f"{name}, a tenth annotated", "ms", floor, ours, "at most", RATIO_MAX))
                rows.append(
                    Row(f"{name}, nothing annotated, a reader against an admin", "ms", everything, floor)
                )
            own, others = interleave(
                rounds, lambda: _after_write(writer, writer), lambda: _after_write(writer, restricted)
            )
    return [
        *rows,
        Row("after a write, against an admin", "ms", own, others),
        Row("first query, for which the view is made", "s", plain_s, first_s),
    ]


def _annotated(data: Path, target: Path) -> Path:
    """Every tenth triple is for the holders of one of two SIDs."""
    with data.open("rb") as lines, target.open("wb") as out:
        for number, line in enumerate(lines):
            out.write(line)
            chance = crc32(line)
            if chance % 10 == 0:
                triple = line.rstrip()[:-1].rstrip()
                reifier = b"<http://annotations.example/%d>" % number
                out.write(b"%s %s <<( %s )>> .\n" % (reifier, REIFIES, triple))
                sid = SIDS[chance // 10 % 2].encode()
                out.write(b'%s <urn:graphdb:acl#allowedSid> "%s" .\n' % (reifier, sid))
    return target


@contextmanager
def _service(directory: Path, data: Path) -> Iterator[RunningService]:
    directory.mkdir()
    keys = [
        {"name": "admin", "key_sha256": key_digest("admin"), "roles": ["admin"]},
        {"name": "reader", "key_sha256": key_digest("reader"), "roles": ["reader"], "sids": [SIDS[0]]},
    ]
    environment = {
        "GRAPHDB_SERVER__PUBLIC_PROBES": "true",
        "GRAPHDB_AUTHENTICATION__ENABLED": "true",
        "GRAPHDB_AUTHENTICATION__API_KEYS": json.dumps(keys),
    }
    with running_service(directory, load=data, environment=environment) as service:
        yield service


@contextmanager
def _client(service: RunningService, key: str) -> Iterator[httpx.Client]:
    headers = {"Accept": "text/csv", "Cache-Control": "no-store", "X-API-Key": key}
    with httpx.Client(base_url=service.url, headers=headers, timeout=600, trust_env=False) as client:
        yield client


def _rows(client: httpx.Client, text: str) -> list[str]:
    answer = client.get("/sparql", params={"query": PREFIXES + text}).raise_for_status()
    return answer.text.splitlines()[1:]


def _first(client: httpx.Client) -> float:
    """Seconds of the first cheap query."""
    began = perf_counter()
    _rows(client, "SELECT * { <http://x.example/none> ?p ?o }")
    return perf_counter() - began


def _check_hidden(without: httpx.Client, restricted: httpx.Client) -> None:
    """Half of the annotated tenth, and of course the annotations."""
    count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    every, seen = (int(_rows(client, count)[0]) for client in (without, restricted))
    if not 0.93 * every < seen < 0.97 * every:
        raise BenchmarkError(f"of {every} triples {seen} are seen")


def _time_of(client: httpx.Client, text: str, products: list[str], seconds: float) -> Callable[[], float]:
    def milliseconds() -> float:
        began, count = perf_counter(), 0
        while not count or perf_counter() - began < seconds:
            product = f"<{products[count % len(products)]}>"
            _rows(client, text % product if "%s" in text else text)
            count += 1
        return 1000 * (perf_counter() - began) / count

    return milliseconds


def _after_write(writer: httpx.Client, client: httpx.Client) -> float:
    """Milliseconds of a cheap query that comes after a write."""
    spent = 0.0
    for number in range(20):
        text = WRITE % (perf_counter() * 1e6, number)
        headers = {"Content-Type": "application/sparql-update"}
        writer.post("/update", content=text, headers=headers).raise_for_status()
        began = perf_counter()
        _rows(client, "SELECT * { <http://x.example/none> ?p ?o }")
        spent += perf_counter() - began
    return 1000 * spent / 20
