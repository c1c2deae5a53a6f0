"""Analyzers by name and from settings, and the errors that clients know."""

from typing import Any

import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError

SENTENCE = "The 2 QUICK Brown-Foxes jumped over the lazy dog's bone."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("standard", "the 2 quick brown foxes jumped over the lazy dog's bone"),
        ("simple", "the quick brown foxes jumped over the lazy dog s bone"),
        ("whitespace", "The 2 QUICK Brown-Foxes jumped over the lazy dog's bone."),
        ("stop", "quick brown foxes jumped over lazy dog s bone"),
        ("pattern", "the 2 quick brown foxes jumped over the lazy dog s bone"),
        ("english", "2 quick brown fox jump over lazi dog bone"),
        ("snowball", "2 quick brown fox jump over lazi dog bone"),
    ],
)
def test_built_in(name: str, expected: str) -> None:
    analyzer = Analyzers.of({}).analyzer(name)
    assert analyzer.tokens(SENTENCE)[0] == expected.split()


def test_keyword_and_fingerprint() -> None:
    analyzers = Analyzers.of({})
    assert analyzers.analyzer("keyword").tokens(SENTENCE) == ([SENTENCE], [0])
    assert analyzers.analyzer("keyword").tokens("") == ([], [])
    text = "Yes yes, Gödel said this sentence is consistent and."
    assert analyzers.analyzer("fingerprint").tokens(text)[0] == [
        "and consistent godel is said sentence this yes"
    ]


def test_stop_words_leave_holes() -> None:
    analyzer = Analyzers.of({}).analyzer("english")
    assert analyzer.tokens("the foxes and the dog") == (["fox", "dog"], [1, 4])
    token = analyzer.detailed("the foxes")[0]
    assert (token.term, token.start_offset, token.end_offset, token.position) == ("fox", 4, 9, 1)


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
    [
        ({"language": "French"}, "Les chevaux sont partis", "cheval part"),
        ({"language": "German2"}, "die Häuser und schöne Gärten", "haus schon gart"),
        ({"language": "Turkish"}, "IŞIK kitaplar", "ışık kitap"),
        ({"language": "Swedish"}, "och husen", "och hus"),  # without a list of its own
        ({"language": "Swedish", "stopwords": "_swedish_"}, "och husen", "hus"),
        ({"stopwords": []}, "the dog's foxes", "the dog fox"),
        ({"name": "Porter"}, "the dog's generously", "the dog gener"),
    ],
)
def test_snowball_has_the_language_as_a_parameter(settings: Any, text: str, expected: str) -> None:
    analyzers = Analyzers.of({"analyzer": {"mine": {"type": "snowball", **settings}}})
    assert analyzers.analyzer("mine").tokens(text)[0] == expected.split()


def test_snowball_of_no_language() -> None:
    with pytest.raises(SearchError, match="Invalid stemmer class specified: Klingon"):
        Analyzers.of({"analyzer": {"mine": {"type": "snowball", "language": "Klingon"}}}).analyzer("mine")


TEXTS = ["", "the", SENTENCE, "Ünïcode 日本 'tis the dog's 3.5", "x" * 300, "a _ b __ c", "ΣΑΣ İstanbul"]


@pytest.mark.parametrize(
    "name", ["standard", "simple", "whitespace", "stop", "pattern", "english", "keyword"]
)
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_what_detailed_says(name: str, text: str) -> None:
    analyzer = Analyzers.of({}).analyzer(name)
    detailed = analyzer.detailed(text)
    assert analyzer.tokens(text) == ([t.term for t in detailed], [t.position for t in detailed])


def test_types_with_parameters() -> None:
    analyzers = Analyzers.of(
        {
            "analyzer": {
                "short": {"type": "standard", "max_token_length": "5", "stopwords": "_english_"},
                "kept": {"type": "english", "stem_exclusion": ["running"]},
                "commas": {"type": "pattern", "pattern": ",", "lowercase": "false"},
                "default": {"type": "simple"},
            }
        }
    )
    assert analyzers.analyzer("short").tokens("the jumped") == (["jumpe", "d"], [1, 2])
    assert analyzers.analyzer("kept").tokens("running walking")[0] == ["running", "walk"]
    assert analyzers.analyzer("commas").tokens("A b,C,,d")[0] == ["A b", "C", "d"]
    assert analyzers.default == "default"


