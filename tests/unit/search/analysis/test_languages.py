"""Analyzers and stemmers of languages, against what Lucene 9.12 makes of words of Snowball's vocabularies."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphdb.search.analysis import Analyzers, analyze
from graphdb.search.analysis.asian_stemmers import ASIAN_STEMMERS
from graphdb.search.analysis.language_analyzers import LANGUAGE_ANALYZERS
from graphdb.search.analysis.light_stemmers import LIGHT_STEMMERS
from graphdb.search.analysis.stemmers import snowball, stemmer
from graphdb.search.analysis.stop_words import stop_words
from graphdb.search.analysis.thai import ThaiTokenizer
from graphdb.search.errors import SearchError

LUCENE = json.loads(Path(__file__).with_name("language_terms.json").read_text("utf-8"))
BUILT_IN = Analyzers.of({})


@pytest.mark.parametrize("language", sorted(LUCENE["analyzers"]))
def test_analyzers_give_lucenes_terms(language: str) -> None:
    analyzer, expected = BUILT_IN.analyzer(language), LUCENE["analyzers"][language]
    assert {text: "|".join(analyzer.tokens(text)[0]) for text in expected} == expected


# Of these Lucene stems some words otherwise.
OTHER_STEMS = {
    "brazilian": ("os gatos da boataria", ["gat", "boat"]),
    "galician": ("corresponderá aos amigos", ["correspond", "amig"]),
    "greek": ("Οι άνθρωποι διαβάζουν την πόλη", ["ανθρωπ", "διαβαζ", "πολ"]),
}


def test_all_others_have_been_compared_with_lucene() -> None:
    others = LANGUAGE_ANALYZERS.keys() - LUCENE["analyzers"].keys()
    assert others == {"snowball", "thai", *OTHER_STEMS}  # of any language; cut by a model of its own


@pytest.mark.parametrize("language", sorted(OTHER_STEMS))
def test_analyzers_with_other_stemmers_than_lucenes(language: str) -> None:
    text, expected = OTHER_STEMS[language]
    assert BUILT_IN.analyzer(language).tokens(text)[0] == expected


@pytest.mark.parametrize("name", sorted(LUCENE["stemmers"]))
def test_stemmers_give_lucenes_stems(name: str) -> None:
    stem, expected = stemmer(name), LUCENE["stemmers"][name]
    assert {word: stem(word) for word in expected} == expected


def terms(analysis: Any, text: str) -> list[str]:
    return Analyzers.of({"analyzer": {"a": analysis}}).analyzer("a").tokens(text)[0]


def test_stop_words_and_exclusions_of_an_analyzer() -> None:
    text = "les chevaux et la maison"
    assert terms({"type": "french"}, text) == ["cheval", "maison"]
    assert terms({"type": "french", "stem_exclusion": ["chevaux"]}, text) == ["chevaux", "maison"]
    assert terms({"type": "french", "stopwords": ["chevaux"]}, "la chevaux") == ["la"]
    assert terms({"type": "french", "stopwords": "_none_"}, "la") == ["la"]
    # In this chain the exclusion stands before the normalization of umlauts.
    assert terms({"type": "german", "stem_exclusion": ["häuser"]}, "Häuser Bäume") == ["hauser", "baum"]


def test_stop_words_of_a_language_in_a_filter() -> None:
    found = analyze(
        {
            "tokenizer": "standard",
            "filter": ["lowercase", {"type": "stop", "stopwords": ["_german_", "haus"]}],
            "text": "Das Haus und der Baum",
        },
        None,
    )
    assert [token["token"] for token in found["tokens"]] == ["baum"]
    assert stop_words(["_klingon_"]) == {"_klingon_"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("การที่ได้ต้องแสดงว่างานดี", "การ ที่ ได้ ต้อง แสดง ว่า งาน ดี"),  # of the documentation of Lucene
        ("วันนี้เป็นวันดี Hello, บริษัทนี้ผลิตรถยนต์ 24", "วัน นี้ เป็น วัน ดี Hello บริษัท นี้ ผลิต รถยนต์ 24"),
        ("รถ-ไฟ ที่นี่ 3.5 ไทย๒๕๐๐", "รถ ไฟ ที่ นี่ 3.5 ไทย ๒๕๐๐"),
        ("no Thai", "no Thai"),
        ("", ""),
    ],
)
def test_thai_words(text: str, words: str) -> None:
    tokenizer = ThaiTokenizer()
    tokens = tokenizer.tokens(text)
    assert [token.term for token in tokens] == tokenizer.terms(text) == words.split()
    assert [text[token.start_offset : token.end_offset] for token in tokens] == words.split()
    assert [token.position for token in tokens] == list(range(len(tokens)))


def test_the_analyzer_of_thai() -> None:
    terms, positions = BUILT_IN.analyzer("thai").tokens("การที่ได้ต้องแสดงว่างานดี ๒๕๐๐ ABC")
    assert list(zip(terms, positions, strict=True)) == [
        ("แสดง", 4),
        ("งาน", 6),
        ("ดี", 7),
        ("2500", 8),
        ("abc", 9),
    ]
    assert len(stop_words(["_thai_"])) > 50


@pytest.mark.parametrize(
    ("filters", "text", "expected"),
    [
        (["kstem"], "organizations", "organize"),
        ([{"type": "stemmer", "language": "lightEnglish"}], "ponies", "pony"),
        (["hunspell"], "x", "failed to find global filter under [hunspell]"),
        ([{"type": "hunspell", "locale": "en_US"}], "x", "dictionaries cannot be installed"),
        (
            [{"type": "lowercase", "language": "klingon"}],
            "x",
            "language [klingon] not support for lower case",
        ),
        ([{"type": "snowball", "language": "Lovins"}], "x", "the stemmer [Lovins] is not supported"),
        ([{"type": "lowercase", "language": "greek"}], "Σίσυφος", "σισυφοσ"),
        ([{"type": "lowercase", "language": "irish"}], "nAthair", "n-athair"),
        ([{"type": "stemmer", "language": "lightFrench"}], "chevaux", "cheval"),
        ([{"type": "stemmer", "language": "german"}], "häuser", "haus"),
        ([{"type": "snowball", "language": "Hungarian"}], "házaknak", "ház"),
        (["french_stem"], "maisons", "maison"),
        (["hindi_normalization"], "\u0905\u0928\u094d\u0928", "\u0905\u0902\u0928"),
        (
            ["indic_normalization"],
            "\u0905\u093e\u0948",
            "\u0914",
        ),
    ],
)
def test_filters(filters: list[Any], text: str, expected: str) -> None:
    body = {"tokenizer": "keyword", "filter": filters, "text": text}
    if " " in expected:
        with pytest.raises(SearchError) as caught:
            analyze(body, None)
        assert expected in caught.value.reason
    else:
        assert [token["token"] for token in analyze(body, None)["tokens"]] == [expected]


def test_every_name_of_a_stemmer_gives_one() -> None:
    for name in (*LIGHT_STEMMERS, *ASIAN_STEMMERS):
        assert [stemmer(name)(word) for word in ("", "a")] == ["", "a"]
    assert snowball("German")("häuser") == snowball("German2")("häuser")


WEB = "Mail to john.smith@example.org, or see http://example.com/a?b=1#c (example.net:8080/x) and v1.2"


def found(tokenizer: Any, text: str) -> list[tuple[str, str]]:
    answer = analyze({"tokenizer": tokenizer, "text": text}, None)
    return [(token["token"], token["type"]) for token in answer["tokens"]]


def test_uax_url_email() -> None:
    assert [pair for pair in found("uax_url_email", WEB) if pair[1] != "<ALPHANUM>"] == [
        ("john.smith@example.org", "<EMAIL>"),
        ("http://example.com/a?b=1#c", "<URL>"),
        ("example.net:8080/x", "<URL>"),
    ]
    tokens = analyze({"tokenizer": "uax_url_email", "text": WEB}, None)["tokens"]
    assert [WEB[token["start_offset"] : token["end_offset"]] for token in tokens] == [
        token["token"] for token in tokens
    ]


def test_classic() -> None:
    text = "The I.B.M. of O'Neil's AT&T, wi-fi XL-5000 a1-b2 foo@bar.com www.host.org 漢字"
    assert found("classic", text)[1:] == [
        *[("I.B.M.", "<ACRONYM>"), ("of", "<ALPHANUM>"), ("O'Neil's", "<APOSTROPHE>"), ("AT&T", "<COMPANY>")],
        *[("wi", "<ALPHANUM>"), ("fi", "<ALPHANUM>"), ("XL-5000", "<NUM>"), ("a1-b2", "<NUM>")],
        *[("foo@bar.com", "<EMAIL>"), ("www.host.org", "<HOST>"), ("漢", "<CJ>"), ("字", "<CJ>")],
    ]
    assert (
        analyze({"tokenizer": {"type": "classic", "max_token_length": 2}, "text": "a long b"}, None)[
            "tokens"
        ][1]["position"]
        == 2
    )


@pytest.mark.parametrize("tokenizer", ["classic", "uax_url_email"])
def test_long_texts_take_time_in_proportion(tokenizer: str) -> None:
    """Each is a run that a careless pattern would read again from every place in it."""
    for part in ("a-", "a.", "a@", "a1_", "http://", "x@y.", "a"):
        assert len(found(tokenizer, part * 9_000)) < 10_001


def test_simple_patterns() -> None:
    simple = {"type": "simple_pattern", "pattern": "a|ab|abc|[0-9]{2}"}
    assert [term for term, _ in found(simple, "abcx12345ab")] == ["abc", "12", "34", "ab"]
    split = {"type": "simple_pattern_split", "pattern": "_+"}
    assert [term for term, _ in found(split, "a__b_c")] == ["a", "b", "c"]
    assert found({"type": "simple_pattern"}, "abc") == []
    assert [term for term, _ in found({"type": "simple_pattern", "pattern": "^a$"}, "^a$")] == ["^a$"]
    for pattern in ("~a", "a&b", "<1-9>", "@"):
        with pytest.raises(SearchError, match="the operators"):
            found({"type": "simple_pattern", "pattern": pattern}, "a")


@pytest.mark.parametrize(
    "name", ["standard\x1f9", "standard\x1fx", "standard\x1f999999999p", "no\x1f2", "\x1f"]
)
def test_names_of_derived_analyzers_are_bounded(name: str) -> None:
    with pytest.raises(SearchError, match="failed to find"):
        analyze({"analyzer": name, "text": "a b"}, BUILT_IN)
