"""The standard tokenizer: UAX #29 with Lucene's types."""

import time

import pytest

from graphdb.search.analysis.tokenizers import StandardTokenizer, utf16_length

A, N, EMOJI = "<ALPHANUM>", "<NUM>", "<EMOJI>"

CASES = {
    "The 2 QUICK Brown-Foxes, dog's bone.": [
        *[("The", A), ("2", N), ("QUICK", A), ("Brown", A), ("Foxes", A), ("dog's", A), ("bone", A)],
    ],
    "can't U.S.A. a:b 3.14 1,000.5 a.1 1.a": [
        *[("can't", A), ("U.S.A", A), ("a:b", A), ("3.14", N), ("1,000.5", N)],
        *[("a", A), ("1", N), ("1", N), ("a", A)],
    ],
    "'a' a''b _ __ _a_ a_1 1_2 don\u2019t": [
        *[("a", A), ("a", A), ("b", A), ("_a_", A), ("a_1", A), ("1_2", N), ("don\u2019t", A)],
    ],
    "日本 ひら カタカナー 々": [
        *[("日", "<IDEOGRAPHIC>"), ("本", "<IDEOGRAPHIC>"), ("ひ", "<HIRAGANA>"), ("ら", "<HIRAGANA>")],
        *[("カタカナー", "<KATAKANA>"), ("々", A)],
    ],
    "カa カ_a": [("カ", "<KATAKANA>"), ("a", A), ("カ_a", A)],
    "한국어 한a": [("한국어", "<HANGUL>"), ("한a", A)],
    "สวัสดีครับ ສະບາຍດີ": [("สวัสดีครับ", "<SOUTHEAST_ASIAN>"), ("ສະບາຍດີ", "<SOUTHEAST_ASIAN>")],
    'צה"ל ה\' "': [('צה"ל', A), ("ה'", A)],
    "e\u0301a \u0301 ٣٤ １２": [("e\u0301a", A), ("٣٤", N), ("１２", N)],
    "👩\u200d👩\u200d👧 👍🏽 1\ufe0f\u20e3 #\ufe0f\u20e3 # ❤\ufe0f": [
        *[("👩\u200d👩\u200d👧", EMOJI), ("👍🏽", EMOJI), ("1\ufe0f\u20e3", EMOJI), ("#\ufe0f\u20e3", EMOJI)],
        ("❤\ufe0f", EMOJI),
    ],
    "🇩🇪🇫🇷🇮 ©": [("🇩🇪", EMOJI), ("🇫🇷", EMOJI), ("©", EMOJI)],
    "ℹ ℹa 1\ufe0f\u20e32": [("ℹ", EMOJI), ("ℹa", A), ("1\ufe0f\u20e32", N)],
}


@pytest.mark.parametrize("text", CASES)
def test_terms_and_types(text: str) -> None:
    tokens = StandardTokenizer().tokens(text)
    assert [(token.term, token.type) for token in tokens] == CASES[text]
    assert [token.position for token in tokens] == list(range(len(tokens)))
    assert [text[token.start_offset : token.end_offset] for token in tokens] == [t.term for t in tokens]


@pytest.mark.parametrize("text", CASES)
def test_terms_alone_are_the_same(text: str) -> None:
    assert StandardTokenizer().terms(text) == [term for term, _ in CASES[text]]


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("x" * 255, [255]),
        ("x" * 256, [255, 1]),
        ("x" * 600 + " y", [255, 255, 90, 1]),
        ("x" * 254 + ".yy", [254, 2]),  # the cut falls after the full stop, which then joins nothing
        ("𝒳" * 200, [127, 73]),  # two UTF-16 units each
        ("é" * 256, [255, 1]),
    ],
)
def test_tokens_longer_than_255_units_are_cut(text: str, lengths: list[int]) -> None:
    assert [len(term) for term in StandardTokenizer().terms(text)] == lengths


def test_a_shorter_limit() -> None:
    assert StandardTokenizer(5).terms("jumped over") == ["jumpe", "d", "over"]


@pytest.mark.parametrize("gap", [1500, 2043, 2044, 2045, 5000])
def test_long_texts_are_seen_through_windows(gap: int) -> None:
    text = "é " + "word 🇩🇪 can't " * 5 + " " * gap + "🇩🇪 can't 1\ufe0f\u20e3" + "-" * gap + "end"
    assert StandardTokenizer().terms(text) == [
        "é",
        *["word", "🇩🇪", "can't"] * 5,
        *["🇩🇪", "can't", "1\ufe0f\u20e3", "end"],
    ]


@pytest.mark.parametrize("part", ["a.", "_", "👩\u200d", "\u200d", "🇩", "a_\u0301"])
def test_long_runs_take_linear_time(part: str) -> None:
    start = time.process_time()
    StandardTokenizer().terms("é" + part * 100_000)
    assert time.process_time() - start < 5


def test_utf16_length() -> None:
    assert utf16_length("a😀é", 0, 3) == 4
    assert utf16_length("abc", 1, 3) == 2
