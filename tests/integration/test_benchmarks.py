"""Each benchmark runs to its end on a little data. How fast anything is, no test asserts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.fuzz import PROGRAMS
from benchmarks.fuzz import run as fuzz_run
from benchmarks.hostile_queries import ATTACKS
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, flight_triples
from tests.support.timing import HANG_S

ROOT = Path(__file__).parents[2]

ROWS = {
    "point_query": ["point query over HTTP, 16 connections"],
    "json_result": ["1,000 rows as JSON over HTTP"],
    "bulk_load": [
        "load of 10,000 triples, offline",
        "PUT of 4,000 triples, a new graph",
        "POST of 4,000 triples, the default graph",
        "load of 4,000 triples, online",
        "load of 10,000 more, online (once)",
        "point query while graphs are put, latency",
    ],
    "graphql": ["three levels over 100 airports, against their SPARQL"],
    "shacl": [
        "20 shapes over BSBM, against pySHACL",
        "small update, 5 shapes enforced against none",
        "the same, added, against 10 ms",
    ],
    "live": [
        "updates, 16 clients, 2,000 live queries of 100 kinds against none",
        "the last of 20 notifications after acknowledgement, p99 at 100 updates/s",
    ],
    "durable_update": ["durable update, 1 client, latency", "durable updates, 64 clients against 1"],
}
CONNECTIONS = ("1 connection", "8 connections")
PEERLESS = {"bulk_load": ["--peer", "no"]}  # so that the rows do not depend on what is installed


@pytest.fixture(scope="module", autouse=True)
def _flight_data(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        flight_triples(tmp_path_factory.mktemp("flights"), 10)
    except BenchmarkError as error:
        pytest.skip(str(error))


def benchmark(name: str, *options: str, timeout_s: float = 200, scale: str = "0.01") -> list[dict[str, Any]]:
    """The lines of a benchmark on little data. Whether it met its targets means nothing at this size."""
    command = [sys.executable, "-m", "benchmarks", name, "--scale", scale, "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout_s)
    assert done.returncode in (0, 1), done.stderr
    lines: list[dict[str, Any]] = json.loads(done.stdout)
    return lines


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_benchmark_runs(name: str) -> None:
    rows = benchmark(name, "--rounds", "1", *PEERLESS.get(name, ()))
    assert [row["work"] for row in rows] == ROWS[name]
    assert all(
        row["floor"] > 0 and row["ours"] > 0 and row["ratio"] == row["ours"] / row["floor"] for row in rows
    )


@pytest.mark.ray
@pytest.mark.slow
def test_reads_runs() -> None:
    rows = benchmark("reads", "--rounds", "1", "--peer", "no")
    queries = [f"{what}, {many}" for what in ("point query", "three joins") for many in CONNECTIONS]
    assert [row["work"] for row in rows] == [*queries, "1,000 rows as TSV"]
    assert all(row["ours"] > 0 and row["service_ms"] > 0 for row in rows)


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.timeout(450)  # four starts, one of them on a busy machine
def test_weight_runs() -> None:
    figures = benchmark("weight", "--rounds", "1", "--peer", "no", timeout_s=400)
    assert {figure["unit"] for figure in figures} == {"s", "MB", "% of a core"}
    assert all(figure["ours"] > 0 for figure in figures if figure["unit"] != "% of a core")
    assert all(figure["passes"] == (figure["ours"] <= figure["asked"]) for figure in figures)


@pytest.mark.ray
@pytest.mark.slow
def test_text_in_sparql_runs() -> None:
    rows = benchmark("text_in_sparql", "--rounds", "1", "--peer", "no")
    assert [row["work"].partition(" of 400")[0] for row in rows] == [
        "1 word",
        "2 words",
        "3 words",
        "1 word, all its hits (up to 10,000)",
    ]
    assert all(row["ours"] > 0 and row["service_ms"] > 0 for row in rows)


@pytest.mark.ray
@pytest.mark.long
def test_elasticsearch_runs() -> None:
    *rows, whole = benchmark(
        "elasticsearch", "--rounds", "1", "--peer", "no", "--only", "knn of 1", scale="0.02"
    )
    works = ["bulk of 500, documents", "knn of 1 %"]
    assert [(row["work"], row["connections"]) for row in rows] == [
        (work, connections) for work in works for connections in (1, 2, 8)
    ]
    assert all(row["ours"]["rate"] > 0 and row["ours"]["processor"] > 0 for row in rows)
    assert all(row["peer"] is None and row["ratio"] is None and row["passes"] for row in rows)
    assert rows[-1]["recall"][0] > 0.9  # an empty answer would be fast
    assert whole["ours_mb"] > 0
    assert "was not measured" in whole["remarks"][-1]


@pytest.mark.ray
@pytest.mark.slow
def test_exchange_runs() -> None:
    ours, *others = benchmark("exchange", "--rounds", "1", "--shards", "2")
    assert ours["is_same"]
    assert min(ours["seconds"], ours["processor_s"]) > 0
    assert len(others) == 2
    assert all(way["missing"] or way["is_same"] for way in others)


@pytest.mark.ray
@pytest.mark.long
def test_hybrid_runs() -> None:
    rows = benchmark("hybrid", scale="0.05")
    assert [row["work"] for row in rows[:2]] == ["words alone", "vectors alone"]
    assert max(row["ours"] for row in rows[:2]) == rows[0]["floor"]
    assert len(rows) == 6
    assert all(0 < row["ours"] < 1 for row in rows)


@pytest.mark.ray
@pytest.mark.slow
def test_sparqloscope_runs() -> None:
    *rows, summary = benchmark(
        "sparqloscope", "--rounds", "1", "--peer", "no", "--only", "distinct-", scale="0.05"
    )
    assert len(rows) == 3
    assert all(row["ms"]["ours"] > 0 and row["rows"] == 1 and not row["differing"] for row in rows)
    assert all(row["memory_mb"] > 0 for row in rows)
    assert summary["failed"] == {"ours": 0}
    assert summary["made"]["memory_mb"] > 0


@pytest.mark.ray
@pytest.mark.slow
def test_hostile_runs() -> None:
    (row,) = benchmark("hostile", "--only", "nested")
    assert row["statuses"] == {"400": 1}
    assert row["is_expected"]
    assert row["ratio"] == row["median_ms"] / row["median_before_ms"]


def test_a_benchmark_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "bulk_load", "--peer", "no", "--scale", "0.1"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as benchmark:
        deadline = time.monotonic() + HANG_S
        while not any(tmp_path.glob("graphdb-benchmark-*")):
            assert benchmark.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        benchmark.terminate()
        assert benchmark.wait(HANG_S) == 128 + signal.SIGTERM
    assert not any(tmp_path.glob("graphdb-benchmark-*"))


def test_fuzz_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--target", "parser", "--seconds", "30", "--seed", "7", "--cases", "50"]) == 0
    assert "parser" in capsys.readouterr().out


def test_fuzz_reports_a_process_that_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAMS, "parser", "tests.no_such_program")
    (line,) = fuzz_run(seconds=1, seed=0, cases=1, target="parser")
    assert not line.passes
    assert "No module named" in line.findings[0]["what"]
    assert line.cells()["findings"] == "1"
    assert "nothing yet" in line.notes()[0]


def test_unknown_hostile_query_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hostile", "--only", "no such"]) == 2
    assert capsys.readouterr().err == "benchmarks: no hostile query has 'no such' in its name\n"


def test_hostile_queries_have_names_of_their_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


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
