"""Stemmers, and Porter's against a twin that follows his paper."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis.kstem import kstem
from graphdb.search.analysis.stemmers import porter, possessive, snowball, stemmer
from graphdb.search.errors import SearchError
from tests.unit.search.analysis.porter_twin import stem

ENDINGS = ["", "s", "ies", "sses", "eed", "ed", "ing", "y", "bly", "bli", "blies", "logy", "logies", "logi"]
ENDINGS += ["ational", "ization", "fulness", "icate", "ement", "ion", "tion", "e", "ll", "blying", "logied"]
words = st.builds(str.__add__, st.text("yaeibgst", max_size=7), st.sampled_from(ENDINGS))


departing = st.builds(
    str.__add__, st.text("yaelt", max_size=6), st.sampled_from(["bly", "blies", "logy", "logi"])
)


@settings(max_examples=500, deadline=None)
@given(words | departing)
def test_porter_is_that_of_the_paper_with_the_departures(word: str) -> None:
    assert porter(word) == stem(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *[("is", "is"), ("as", "as"), ("ponies", "poni"), ("relational", "relat"), ("running", "run")],
        *[
            ("possibly", "possibl"),
            ("trekked", "trek"),
            ("byyed", "by"),
            ("archaeology", "archaeolog"),
            ("geology", "geologi"),
            ("sky", "sky"),
        ],
    ],
)
def test_porter(word: str, expected: str) -> None:
    assert porter(word) == expected


def test_possessive() -> None:
    assert [possessive(word) for word in ("dog's", "DOG'S", "dog\u2019s", "dogs'", "s", "'s")] == [
        *["dog", "DOG", "dog", "dogs'", "s", ""],
    ]


def test_minimal_english() -> None:
    minimal = stemmer("minimal_english")
    given_words = ["foxes", "ponies", "dogs", "bus", "glass", "shoes", "ties", "is", "genes"]
    assert [minimal(word) for word in given_words] == [
        *["foxe", "pony", "dog", "bus", "glass", "shoes", "ty", "is", "gene"],
    ]


@pytest.mark.parametrize(
    ("name", "words", "stems"),
    [
        (
            "spanish_plural",
            "casas leyes voces parques lunes clubes jerséis abades",
            "casa ley voz parque lunes club jersey abad",
        ),
        (
            "portuguese_rslp",
            "meninas quilométricas balões felizmente amigos",
            "menin quilometr bal feliz amig",
        ),
        ("minimal_portuguese", "balões mães lápis", "balão mãe lápis"),
    ],
)
def test_stemmers_of_portuguese_and_spanish(name: str, words: str, stems: str) -> None:
    """All words of the rules are compared with Lucene's in tests/conformance."""
    assert [stemmer(name)(word) for word in words.split()] == stems.split()


def test_languages() -> None:
    assert snowball("English")("generously") == "generous"
    assert stemmer("porter2")("generously") == "generous"
    assert stemmer("english")("generously") == "gener"
    assert stemmer("russian")("важные") == "важн"


@pytest.mark.parametrize(
    ("language", "reason"),
    [("klingon", "Invalid stemmer class specified"), ("lovins", "not supported")],
)
def test_what_there_is_not_is_an_error(language: str, reason: str) -> None:
    with pytest.raises(SearchError, match=re.escape(reason)):
        stemmer(language)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *[("ponies", "pony"), ("dogs", "dog"), ("focuses", "focus"), ("goes", "go"), ("glass", "glass")],
        *[
            ("developing", "develop"),
            ("stepped", "step"),
            ("hoped", "hope"),
            ("dying", "die"),
            ("unxed", "unxed"),
        ],
        *[
            ("hopefulness", "hopeful"),
            ("organizations", "organize"),
            ("happily", "happy"),
            ("probably", "probable"),
        ],
        *[("mexicans", "mexico"), ("knives", "knives"), ("during", "during"), ("geology", "geology")],
        *[("s", "s"), ("cat's", "cat's"), ("Dogs", "Dogs"), ("dogs" * 13, "dogs" * 13), ("", "")],
    ],
)
def test_krovetz(word: str, expected: str) -> None:
    assert kstem(word) == expected
    assert kstem(expected) == expected


@given(st.text("aeioustyngldbrczm", max_size=12))
def test_krovetz_takes_any_word(word: str) -> None:
    assert len(kstem(word)) <= len(word) + 2
    assert bool(kstem(word)) == bool(word)
