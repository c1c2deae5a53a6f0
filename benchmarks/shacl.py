"""SHACL over HTTP against pySHACL on the same data, and what enforced shapes add to a small update."""

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from time import perf_counter
from zlib import crc32

import httpx

from benchmarks.generator import Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import PROJECT, BenchmarkError, RunningService, running_service, work_dir

__all__ = ["bsbm_triples", "run"]

SHAPES = Path(__file__).parent / "shapes"
SHAPES_GRAPH = "http://shapes.example/enforced"
SECONDS = 3.0
ADDED_MS_MAX = 10.0
INSTANCES = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/"
# An offer as BSBM has them, of its first product and vendor.
OFFER = """PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX dc: <http://purl.org/dc/elements/1.1/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
INSERT DATA { <http://offers.example/%d> a bsbm:Offer ;
  bsbm:product <INSTANCESdataFromProducer1/Product1> ; bsbm:vendor <INSTANCESdataFromVendor1/Vendor1> ;
  bsbm:price "1470.06"^^bsbm:USD ; bsbm:deliveryDays 5 ;
  bsbm:validFrom "2008-05-20T00:00:00"^^xsd:dateTime ; bsbm:validTo "2008-08-26T00:00:00"^^xsd:dateTime ;
  dc:publisher <INSTANCESdataFromVendor1/Vendor1> ; dc:date "2008-06-19"^^xsd:date }""".replace(
    "INSTANCES", INSTANCES
)
UPDATE = Request("/update", "application/sparql-update", "application/json", OFFER)


def run(rounds: int, scale: float) -> list[Row]:
    """Validations a minute, pySHACL's once; milliseconds of one client's updates. scale shortens the data."""
    with work_dir() as directory:
        data = bsbm_triples(directory, scale)
        floor, count = _pyshacl(data)
        with _service(directory / "plain", data) as plain:

            def ours() -> float:
                return 60 / _validate(plain, count)

            (our_speed,) = interleave(rounds, ours)
            with _service(directory / "enforcing", data, enforce=True) as enforcing:
                without, with_shapes = interleave(
                    rounds, lambda: _update_ms(plain, scale), lambda: _update_ms(enforcing, scale)
                )
    return [
        Row("20 shapes over BSBM, against pySHACL", "1/min", 60 / floor, our_speed, "at least", 20),
        Row("small update, 5 shapes enforced against none", "ms", without, with_shapes),
        Row("the same, added, against 10 ms", "ms", ADDED_MS_MAX, with_shapes - without, "at most", 1),
    ]


def bsbm_triples(directory: Path, scale: float) -> Path:
    """The data as N-Triples, or that of a part of the products. Raises BenchmarkError where there is none."""
    shared = Path(os.environ.get("GRAPHDB_SHARED", PROJECT.parent / "shared"))
    source = shared / "data" / "bsbm375k.nt.gz"
    if not source.exists():
        raise BenchmarkError("the BSBM data is not there: ../shared/data/bsbm375k.nt.gz (or $GRAPHDB_SHARED)")
    path = directory / "bsbm.nt"
    with gzip.open(source) as lines, path.open("wb") as target:
        for subject, about_one in groupby(lines, lambda line: line.split(b" ", 1)[0]):
            about = [*about_one]
            named = _FEATURE.findall(subject) or [each for line in about for each in _PRODUCT.findall(line)]
            if all(_is_kept(each, scale) for each in named):
                target.writelines(about)
    return path


def _is_kept(name: bytes, scale: float) -> bool:
    """Whether a feature is part of the data, or a product with its offers and reviews; OFFER's always is."""
    return name == b"dataFromProducer1/Product1>" or crc32(name) < scale * 2**32


def _pyshacl(data: Path) -> tuple[float, int]:
    """Seconds that it takes to validate a graph which it has in memory, and how many results it has."""
    import pyshacl
    import rdflib

    graph, shapes = rdflib.Graph(), rdflib.Graph()
    graph.parse(data, format="nt")
    shapes.parse(SHAPES / "bsbm.ttl")
    started = perf_counter()
    _, report, _ = pyshacl.validate(graph, shacl_graph=shapes, inplace=True)
    seconds = perf_counter() - started
    assert isinstance(report, rdflib.Graph)
    return seconds, len(set(report.objects(None, rdflib.SH.result)))


@contextmanager
def _service(directory: Path, data: Path, *, enforce: bool = False) -> Iterator[RunningService]:
    """A service with the data; where it enforces shapes, with those that the data satisfy."""
    directory.mkdir()
    environment = {"GRAPHDB_SERVER__QUERY_TIMEOUT_SECONDS": "600"}
    if enforce:
        environment["GRAPHDB_SHACL__ENFORCE_GRAPH"] = SHAPES_GRAPH
    with running_service(directory, load=data, environment=environment) as service:
        if enforce:
            _post(service, "/data", {"graph": SHAPES_GRAPH}, (SHAPES / "bsbm-enforced.ttl").read_bytes())
        yield service


def _validate(service: RunningService, count: int) -> float:
    """Seconds of a validation. Raises BenchmarkError unless it finds as much as pySHACL."""
    started = perf_counter()
    report = _post(service, "/shacl/validate", {}, (SHAPES / "bsbm.ttl").read_bytes())
    seconds = perf_counter() - started
    if len(report["results"]) != count:
        raise BenchmarkError(f"pySHACL has {count} results, the service {len(report['results'])}")
    return seconds


def _post(
    service: RunningService, path: str, parameters: dict[str, str], turtle: bytes
) -> dict[str, list[object]]:
    answer = httpx.post(
        service.url + path,
        params=parameters,
        content=turtle,
        headers={"Content-Type": "text/turtle"},
        timeout=None,
        trust_env=False,
    )
    if not answer.is_success:
        raise BenchmarkError(f"{path} answered {answer.status_code}: {answer.text[:500]}")
    record: dict[str, list[object]] = answer.json()
    return record


def _update_ms(service: RunningService, scale: float) -> float:
    """The median of one client's latencies; each time with offers of its own."""
    load = generate(
        service.host,
        service.port,
        [UPDATE],
        connections=1,
        seconds=max(0.5, SECONDS * scale),
        first_number=next(_numbers),
    )
    return load.latency_s * 1000


_FEATURE = re.compile(rb"ProductFeature\d+>")
_PRODUCT = re.compile(rb"dataFromProducer\d+/Product\d+>")
_numbers = iter(range(0, 10**9, 1_000_000))
