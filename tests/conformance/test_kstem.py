"""Krovetz's stemmer beside Lucene's, which has a lexicon of its own."""

import gzip
import re
from pathlib import Path

import pytest
from lemminflect import config

from graphdb.search.analysis.kstem import kstem
from tests.support.java_programs import run_java, why_no_java

PEER = Path(__file__).parents[1] / "support/KStemPeer.java"
ARTIFACTS = ("org.apache.lucene:lucene-analysis-common:9.12.2",)
WORDS = 20_000


def words() -> list[str]:
    """Lemmas and their forms, evenly from the alphabet."""
    with gzip.open(config.inflection_lu_fn, "rt", encoding="utf-8") as lines:
        every = sorted(
            {word for line in lines for word in re.findall(r"(?<![^,/])[a-z]{2,}(?![^,/\n])", line)}
        )
    return [every[number * len(every) // WORDS] for number in range(WORDS)]


def test_nine_in_ten_stems_are_lucenes(tmp_path: Path) -> None:
    reason = why_no_java(PEER, ARTIFACTS)
    if reason is not None:
        pytest.skip(reason)
    given = words()
    (tmp_path / "words").write_text("\n".join(given))
    theirs = run_java(PEER, str(tmp_path / "words")).splitlines()
    assert len(theirs) == len(given)
    equal = sum(kstem(word) == stem for word, stem in zip(given, theirs, strict=True))
    assert equal / WORDS > 0.9, equal
