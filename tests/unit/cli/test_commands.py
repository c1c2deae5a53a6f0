"""`query`, `update`, `dump`, `health`, and how every failure is said."""

import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from serve.cli.main import main
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.cli.conftest import Run

DATA = """
PREFIX : <http://e.example/>
:a :name "Ada"@en ; :age 36 . :b :name "Bo" .
GRAPH :g { :a :knows :b }
"""


@pytest.fixture
def filled(graphdb: Run, endpoint: str, tmp_path: Path) -> str:
    path = tmp_path / "data.trig"
    path.write_text(DATA)
    assert graphdb("load", path).exit_code == 0
    return endpoint


def test_table(graphdb: Run, filled: str) -> None:
    query = """PREFIX e: <http://e.example/>
    SELECT ?s ?name ?age WHERE { ?s e:name ?name OPTIONAL { ?s e:age ?age } } ORDER BY ?s"""
    lines = [line.rstrip() for line in graphdb("query", query).out.splitlines()]
    assert [
        [cell.strip() for cell in line.replace("┃", "│").split("│")] for line in lines if "━" not in line
    ] == [
        ["s", "name", "age"],
        ["e:a", "Ada @en", "36"],
        ["e:b", "Bo", ""],
    ]


def test_long_iris_are_not_wrapped_in_a_pipe(graphdb: Run, endpoint: str) -> None:
    iri = "http://e.example/" + "x" * 300
    out = graphdb("query", f"SELECT ?x WHERE {{ BIND(<{iri}> AS ?x) }}", "--no-prefixes").out
    assert f"<{iri}>" in out


@pytest.mark.parametrize(
    ("form", "query", "out"),
    [
        ("table", "ASK { ?s ?p 36 }", "true\n"),
        ("table", "ASK { ?s ?p 37 }", "false\n"),
        (
            "table",
            "CONSTRUCT { <urn:x> <urn:y> ?o } WHERE { ?s ?p ?o FILTER(?o = 36) }",
            '<urn:x> <urn:y> "36"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
        ),
        ("csv", "SELECT ?o WHERE { ?s ?p ?o FILTER(?o = 36) }", "o\r\n36\r\n"),
        ("tsv", "SELECT ?o WHERE { ?s ?p ?o FILTER(?o = 36) }", "?o\n36\n"),
        ("ntriples", "CONSTRUCT { <urn:x> <urn:y> <urn:z> } WHERE {}", "<urn:x> <urn:y> <urn:z> .\n"),
        ("canonical", "CONSTRUCT { <urn:x> <urn:y> [] } WHERE {}", "<urn:x> <urn:y> _:c14n0 .\n"),
    ],
)
def test_formats(graphdb: Run, filled: str, form: str, query: str, out: str) -> None:
    done = graphdb("query", query, "--format", form)
    assert (done.exit_code, done.out, done.err) == (0, out, "")


@pytest.mark.parametrize(
    "query",
    [
        'SELECT ?x WHERE { BIND(":key: [b]" AS ?x) }',
        'CONSTRUCT { <urn:x> <urn:y> ":key: [b]" } WHERE {}',
    ],
)
def test_data_is_printed_as_it_is(graphdb: Run, endpoint: str, query: str) -> None:
    assert ":key: [b]" in graphdb("query", query).out


def test_ndjson_and_json(graphdb: Run, filled: str) -> None:
    query = "SELECT ?o WHERE { ?s ?p ?o FILTER(?o = 36) }"
    binding = {
        "o": {"type": "literal", "value": "36", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}
    }
    assert json.loads(graphdb("query", query, "--format", "ndjson").out) == binding
    assert json.loads(graphdb("query", query, "--format", "json").out)["results"]["bindings"] == [binding]


def test_explain(graphdb: Run, filled: str) -> None:
    query = "SELECT * { ?s <http://e.example/name> ?name . ?s ?p 36 . ?s ?p TRUE }"
    lines = [line.strip() for line in graphdb("query", query, "--explain").out.splitlines()]
    assert re.fullmatch(r"ok, 0 rows in \d\.\d{3} s by thread, at index 1", lines[0])
    assert lines[1:6] == [
        "usually evaluated by a reader:",
        "3 triple patterns are joined",
        "it joins much in what the store holds now",
        "the answer can be kept",
        "",
    ]
    assert "as the engine gets it:" in lines
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if "│" in line]
    assert ["?s <http://e.example/name> ?name", "2"] in cells
    assert ["patterns", "3", "100", "security.max_patterns"] in cells
    assert not any(cell == ["optionals", "0", "32", "security.max_optionals"] for cell in cells)
    assert any(cell[0] == "at once" and cell[-1].startswith("not possible") for cell in cells)
    as_it_is = graphdb("query", query, "--explain", "--format", "json").out
    assert json.loads(as_it_is)["evaluation"]["rows"] == 0


def test_text_from_file_and_standard_input(
    graphdb: Run, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "query.rq"
    for mark in (b"", b"\xef\xbb\xbf"):  # of the order of bytes, as some editors write it
        path.write_bytes(mark + b"ASK { ?s ?p 36 }")
        assert graphdb("query", "--file", path).out == "true\n"
        for arguments in ((), ("-",)):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(mark + b"ASK { ?s ?p 37 }")))
            assert graphdb("query", *arguments).out == "false\n"


