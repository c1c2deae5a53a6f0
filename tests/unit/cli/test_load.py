"""`graphdb load` into a running service."""

import gzip
import io
import os
from pathlib import Path

import pytest
from backports import zstd
from pyoxigraph import RdfFormat, parse, serialize

from serve.cli import online_load as upload
from tests.support.memory_backend import MemoryBackend
from tests.unit.cli.conftest import Run

TURTLE = "<urn:a> <urn:p> <urn:b> , 1 ."
TRIPLES = {f"<urn:s{n}> <urn:p> <urn:o> ." for n in range(200)}


def stored(backend: MemoryBackend) -> set[str]:
    return {f"{quad} ." for quad in backend.dataset_quads()}


def compress(data: bytes, how: str) -> bytes:
    return {"": data, ".gz": gzip.compress(data), ".zst": zstd.compress(data)}[how]


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize(
    ("ending", "document"),
    [
        ("ttl", TURTLE),
        (
            "nt",
            "<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> 1 .\n".replace(
                " 1 ", ' "1"^^<http://www.w3.org/2001/XMLSchema#integer> '
            ),
        ),
        ("trig", f"{{ {TURTLE} }}"),
        ("jsonld", '{"@id": "urn:a", "urn:p": [{"@id": "urn:b"}, 1]}'),
        (
            "rdf",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="urn:">'
            '<rdf:Description rdf:about="urn:a"><p rdf:resource="urn:b"/>'
            '<p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">1</p></rdf:Description></rdf:RDF>',
        ),
    ],
)
def test_every_syntax_and_compression(
    graphdb: Run,
    endpoint: str,
    backend: MemoryBackend,
    tmp_path: Path,
    ending: str,
    document: str,
    compression: str,
) -> None:
    path = tmp_path / f"data.{ending}{compression}"
    path.write_bytes(compress(document.encode(), compression))
    done = graphdb("load", path)
    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith("2 quads added from 1 file in ")
    assert stored(backend) == {
        "<urn:a> <urn:p> <urn:b> .",
        '<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    }


def test_folders_are_searched(graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:o> .")
    (tmp_path / "deep" / "deeper" / "b.nq.gz").write_bytes(
        gzip.compress(b"<urn:b> <urn:p> <urn:o> <urn:g> .")
    )
    (tmp_path / "deep" / "notes.md").write_text("not RDF")
    assert graphdb("load", tmp_path).exit_code == 0
    assert stored(backend) == {"<urn:a> <urn:p> <urn:o> .", "<urn:b> <urn:p> <urn:o> <urn:g> ."}


def test_graph(graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path) -> None:
    path = tmp_path / "data.ttl"
    path.write_text("<a> <p> <b> .")
    assert graphdb("load", path, "--graph", "http://g.example/x/").exit_code == 0
    assert stored(backend) == {
        "<http://g.example/x/a> <http://g.example/x/p> <http://g.example/x/b> <http://g.example/x/> ."
    }


def test_standard_input(
    graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "input"
    path.write_bytes(gzip.compress(TURTLE.encode()))
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert graphdb("load", "-", "--format", "ttl").exit_code == 0
    assert len(stored(backend)) == 2


def test_large_lines_are_split(
    graphdb: Run, small_endpoint: str, backend: MemoryBackend, tmp_path: Path
) -> None:
    """200 statements of 26 bytes against a limit of 2,000: the pieces are halved until they fit."""
    path = tmp_path / "data.nt"
    path.write_text("\n".join(sorted(TRIPLES)))
    done = graphdb("load", path)
    assert done.exit_code == 0, done.err
    assert done.out.startswith("200 quads added")
    assert stored(backend) == TRIPLES
    assert backend.snapshot_index() > 3


@pytest.mark.parametrize("syntax", [RdfFormat.TURTLE, RdfFormat.RDF_XML, RdfFormat.JSON_LD, RdfFormat.TRIG])
def test_large_documents_of_every_syntax_are_split(
    graphdb: Run, small_endpoint: str, backend: MemoryBackend, tmp_path: Path, syntax: RdfFormat
) -> None:
    triples = [quad.triple for quad in parse("\n".join(TRIPLES), RdfFormat.N_TRIPLES)]
    path = tmp_path / f"data.{syntax.file_extension}"
    path.write_bytes(serialize(triples, format=syntax) or b"")
    done = graphdb("load", path)
    assert done.exit_code == 0, done.err
    assert stored(backend) == TRIPLES


def test_blank_nodes_survive_splitting(
    graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One node, named at both ends of a document that takes many requests, stays one node."""
    monkeypatch.setattr(upload, "REQUEST_BYTES", 500)
    path = tmp_path / "data.nt"
    path.write_text("_:x <urn:p> <urn:first> .\n" + "\n".join(TRIPLES) + "\n_:x <urn:p> <urn:last> .")
    assert graphdb("load", path).exit_code == 0
    assert backend.snapshot_index() > 5
    subjects = {
        quad.subject for quad in backend.dataset_quads() if str(quad.object) in ("<urn:first>", "<urn:last>")
    }
    assert len(subjects) == 1


@pytest.mark.parametrize("request_bytes", [upload.REQUEST_BYTES, 500])
def test_relative_iris_are_the_same_however_a_document_is_sent(
    graphdb: Run,
    endpoint: str,
    backend: MemoryBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_bytes: int,
) -> None:
    monkeypatch.setattr(upload, "REQUEST_BYTES", request_bytes)
    path = tmp_path / "data.ttl"
    path.write_text("".join(f"<#s{n}> <p> <> .\n" for n in range(200)))
    assert graphdb("load", path).exit_code == 0
    quads = {str(quad) for quad in backend.dataset_quads()}
    assert quads == {f"<{endpoint}/data#s{n}> <{endpoint}/p> <{endpoint}/data>" for n in range(200)}


def test_too_many_blank_nodes_to_split(graphdb: Run, small_endpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    path.write_text("\n".join(f"_:x{n} <urn:p> <urn:o> ." for n in range(200)))
    done = graphdb("load", path)
    assert done.exit_code == 1
    assert done.err.count("\n") == 1
    assert "statements with blank nodes are 4,889 bytes" in done.err


@pytest.mark.parametrize("ending", ["ttl", "nt"])
def test_malformed_document_changes_nothing(
    graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"data.{ending}"
    path.write_text("<urn:a> <urn:p> <urn:o> .\n<urn:a> <urn:p> .\n")
    done = graphdb("load", path)
    assert done.exit_code == 1
    assert done.err.startswith(f"graphdb: {path}: the service answered 400: malformed RDF at line 2, column ")
    assert done.err.count("\n") == 1
    assert stored(backend) == set()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(gzip.compress(b"x" * 1000)[:-9], "damaged compressed file", id="gzip cut short"),
        pytest.param(zstd.compress(os.urandom(1000))[:-9], "damaged compressed file", id="zstd cut short"),
        pytest.param(b"\x1f\x8bno gzip at all", "damaged compressed file", id="not gzip after all"),
        pytest.param(b"\x28\xb5\x2f\xfdno zstd", "damaged compressed file", id="not zstd after all"),
    ],
)
def test_damaged_file_changes_nothing(
    graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path, data: bytes, said: str
) -> None:
    path = tmp_path / "data.nt"
    path.write_bytes(data)
    done = graphdb("load", path)
    assert done.exit_code == 1
    assert said in done.err
    assert done.err.count("\n") == 1
    assert stored(backend) == set()


def test_several_zstd_frames_are_one_document(
    graphdb: Run, endpoint: str, backend: MemoryBackend, tmp_path: Path
) -> None:
    path = tmp_path / "data.nt.zst"
    path.write_bytes(b"".join(zstd.compress(f"{line}\n".encode()) for line in sorted(TRIPLES)))
    assert graphdb("load", path).exit_code == 0
    assert stored(backend) == TRIPLES


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("absent.ttl",), 1, "absent.ttl: no such file or folder"),
        (("here.xyz",), 2, "no RDF syntax has this ending"),
        (("-",), 2, "standard input needs --format"),
        (("here.xyz", "--format", "docx"), 2, "--format docx: give a media type or one of"),
        (("empty",), 1, "no RDF files in empty"),
        ((), 2, "Missing argument"),
    ],
)
def test_wrong_calls(
    graphdb: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    exit_code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.xyz").touch()
    (tmp_path / "empty").mkdir()
    done = graphdb("load", *arguments)
    assert (done.exit_code, done.out) == (exit_code, "")
    assert said in done.err
    assert done.err.count("\n") == 1
