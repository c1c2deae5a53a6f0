"""README's map names every room and only existing paths; the conformance table has the tests' counts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import (
    test_protocol,
    test_rdf_canon,
    test_rdf_syntax,
    test_shacl,
    test_sparql_evaluation,
    test_sparql_syntax,
)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONFORMANCE = (ROOT / "docs/conformance.md").read_text()
# a line of the map: paths, the later ones beside the first, then what they are
MAP_LINE = re.compile(
    r"^ {4}((?:graphdb|actors|serve|tests|benchmarks)/\S*(?: \S+)*)(?: {2,}|$)", re.MULTILINE
)


def paths_on_the_map() -> Iterator[str]:
    for line in MAP_LINE.findall(README):
        first, *others = line.split()
        yield first
        for other in others:
            yield str(Path(first).parent / other)


def rooms() -> Iterator[str]:
    """The packages of the house, as the map writes them; those within a room belong to it."""
    for floor in ("graphdb", "actors", "serve", "tests"):
        for package in sorted((ROOT / floor).glob("*/__init__.py")):
            yield package.parent.relative_to(ROOT).as_posix()


def conformance() -> Iterator[tuple[str, int, int, int]]:
    """Suite; its cases; how many fit but for form; how many are listed with a reason."""
    syntax = sum(count for kind, count in test_sparql_syntax.COUNTS.items() if "Syntax" in kind)
    yield "SPARQL 1.0, 1.1, 1.2: syntax", syntax, 0, 0
    for (suite, kind), counts in test_sparql_evaluation.COUNTS.items():
        plural = {"query": "queries", "update": "updates"}[kind]
        yield f"SPARQL 1.{suite[-1]}: {plural}", *counts
    listed = test_protocol.EXCEPTIONS
    for folder, count in test_protocol.MANIFESTS.items():
        of_graph_store = folder == "graph-store-protocol"
        name = folder.replace("-", " ")
        failures = sum(case.startswith(("put", "post", "get")) == of_graph_store for case in listed)
        created = len(test_protocol.CREATED_AS_200) if of_graph_store else 0
        yield f"SPARQL 1.1: {name}", count, created, 0 if folder == "service-description" else failures
    yield (
        "RDF 1.1 and 1.2: syntaxes",
        sum(test_rdf_syntax.MANIFESTS.values()),
        0,
        len(test_rdf_syntax.EXCEPTIONS),
    )
    yield "RDF canonicalization", test_rdf_canon.COUNT, 0, 0
    listed_of_shacl = sum(engine == "compiled" for engine, _ in test_shacl.EXCEPTIONS)
    yield "SHACL: core, SPARQL", sum(test_shacl.COUNTS.values()), 0, listed_of_shacl


@pytest.mark.parametrize("path", list(paths_on_the_map()))
def test_the_map_names_what_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("room", list(rooms()))
def test_every_room_is_on_the_map(room: str) -> None:
    assert room in {path.rstrip("/") for path in paths_on_the_map()}


@pytest.mark.parametrize(("suite", "cases", "in_form", "listed"), list(conformance()))
def test_the_table_of_conformance_has_the_counts_of_the_tests(
    suite: str, cases: int, in_form: int, listed: int
) -> None:
    row = f"| {suite} | {cases:,} | {cases - in_form - listed:,} | {in_form} | {listed} |"
    assert row in CONFORMANCE.splitlines()
