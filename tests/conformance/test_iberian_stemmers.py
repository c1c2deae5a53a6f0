"""Stemmers of Portuguese and Spanish beside Lucene's: the same stem for every word."""

import random
import re
from pathlib import Path

import pytest

from graphdb.search.analysis import iberian_stemmers
from graphdb.search.analysis.stemmers import stemmer
from tests.support.java_programs import run_java, why_no_java

PEER = Path(__file__).parents[1] / "support/IberianStemPeer.java"
ARTIFACTS = ("org.apache.lucene:lucene-analysis-common:9.12.2",)
RULES = Path(iberian_stemmers.__file__).with_name("rslp.words.txt").read_text("utf-8")
MADE = 40_000
ENDINGS = "es s ces ses is éis ques guis ies eis dis yes ues xes"


def words(name: str) -> list[str]:
    """Those that the rules name, and made ones: some letters, then one or two endings that the rules have."""
    random_source = random.Random(name)
    known = sorted(iberian_stemmers._SPANISH_KEPT | iberian_stemmers._SPANISH_SHORTENED)
    known += sorted(set(re.findall(r"[^\W\d_]+", RULES)))
    endings = [*known, *ENDINGS.split()]
    made = [
        "".join(random_source.choices("aeiourstlndcmqgbpãçáéíóúêôõñüy", k=random_source.randint(0, 5)))
        + "".join(random_source.choices(endings, k=random_source.randint(1, 2)))
        for _ in range(MADE)
    ]
    return [*known, *made]


@pytest.mark.parametrize("name", ["portuguese_rslp", "minimal_portuguese", "spanish_plural"])
def test_every_stem_is_lucenes(name: str, tmp_path: Path) -> None:
    reason = why_no_java(PEER, ARTIFACTS)
    if reason is not None:
        pytest.skip(reason)
    given, stem = words(name), stemmer(name)
    (tmp_path / "words").write_text("\n".join(given), encoding="utf-8")
    theirs = run_java(PEER, name, str(tmp_path / "words")).splitlines()
    assert len(theirs) == len(given)
    differing = [
        (word, stem(word), one) for word, one in zip(given, theirs, strict=True) if stem(word) != one
    ]
    assert differing == []
