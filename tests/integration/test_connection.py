"""`graphdb.connect()`: a running service's actors without HTTP."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.errors import UnavailableError
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = pytest.mark.ray

SCRIPT = """
import json, sys
import graphdb
from graphdb.errors import GraphDBError

SHAPES = '''PREFIX sh: <http://www.w3.org/ns/shacl#> <urn:k:S> sh:targetNode <urn:k:a> ;
sh:property [ sh:path <urn:k:p> ; sh:maxCount 1 ; sh:message "too many" ] .'''

def failure(call, *arguments):
    try:
        call(*arguments)
    except GraphDBError as error:
        return [type(error).__name__, str(error)]

with graphdb.connect(sys.argv[1]) as service:
    confirmation = service.update('INSERT DATA { <urn:k:a> <urn:k:p> 1, 2.5, 1e0, true, "x"@en, _:b }')
    before = confirmation.snapshot_index - 1
    rows = service.query("SELECT ?o WHERE { <urn:k:a> <urn:k:p> ?o FILTER(!isBlank(?o)) }")
    empty = service.query("SELECT ?x ?y WHERE { <urn:k:none> ?x ?y }")
    print(json.dumps({
        "repr": repr(service),
        "affected": confirmation.affected_triples,
        "values": sorted(f"{type(row['o']).__name__} {row['o']}" for row in rows),
        "columns": list(empty.to_pandas().columns),
        "ask": [service.ask("ASK { <urn:k:a> ?p 1 }"), service.ask("ASK { <urn:k:a> ?p 7 }")],
        "construct": service.construct("CONSTRUCT { ?s <urn:k:q> 1 } WHERE { ?s <urn:k:p> 1 }"),
        "status": service.status()["status"],
        "shacl": service.validate(SHAPES)["results"],
        "shapes": failure(service.validate, "<urn:k:a> <urn:k:b"),
        "syntax": failure(service.query, "SELECT WHERE"),
        "form": failure(service.query, "ASK {}"),
        "update": failure(service.update, "DROP GRAPH <urn:k:none>"),
        "past": [service.ask("ASK { <urn:k:a> ?p 1 }", as_of=index) for index in (before, before + 1)],
    }))
"""


@pytest.fixture(scope="module")
def report(service: Service) -> dict[str, Any]:
    """What a script finds: in a process of its own, since connecting changes the process."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, service.data_dir], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_repr_says_where(report: dict[str, Any], service: Service) -> None:
    assert report["repr"] == f"<graphdb connection to {service.url}, process {service.command_pid}>"


def test_rows_are_python_values(report: dict[str, Any]) -> None:
    assert report["affected"] == 6
    assert report["values"] == ["Decimal 2.5", "bool True", "float 1.0", "int 1", "str x"]
    assert report["columns"] == ["x", "y"]


def test_ask_construct_status(report: dict[str, Any]) -> None:
    assert report["ask"] == [True, False]
    assert report["construct"].split() == [
        "<urn:k:a>",
        "<urn:k:q>",
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        ".",
    ]
    assert report["status"] == "healthy"


def test_a_validation(report: dict[str, Any]) -> None:
    [result] = report["shacl"]
    assert (result["focusNode"], result["message"]) == ("urn:k:a", "too many")
    assert report["shapes"][0] == "RdfSyntaxError"


def test_the_past(report: dict[str, Any]) -> None:
    assert report["past"] == [False, True]


def test_errors_are_the_service_s_own(report: dict[str, Any]) -> None:
    assert report["syntax"][0] == "QuerySyntaxError"
    assert report["form"] == ["InvalidParameter", "query: this is not a SELECT query but ASK"]
    assert report["update"] == ["UnknownGraph", "there is no graph <urn:k:none>"]


def test_whoever_cannot_read_ray_s_token_is_told_to_use_http(tmp_path: Path) -> None:
    here = {
        "pid": os.getpid(),
        "ray_address": "127.0.0.1:1",
        "own_runtime": True,
        "namespace": "x",
    }
    beside = {"token_file": str(tmp_path / "token"), "url": "http://127.0.0.1:7001"}
    (tmp_path / "service.json").write_text(json.dumps(here | beside))
    with pytest.raises(UnavailableError, match="only the user who runs the service"):
        graphdb.connect(tmp_path)


def test_no_service_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"^no service runs on .*; start one: graphdb serve$"):
        graphdb.connect(tmp_path)
