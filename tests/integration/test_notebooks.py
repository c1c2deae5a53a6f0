"""The notebooks as their reader meets them: executed from top to bottom, most of them against a service."""

import gzip
import itertools
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.service import Service

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SHARED = Path(os.environ.get("GRAPHDB_SHARED", NOTEBOOKS.parents[1] / "shared"))
LINES = 250_000  # of 650,000: every airport and airline, and a fifth of the routes
FLIGHTS = SHARED / "data" / "openflights.nt.gz"


@pytest.mark.ray
@pytest.mark.skipif(not FLIGHTS.exists(), reason=f"needs {FLIGHTS}")
def test_flights(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(FLIGHTS) as lines:
        service.load(b"".join(itertools.islice(lines, LINES)))
    monkeypatch.setenv("GRAPHDB_SERVER__DATA_DIR", str(service.data_dir))
    notebook = executed("flights.ipynb")
    kinds = {kind for output in outputs(notebook) for kind in output.get("data", {})}
    texts = "".join(output.get("data", {}).get("text/html", "") for output in outputs(notebook))
    assert {"text/html", "image/png"} <= kinds
    assert "Hartsfield" in texts
    assert "affected_triples=" in "".join(output.get("text", "") for output in outputs(notebook))


@pytest.mark.ray
def test_a_live_query(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHDB_URL", f"http://127.0.0.1:{service.port}")
    notebook = executed("live.ipynb")
    assert "image/png" in {kind for output in outputs(notebook) for kind in output.get("data", {})}
    texts = "".join(output.get("text", "") for output in outputs(notebook))
    assert "told of 16 states of the harbours" in texts


def test_the_tables_of_the_page_on_scaling_are_those_that_its_notebook_computes() -> None:
    page = (NOTEBOOKS.parent / "docs" / "scaling.md").read_text().splitlines()
    texts = "".join(output.get("text", "") for output in outputs(executed("scaling.ipynb")))
    rows = [line for line in texts.splitlines() if line.startswith("|")]
    assert len(rows) == 31
    assert [row for row in rows if row not in page] == []


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    assert outputs(read_notebook(path)) == []


def executed(name: str) -> Any:
    notebook = read_notebook(NOTEBOOKS / name)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    return notebook


def read_notebook(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]
