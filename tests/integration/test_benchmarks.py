"""Each benchmark runs to its end on a little data. How fast anything is, no test asserts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, flight_triples

ROOT = Path(__file__).parents[2]

ROWS = {
    "point_query": ["point query over HTTP, 16 connections"],
    "json_result": ["1,000 rows as JSON over HTTP"],
    "bulk_load": ["load of 10,000 triples, offline", "load of 10,000 triples, online (once)"],
    "durable_update": ["durable update, 1 client, latency", "durable updates, 64 clients against 1"],
}


@pytest.fixture(scope="module", autouse=True)
def _flight_data(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        flight_triples(tmp_path_factory.mktemp("flights"), 10)
    except BenchmarkError as error:
        pytest.skip(str(error))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_benchmark_runs(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks", name, "--rounds", "1", "--scale", "0.01", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode in (0, 1), done.stderr  # 1: a target was missed, which at this size means nothing
    rows = json.loads(done.stdout)
    assert [row["work"] for row in rows] == ROWS[name]
    assert all(
        row["floor"] > 0 and row["ours"] > 0 and row["ratio"] == row["ours"] / row["floor"] for row in rows
    )


@pytest.mark.parametrize(
    ("bound", "target", "passes"),
    [("at least", 0.5, True), ("at least", 0.6, False), ("at most", 0.5, True), ("at most", 0.4, False)],
)
def test_verdict(bound: str, target: float, passes: bool) -> None:
    assert Row("w", "u", 10, 5, bound, target).passes is passes  # type: ignore[arg-type] # literals in a table


def test_row_without_target_passes() -> None:
    assert Row("w", "u", 10, 5).passes


def test_measures_take_turns() -> None:
    calls: list[str] = []

    def measure(name: str, value: float) -> float:
        calls.append(name)
        return value + len(calls)

    assert interleave(3, lambda: measure("a", 0), lambda: measure("b", 100)) == (3.0, 104.0)
    assert calls == ["a", "b"] * 3
