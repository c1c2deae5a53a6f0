"""The notebook as its reader meets it: executed from top to bottom against a service with the flight data."""

import gzip
import itertools
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.service import Service

pytestmark = pytest.mark.ray

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "flights.ipynb"
SHARED = Path(os.environ.get("GRAPHDB_SHARED", NOTEBOOK.parents[2] / "shared"))
LINES = 250_000  # of 650,000: every airport and airline, and a fifth of the routes
FLIGHTS = SHARED / "data" / "openflights.nt.gz"


@pytest.mark.skipif(not FLIGHTS.exists(), reason=f"needs {FLIGHTS}")
def test_flights(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(FLIGHTS) as lines:
        service.load(b"".join(itertools.islice(lines, LINES)))
    monkeypatch.setenv("GRAPHDB_SERVER__DATA_DIR", str(service.data_dir))
    notebook = read_notebook()
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    kinds = {kind for output in outputs(notebook) for kind in output.get("data", {})}
    texts = "".join(output.get("data", {}).get("text/html", "") for output in outputs(notebook))
    assert {"text/html", "image/png"} <= kinds
    assert "Hartsfield" in texts
    assert "affected_triples=" in "".join(output.get("text", "") for output in outputs(notebook))


def test_notebook_is_committed_without_outputs() -> None:
    assert outputs(read_notebook()) == []


def read_notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]
