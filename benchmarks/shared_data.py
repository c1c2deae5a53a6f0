"""The data sets of ../shared/data, once or several times, in one file of N-Triples."""

import gzip
import os
import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.service import PROJECT, BenchmarkError

__all__ = ["DATA_SETS", "write_copies"]

DATA_SETS = ("olympics-medals", "openflights", "bsbm375k", "lubm1")
# What is another one in each copy: athletes and medals, products, offers and reviews, a university, airports
# and routes. Teams, types, features, countries and the vocabulary are shared by all.
_OWN = re.compile(
    rb"/olympics/(?:instance|athlete)/[^>]+|/instances/dataFrom[A-Za-z]+\d+|University0(?=\.edu)"
    rb"|openflights\.example/(?:airport|airline|route)/\d+"
)


def write_copies(path: Path, copies: Mapping[str, int], scale: float = 1.0) -> None:
    """Each of the data sets, or this part of its lines, so many times; names of a copy's own differ.

    Raises BenchmarkError where the data is not there.
    """
    shared = Path(os.environ.get("GRAPHDB_SHARED", PROJECT.parent / "shared")) / "data"
    with path.open("wb") as together:
        for name, count in copies.items():
            source = shared / f"{name}.nt.gz"
            if not source.exists():
                raise BenchmarkError(
                    f"the data is not there: ../shared/data/{source.name} (or $GRAPHDB_SHARED)"
                )
            lines = gzip.decompress(source.read_bytes()).splitlines(keepends=True)
            original = b"".join(lines[: int(len(lines) * scale)])
            for copy in range(count):
                together.write(_OWN.sub(rb"\g<0>" + b"x%d" % copy, original) if copy else original)
