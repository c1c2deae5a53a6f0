"""Pieces of documents, as the tasks of a distributed load parse them; Ray is not needed for it."""

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from backports import zstd
from pyoxigraph import RdfFormat, parse

from actors.loading import parsing
from actors.loading.documents import Document, find_objects
from actors.loading.parsing import Piece, cut, parse_piece
from graphdb.errors import InvalidParameter, RdfSyntaxError, UnavailableError
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax

SALT = bytes(range(16))
LINES = b"".join(
    b'_:n%d <urn:p> "%s" .\r\n# a comment\n_:n%d <urn:next> _:n%d .\n' % (n, b"x" * n, n, (n + 7) % 20)
    for n in range(20)
)


def whole(path: Path, graph: str | None = None, salt: bytes = SALT) -> Piece:
    return Piece(Document(str(path), RdfSyntax.from_path(path)), 0, None, salt, graph, "http://base.example/")


def pieces(piece: Piece) -> list[Piece]:
    return [*cut(piece, *piece.document.measure())]


def lines_of(piece: Piece) -> bytes:
    parts = [part for one in pieces(piece) for part in parse_piece(one)]
    for part in parts:
        assert part.count == part.lines.count(b"\n")
    assert sum(part.read_bytes for part in parts) == piece.document.measure()[0]
    return b"".join(part.lines for part in parts)


def canonical(document: bytes, form: RdfFormat = RdfFormat.N_QUADS) -> list[str]:
    return list(canonical_lines(set(parse(document, form, base_iri="http://base.example/"))))


@pytest.fixture(params=[1, 7, 40, 1000, 1 << 20])
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(parsing, "PIECE_BYTES", request.param)
    return int(request.param)


def test_pieces_together_are_the_document(piece_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    path.write_bytes(LINES)
    assert len(pieces(whole(path))) == -(-len(LINES) // piece_bytes)
    assert canonical(lines_of(whole(path))) == canonical(LINES)


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
def test_a_compressed_document_is_one_piece(
    compress: Callable[[bytes], bytes], piece_bytes: int, tmp_path: Path
) -> None:
    path = tmp_path / "data.nt.gz"
    path.write_bytes(compress(LINES))
    assert len(pieces(whole(path))) == 1
    assert canonical(lines_of(whole(path))) == canonical(LINES)


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.ttl", "[] <p> [ <q> 01 ] . _:a <p> _:a .", RdfFormat.TURTLE),
        ("a.jsonld", '[{"http://p.example/": {"http://q.example/": 1}}]', RdfFormat.JSON_LD),
    ],
)
def test_other_syntaxes_are_one_piece(name: str, text: str, form: RdfFormat, tmp_path: Path) -> None:
    """They give the same each time, though their parsers make up labels of blank nodes."""
    path = tmp_path / name
    path.write_text(text)
    assert len(pieces(whole(path))) == 1
    first, again = lines_of(whole(path)), lines_of(whole(path))
    assert sorted(first.splitlines()) == sorted(again.splitlines())
    assert canonical(first) == canonical(text.encode().replace(b"01", b"1"), form)


def test_blank_nodes_of_two_documents_are_others(tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    path.write_bytes(LINES)
    labels = [set(re.findall(rb"_:(\w+)", lines_of(whole(path, salt=salt)))) for salt in (SALT, SALT[::-1])]
    assert [len(found) for found in labels] == [20, 20]
    assert labels[0].isdisjoint(labels[1])


def test_a_graph_for_all(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:s> <urn:p> <urn:o> .\n")
    assert lines_of(whole(tmp_path / "a.nt", "urn:g")) == b"<urn:s> <urn:p> <urn:o> <urn:g> .\n"
    (tmp_path / "a.nq").write_text("<urn:s> <urn:p> <urn:o> <urn:h> .\n")
    with pytest.raises(InvalidParameter, match="names graphs itself"):
        lines_of(whole(tmp_path / "a.nq", "urn:g"))


@pytest.mark.parametrize("ending", ["nt", "nt.gz"])
def test_an_error_says_where_it_is(ending: str, piece_bytes: int, tmp_path: Path) -> None:
    path, document = tmp_path / f"data.{ending}", LINES * 3 + b"<urn:s> <urn:p> .\n" + LINES
    path.write_bytes(gzip.compress(document) if ending == "nt.gz" else document)
    with pytest.raises(RdfSyntaxError, match="malformed RDF at line") as failed:
        lines_of(whole(path))
    assert failed.value.line == LINES.count(b"\n") * 3 + 1


def test_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "PIECE_BYTES", 100)
    monkeypatch.setattr(parsing, "_LINE_BYTES_MAX", 100_000)
    path = tmp_path / "data.nt"
    path.write_bytes(b"x" * 400_000)
    with pytest.raises(RdfSyntaxError, match="longer than"):
        lines_of(whole(path))


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "data.nt.gz"
    path.write_bytes(gzip.compress(LINES)[:-20])
    with pytest.raises(InvalidParameter, match="damaged"):
        lines_of(whole(path))


class _ObjectStore(BaseHTTPRequestHandler):
    """What is read of S3: objects, their sizes, ranges of them, and what a bucket has below a prefix."""

    objects: dict[str, bytes]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if "list-type" in (query := parse_qs(parts.query)):
            below = query.get("prefix", [""])[0]
            self._answer(200, self._listed(parts.path.strip("/"), below).encode())
        elif (found := self.objects.get(unquote(parts.path).strip("/"))) is None:
            self._answer(404, b"")
        elif asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2] or len(found)), len(found) - 1)
            self._answer(206, found[first : last + 1], f"bytes {first}-{last}/{len(found)}")
        else:
            self._answer(200, found)

    def _listed(self, bucket: str, below: str) -> str:
        names = [name.removeprefix(f"{bucket}/") for name in self.objects]
        contents = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>e</ETag><Size>1</Size></Contents>"
            for name in names
            if name.startswith(below)
        )
        head = f"<Name>{bucket}</Name><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{contents}</ListBucketResult>"

    def _answer(self, status: int, body: bytes, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def object_store(objects: dict[str, bytes]) -> Iterator[str]:
    handler = type("Handler", (_ObjectStore,), {"objects": objects})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_documents_of_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "PIECE_BYTES", 100)
    objects = {
        "data/in/a.nt": LINES,
        "data/in/deep/b.ttl.gz": gzip.compress(b"<urn:a> <urn:b> 1 ."),
        "data/in/c": b"",
    }
    with object_store(objects) as url:
        for name, value in {
            "ENDPOINT_URL": url,
            "ALLOW_HTTP": "true",
            "ACCESS_KEY_ID": "key",
            "SECRET_ACCESS_KEY": "secret",
            "REGION": "nowhere",
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        found = find_objects("s3://data/in/", None)
        assert [(str(one), one.syntax) for one in found] == [
            ("s3://data/in/a.nt", RdfSyntax.N_TRIPLES),
            ("s3://data/in/deep/b.ttl.gz", RdfSyntax.TURTLE),
        ]
        assert find_objects("s3://data/in/a.nt", None) == found[:1]
        first, second = (Piece(one, 0, None, SALT, None, None) for one in found)
        assert len(pieces(first)) > 5
        assert canonical(lines_of(first)) == canonical(LINES)
        assert lines_of(second).startswith(b'<urn:a> <urn:b> "1"')
        with pytest.raises(UnavailableError, match="absent"):
            Document("s3://data/in/absent.nt", RdfSyntax.N_TRIPLES).measure()