def test_update(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    done = graphdb("update", "INSERT DATA { <urn:a> <urn:b> 1, 2 }")
    assert (done.exit_code, done.out) == (0, "2 triples changed; the store is at index 1\n")
    done = graphdb("update", "DELETE DATA { <urn:a> <urn:b> 1 }", "--format", "json")
    assert json.loads(done.out)["affected_triples"] == 1
    assert len(list(backend.dataset_quads())) == 1


def test_dump_of_everything(graphdb: Run, filled: str) -> None:
    assert sorted(graphdb("dump").out.splitlines()) == [
        '<http://e.example/a> <http://e.example/age> "36"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        "<http://e.example/a> <http://e.example/knows> <http://e.example/b> <http://e.example/g> .",
        '<http://e.example/a> <http://e.example/name> "Ada"@en .',
        '<http://e.example/b> <http://e.example/name> "Bo" .',
    ]


@pytest.mark.parametrize(("graph", "count"), [("default", 3), ("http://e.example/g", 1)])
def test_dump_of_one_graph(graphdb: Run, filled: str, graph: str, count: int) -> None:
    assert len(graphdb("dump", "--graph", graph).out.splitlines()) == count


def test_dump_to_a_file_and_back(graphdb: Run, filled: str, tmp_path: Path) -> None:
    path = tmp_path / "all.nq.gz"
    done = graphdb("dump", "-o", path)
    assert (done.exit_code, done.out) == (0, "")
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 4
    assert graphdb("load", path).out.startswith("0 quads added")


def test_failed_dump_leaves_no_file(graphdb: Run, filled: str, tmp_path: Path) -> None:
    path = tmp_path / "all.nt"
    done = graphdb("dump", "--graph", "urn:absent", "-o", path)
    assert (done.exit_code, done.err) == (
        1,
        "graphdb: the service answered 404: there is no graph <urn:absent>\n",
    )
    assert list(tmp_path.glob("*all*")) == []


def test_health(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    done = graphdb("health")
    assert done.exit_code == 0
    assert ["status", "healthy"] in [line.split() for line in done.out.splitlines()]
    backend.status_word = "degraded"
    assert graphdb("health").exit_code == 1
    done = graphdb("health", "--format", "json")
    assert (done.exit_code, json.loads(done.out)["status"]) == (1, "degraded")
    backend.status_word = "error"
    done = graphdb("health", "--format", "json")
    assert (done.exit_code, json.loads(done.out)["status"]) == (1, "error")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("query", "SELEC"), 1, "the service answered 400: syntax error at line 1, column 1"),
        (("query", "SELECT * {}", "--format", "turtle"), 1, "the service answered 406"),
        (("query", "ASK {}", "--format", "png"), 2, "Invalid value for '--format'"),
        (("query", "ASK {}", "--file", "x"), 2, "give the text or --file, not both"),
        (("query", "--file", "absent.rq"), 1, "absent.rq: No such file or directory"),
        (("dump", "--format", "ttl"), 2, "ttl carries no named graphs"),
        (("dump", "-o", "all.xyz"), 2, "no RDF syntax has this ending"),
        (("nonsense",), 2, "No such command 'nonsense'"),
        (("health", "--endpoint", "ftp://x"), 2, "--endpoint ftp://x: not an http or https address"),
        (
            ("health", "--endpoint", "http://127.0.0.1:1"),
            1,
            "nothing answers at http://127.0.0.1:1; is the service",
        ),
        (("query", "ASK {}", "--endpoint", "http://127.0.0.1:1"), 1, "nothing answers at http://127.0.0.1:1"),
        (
            ("serve", "--port", "0"),
            1,
            "command line: server.port: Input should be greater than or equal to 1",
        ),
        (("serve", "--config", "absent.toml"), 1, "absent.toml: cannot be read: No such file or directory"),
        (("serve", "--host", "0.0.0.0"), 1, "is not loopback and authentication is off"),
        (("backup", "b", "--data-dir", "absent"), 1, "absent is no data directory"),
    ],
)
def test_failures_are_one_line(
    graphdb: Run,
    endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    exit_code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = graphdb(*arguments)
    assert (done.exit_code, done.out) == (exit_code, "")
    assert said in done.err
    assert done.err.startswith("graphdb: ")
    assert done.err.count("\n") == 1


def test_what_would_not_be_enforced_stops_serve(
    graphdb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphdb.toml").write_text("[acl]")
    done = graphdb("serve")
    assert done.exit_code == 1
    assert "acl is configured and authentication is off" in done.err


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("serve.cli.query.read_text", interrupted)
    assert main(["query", "ASK {}"]) == 130


def test_broken_pipe_is_quiet(filled: str) -> None:
    """`graphdb query ... | head -1` on an answer larger than a pipe."""
    query = "SELECT ?a WHERE { " + " ".join(f"?s{n} ?p{n} ?a{n} ." for n in range(10)) + " BIND(?a0 AS ?a) }"
    process = subprocess.Popen(
        [sys.executable, "-m", "serve.cli", "query", query, "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"a\r\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=HANG_S) == 1


def test_without_a_command_there_is_the_help_and_no_failure(graphdb: Run) -> None:
    done = graphdb()
    assert (done.exit_code, done.err) == (2, "")
    assert "serve" in done.out


def test_help_names_every_command(graphdb: Run) -> None:
    out = graphdb("--help").out
    for command in ("serve", "load", "query", "update", "dump", "health", "backup", "restore"):
        assert command in out
