"""Random texts against the parser and the gate, from fixed seeds; `python -m benchmarks fuzz` goes on."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError
from graphdb.planning.gate import read_query, read_update
from graphdb.sparql.tables import load_tables
from tests.support.fuzzing.campaign import run_campaign
from tests.support.fuzzing.grammar import write_sentence
from tests.support.fuzzing.parser_oracle import BASE
from tests.support.fuzzing.text_target import TextTarget
from tests.support.fuzzing.texts import RULES

ROOT = Path(__file__).parents[2]
CASES = 3500
SENTENCES = 1000


def test_random_texts() -> None:
    report = run_campaign(TextTarget("parser"), seconds=60, seed=0, cases=CASES)
    assert report.findings == []
    assert min(report.outcomes[name] for name in ("query", "update", "malformed")) > CASES / 20


def test_most_sentences_are_admitted() -> None:
    admitted = 0
    for seed in range(SENTENCES):
        random = Random(seed)
        rule = random.choice(RULES)
        text = write_sentence(random, rule, random.choice((10, 40, 150)))
        try:
            (read_query if rule == "query_unit" else read_update)(text, BASE, GateLimits())
        except (QuerySyntaxError, LimitExceeded):
            continue
        admitted += 1
    assert admitted > SENTENCES / 2


def test_sentences_use_every_word_and_sign() -> None:
    written = (
        write_sentence(Random(seed), rule, 30)
        for rule in (*RULES, "_unary", "_call", "aggregate", "_update1")
        for seed in range(SENTENCES)
    )
    used = {word.upper() for text in written for word in text.split()}
    tables = load_tables()
    assert {word.upper() for word in (*tables.keywords, *tables.signs)} - used == set()


def test_coverage_guided(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has wheels for Linux on x86-64 alone")
    command = [sys.executable, "-m", "tests.fuzz.run_coverage", "coverage", "--work", str(tmp_path)]
    command += ["--seconds", "100", "--cases", "4000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    trace = (tmp_path / "trace").read_bytes() if (tmp_path / "trace").exists() else b""
    assert done.returncode == 0, f"{trace!r}: {done.stderr[-2000:]}"
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["findings"] == []
    assert sum(report["outcomes"].values()) >= 3800