def test_custom() -> None:
    analyzers = Analyzers.of(
        {
            "analyzer": {
                "mine": {
                    "type": "custom",
                    "char_filter": ["html_strip", "smileys"],
                    "tokenizer": "dots",
                    "filter": ["lowercase", "asciifolding", "few"],
                    "position_increment_gap": 7,
                }
            },
            "char_filter": {"smileys": {"type": "mapping", "mappings": [":) => happy"]}},
            "tokenizer": {"dots": {"type": "pattern", "pattern": r"\."}},
            "filter": {"few": {"type": "stop", "stopwords": ["x"]}},
        }
    )
    mine = analyzers.analyzer("mine")
    assert mine.position_gap == 7
    assert mine.tokens("<b>Caf&eacute;</b>.X.:)") == (["cafe", "happy"], [0, 2])
    assert [(t.start_offset, t.end_offset) for t in mine.detailed("<b>Caf&eacute;</b>.X.:)")] == [
        *[(3, 18), (21, 23)],
    ]


def test_normalizers() -> None:
    analyzers = Analyzers.of(
        {"normalizer": {"plain": {"type": "custom", "filter": ["lowercase", "asciifolding"]}}}
    )
    assert analyzers.normalizer("plain").normalize("Straße CAFÉ") == "strasse cafe"
    assert analyzers.normalizer("lowercase").normalize("A b") == "a b"
    german = Analyzers.of({"normalizer": {"x": {"type": "custom", "filter": ["german_normalization"]}}})
    assert german.normalizer("x").normalize("Goethestraße") == "Gothestrasse"
    assert analyzers.analyzer("english").normalize("Foxes") == "foxes"
    with pytest.raises(SearchError, match=r"normalizer \[nope\] not found"):
        analyzers.normalizer("nope")


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"analyzer": {"x": {"tokenizer": "y"}}}, "Custom Analyzer [x] failed to find tokenizer under name [y]"),
    (
        {"analyzer": {"x": {"tokenizer": "standard", "filter": ["y"]}}},
        "Custom Analyzer [x] failed to find filter under name [y]",
    ),
    (
        {"analyzer": {"x": {"tokenizer": "standard", "char_filter": ["y"]}}},
        "Custom Analyzer [x] failed to find char_filter under name [y]",
    ),
    ({"analyzer": {"x": {"type": "custom"}}}, "Custom Analyzer [x] must be configured with a tokenizer"),
    ({"analyzer": {"x": {"type": "y"}}}, "Unknown analyzer type [y] for [x]"),
    ({"analyzer": {"x": {}}}, "analyzer [x] must specify either an analyzer type, or a tokenizer"),
    ({"normalizer": {"x": {"filter": ["stop"]}}}, "Custom normalizer [x] may not use filter [stop]"),
    (
        {"analyzer": {"x": {"tokenizer": "standard", "filter": ["s"]}}, "filter": {"s": {"type": "q"}}},
        "Unknown filter type [q] for [s]",
    ),
    (
        {
            "analyzer": {"x": {"tokenizer": "n"}},
            "tokenizer": {"n": {"type": "ngram", "min_gram": 1, "max_gram": 9}},
        },
        "The difference between max_gram and min_gram in NGram Tokenizer must be less than or equal to: "
        "[1] but was [8]. This limit can be set by changing the [index.max_ngram_diff] index level setting.",
    ),
    (
        {"analyzer": {"x": {"type": "klingon"}}},
        "Unknown analyzer type [klingon] for [x]",
    ),
    ({"analyzer": {"x": {"type": "pattern", "pattern": "("}}}, "Invalid pattern [(]"),
    (
        {"analyzer": {"x": {"type": "standard", "max_token_length": "many"}}},
        "Failed to parse value [many] for setting [max_token_length]",
    ),
]


@pytest.mark.parametrize(("settings", "reason"), ERRORS, ids=[reason[:60] for _, reason in ERRORS])
def test_errors(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        Analyzers.of(settings)
    assert (caught.value.kind, caught.value.status) == ("illegal_argument_exception", 400)
    assert caught.value.reason.startswith(reason)


def test_unknown_name() -> None:
    with pytest.raises(SearchError, match=r"analyzer \[nope\] has not been configured in mappings"):
        Analyzers.of({}).analyzer("nope")


def test_a_pattern_bomb_is_stopped() -> None:
    analyzers = Analyzers.of({"analyzer": {"x": {"type": "pattern", "pattern": "(a|aa|b?a)+$"}}})
    with pytest.raises(SearchError, match="takes too long"):
        analyzers.analyzer("x").tokens("a" * 5000 + "b")


@pytest.mark.parametrize("kind", ["analyzer", "normalizer", "tokenizer", "filter", "char_filter"])
@pytest.mark.parametrize("given", [1, "x", [{"a": 1}], True])
def test_definitions_are_objects(kind: str, given: object) -> None:
    used = {"tokenizer": "keyword", kind: "x" if kind == "tokenizer" else ["x"]}
    settings = {"analyzer": {"a": used}, kind: given}
    with pytest.raises(SearchError, match="must be an object: a definition for each name") as caught:
        Analyzers.of(settings)
    assert caught.value.status == 400
