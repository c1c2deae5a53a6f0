"""`validate`: where shapes come from, how the report is printed, and what the exit code says."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from tests.unit.cli.conftest import Run

DATA = """
PREFIX x: <http://x/>
x:a a x:P ; x:name "Ada" . x:b a x:P .
GRAPH x:g { x:c a x:P }
"""
SHAPES = """@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix x: <http://x/> .
x:Person sh:targetClass x:P ; sh:property x:Name .
x:Name sh:path x:name ; sh:minCount 1 ; sh:message "a name is missing" .
"""


@pytest.fixture
def shapes(graphdb: Run, endpoint: str, tmp_path: Path) -> Path:
    """A file; the service holds data, and the same shapes in a graph."""
    data, path = tmp_path / "data.trig", tmp_path / "shapes.ttl"
    data.write_text(DATA)
    path.write_text(SHAPES)
    assert graphdb("load", data).exit_code == 0
    assert graphdb("load", path, "--graph", "http://x/shapes").exit_code == 0
    return path


def test_what_does_not_conform(graphdb: Run, shapes: Path) -> None:
    done = graphdb("validate", shapes)
    assert (done.exit_code, done.err) == (1, "")
    lines = [[cell.strip() for cell in line.replace("┃", "│").split("│")] for line in done.out.splitlines()]
    assert lines[0] == ["focus node", "path", "severity", "message", "shape"]
    assert lines[2] == ["x:b", "x:name", "sh:Violation", "a name is missing", "x:Name"]
    assert lines[3][0].startswith("does not conform: 1 violation (2 focus nodes, ")


def test_what_conforms(graphdb: Run, shapes: Path) -> None:
    done = graphdb("validate", shapes, "--graph", "http://x/shapes")
    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith("conforms (0 focus nodes, ")


@pytest.mark.parametrize(("graph", "count"), [("default", 1), ("union", 2), ("http://x/g", 1)])
def test_graphs(graphdb: Run, shapes: Path, graph: str, count: int) -> None:
    for given in ([shapes], ["--shapes-graph", "http://x/shapes"]):
        done = graphdb("validate", *given, "--graph", graph, "--format", "json")
        assert done.exit_code == 1
        assert json.loads(done.out)["stats"]["violations"] == count


@pytest.mark.parametrize(
    ("name", "rdf_format"),
    [
        ("turtle", RdfFormat.TURTLE),
        ("ntriples", RdfFormat.N_TRIPLES),
        ("rdfxml", RdfFormat.RDF_XML),
        ("jsonld", RdfFormat.JSON_LD),
    ],
)
def test_rdf(graphdb: Run, shapes: Path, name: str, rdf_format: RdfFormat) -> None:
    done = graphdb("validate", shapes, "--format", name)
    assert done.exit_code == 1
    assert len(list(parse(done.out.encode(), rdf_format))) > 5
    assert graphdb("validate", shapes, "--format", name, "--graph", "http://x/shapes").exit_code == 0


def test_compressed_and_standard_input(
    graphdb: Run, shapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "shapes.ttl.gz"
    packed.write_bytes(gzip.compress(SHAPES.encode()))
    assert graphdb("validate", packed).exit_code == 1
    with shapes.open("rb") as opened:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(opened))
        assert "x:Name" in graphdb("validate", "-").out


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ((), 2, "give a file with shapes, or --shapes-graph"),
        (("{shapes}", "--shapes-graph", "http://x/shapes"), 2, "give a file with shapes, or --shapes-graph"),
        (("nothing.ttl",), 1, "nothing.ttl: no such file"),
        (("{shapes}", "--graph", "http://x/none"), 1, "404: there is no graph <http://x/none>"),
        (("--shapes-graph", "http://x/none"), 1, "404: there is no graph <http://x/none>"),
        (("{malformed}",), 1, "400: malformed RDF at line 1"),
        (("{meaningless}",), 1, "400: malformed shapes: sh:property of <http://x/Person>"),
        (("{text}",), 2, "no RDF syntax has this ending"),
    ],
)
def test_failures(
    graphdb: Run, shapes: Path, tmp_path: Path, arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    files = {
        "malformed": ("malformed.ttl", "<urn:a> <urn:b"),
        "meaningless": ("meaningless.ttl", SHAPES.replace("sh:property x:Name", "sh:property 5")),
        "text": ("shapes.txt", SHAPES),
    }
    for name, content in files.values():
        (tmp_path / name).write_text(content)
    paths = {key: tmp_path / name for key, (name, _) in files.items()} | {"shapes": shapes}
    done = graphdb("validate", *(argument.format(**paths) for argument in arguments))
    assert (done.exit_code, message in done.err) == (exit_code, True), done.err
    assert done.err.count("\n") == 1
