"""`condition`, `predicate_token_filter` and `dictionary_decompounder`: the examples of the documentation.

`min_hash` beside Lucene 9.12.
"""

from typing import Any

import pytest

from graphdb.errors import QueryTimeout
from graphdb.search.analysis import Analyzers
from graphdb.search.deadline import limited
from graphdb.search.errors import SearchError

Definition = dict[str, Any]


def terms(text: str, *filters: str | Definition, tokenizer: str = "standard") -> list[tuple[str, int]]:
    definitions = {f"f{number}": one for number, one in enumerate(filters) if isinstance(one, dict)}
    names = [f"f{number}" if isinstance(one, dict) else one for number, one in enumerate(filters)]
    settings = {"filter": definitions, "analyzer": {"a": {"tokenizer": tokenizer, "filter": names}}}
    tokens = Analyzers.of(settings).analyzer("a").detailed(text)
    return [(token.term, token.position) for token in tokens]


def condition(source: str, *names: str, **script: Any) -> Definition:
    return {"type": "condition", "filter": list(names), "script": {"source": source, **script}}


def predicate(source: str, **params: Any) -> Definition:
    return {"type": "predicate_token_filter", "script": {"source": source, "params": params}}


def test_a_condition_chooses_tokens() -> None:
    short = condition("token.getTerm().length() < 5", "lowercase")
    assert terms("THE QUICK BROWN FOX", short) == [("the", 0), ("QUICK", 1), ("BROWN", 2), ("fox", 3)]
    limited = condition("token.term.length() < params.most", "lowercase", params={"most": 4})
    assert terms("THE LAZY", limited) == [("the", 0), ("LAZY", 1)]
    assert terms("THE LAZY", condition("true", "lowercase", "stop")) == [("lazy", 1)]
    assert terms("one two", condition("token.position == 1", "reverse", "uppercase")) == [
        ("one", 0),
        ("OWT", 1),
    ]


def test_filters_of_a_condition_may_make_several() -> None:
    assert terms(
        "Wi-Fi is", condition("token.startOffset == 0", "word_delimiter"), tokenizer="whitespace"
    ) == [
        ("Wi", 0),
        ("Fi", 1),
        ("is", 1),
    ]


def test_a_predicate_leaves_holes() -> None:
    text = "What Flapped O'er the Door"
    long = predicate("token.term.length() > 3")
    assert terms(text, long) == [("What", 0), ("Flapped", 1), ("O'er", 2), ("Door", 4)]


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("token.getType() == '<NUM>'", ["7"]),
        ("token.type == '<ALPHANUM>' && token.endOffset < 6", ["ab"]),
        ("token.getPosition() > 0 && token.getStartOffset() > 2", ["7", "cd"]),
        ("token.isKeyword()", ["cd"]),
        ("token.keyword == false && token.positionLength == 1 && token.positionIncrement == 1", ["ab", "7"]),
        ("if (token.term.startsWith('c')) { return true } return false", ["cd"]),
    ],
)
def test_what_a_script_sees(source: str, kept: list[str]) -> None:
    marker = {"type": "keyword_marker", "keywords": ["cd"]}
    assert [term for term, _ in terms("ab 7 cd", marker, predicate(source))] == kept


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"type": "condition", "filter": ["lowercase"]}, r"\[script\] is missing"),
        ({"type": "condition", "script": "true"}, r"requires \[filter\]"),
        (condition("true", "nothing"), "nothing"),
        (condition("token.", "lowercase"), "compile"),
        (predicate("doc['a'].value > 1"), "compile"),
    ],
)
def test_what_cannot_be_made_is_refused(definition: Definition, reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        terms("a", definition)


def test_a_script_that_fails() -> None:
    for source in ("1", "token.nothing == 1", "token.term.substring(9) == ''"):
        with pytest.raises(SearchError, match="runtime error"):
            terms("a", predicate(source))


def test_what_a_script_does_for_one_text_is_bounded() -> None:
    """By how long the text is: who writes many texts is not to keep those waiting who write others."""
    loop = predicate("int n = 0; for (int i = 0; i < params.n; i++) { n += i } return n >= 0", n=50)
    assert len(terms("a b c", loop)) == 3
    with pytest.raises(SearchError, match="runtime error"):
        terms("a " * 500, loop)
    assert len(terms("a b c", loop)) == 3
    with pytest.raises(SearchError, match="runtime error"):
        terms("a", predicate("int n = 0; for (int i = 0; i < 10000; i++) { n += i } return n > 0"))
    plain = predicate("token.term.length() > 3 && !token.term.contains('b') && token.type == '<ALPHANUM>'")
    assert len(terms("abcd efgh " * 5_000, plain)) == 5_000


def test_what_a_script_does_for_a_long_text_is_bounded() -> None:
    """Other writes wait for it: all nodes have to come to the same, so that no clock may end it."""
    large = predicate("params.n.size() > 0", n=list(range(100)))
    assert len(terms("a " * 1_000, large)) == 1_000
    with pytest.raises(SearchError, match="runtime error") as told:
        terms("a " * 100_000, large)
    assert told.value.cause is not None
    assert "at most [5000000]" in told.value.cause.reason


def test_a_search_that_analyzes_a_long_text_ends_with_its_time() -> None:
    def look() -> None:
        raise QueryTimeout("over")

    with limited(look), pytest.raises(QueryTimeout):
        terms("a " * 10_000, predicate("token.position > 3 || token.term.length() > 0"))


def test_large_params_count_for_each_token() -> None:
    large = predicate("params.n.size() > 0", n=list(range(1_000)))
    assert len(terms("a b c", large)) == 3
    with pytest.raises(SearchError, match="runtime error"):
        terms("a " * 5_000, large)


def test_a_condition_names_no_condition() -> None:
    settings = {"filter": {"inner": condition("true", "lowercase"), "outer": condition("true", "inner")}}
    with pytest.raises(SearchError, match="may not name the condition"):
        Analyzers.of({**settings, "analyzer": {"a": {"tokenizer": "standard", "filter": ["outer"]}}})


def decompounder(*words: str, **more: Any) -> Definition:
    return {"type": "dictionary_decompounder", "word_list": list(words), **more}


def test_parts_of_compound_words() -> None:
    found = terms("Donaudampfschiff", decompounder("Donau", "dampf", "meer", "schiff"))
    assert found == [("Donaudampfschiff", 0), ("Donau", 0), ("dampf", 0), ("schiff", 0)]
    ship = decompounder("schiff", "schifffahrt", "fahrt")
    assert terms("dampfschifffahrt x", ship) == [
        ("dampfschifffahrt", 0),
        ("schiff", 0),
        ("schifffahrt", 0),
        ("fahrt", 0),
        ("x", 1),
    ]
    longest = decompounder("schiff", "schifffahrt", "fahrt", only_longest_match=True)
    assert [term for term, _ in terms("dampfschifffahrt", longest)][1:] == ["schifffahrt", "fahrt"]
    assert terms("ab abcde", decompounder("ab", min_word_size=3)) == [("ab", 0), ("abcde", 1), ("ab", 1)]
    assert terms("abcde", decompounder("a", "abcd", min_subword_size=2, max_subword_size=3)) == [("abcde", 0)]
    with pytest.raises(SearchError, match="word_list must be provided"):
        terms("a", {"type": "dictionary_decompounder"})
    with pytest.raises(SearchError, match=r"use \[dictionary_decompounder\]"):
        terms("a", {"type": "hyphenation_decompounder"})


# The bytes of the first terms that Lucene's MinHashFilter made of each text.
SKETCHES: dict[tuple[int, int, int, bool], tuple[str, int, str]] = {
    (2, 7, 1, True): (
        "g9 alpha4 g0 éé7 d6 f6 a9 b2 日本1 alpha2 b3",
        14,
        "0000e1aca2eaa4a8eea7b6e69bb8e79182e88a87 0000e484b2eba2adebab8eeb9797e3b0bce587b4 "
        "0000e4af92eb81b4eb9987e28c98eca3a5eab5a3 0000eba1aeeeb790efbfbdeab1b0efa683ee84a6",
    ),
    (1, 4, 3, False): (
        "e6 g4 a8 a9 日本8 d6 d3 日本0 éé9 e2 f5 c9 d1 f3 e9 éé4 beta1",
        12,
        "e182afeaa280e5a4b3ebbdb6e0b3a4e9a48fe7a8a5e79ba9 e18a8be3b6a8ef83ade7bf83ed91b8e79894e49eb8eeaabd "
        "e1aca2eaa4a8eea7b6e69bb8e79182e88a87e0b488eeb0b6 e4978ceea18eecaa94e8b4bdecbf86e3a7a0c6afe0aebd",
    ),
}


@pytest.mark.parametrize("given", SKETCHES, ids=str)
def test_sketches_are_lucenes(given: tuple[int, int, int, bool]) -> None:
    (hashes, buckets, size, rotation), (text, count, first) = given, SKETCHES[given]
    sketch = {"hash_count": hashes, "bucket_count": buckets, "hash_set_size": size, "with_rotation": rotation}
    found = terms(text, {"type": "min_hash", **sketch}, tokenizer="whitespace")
    assert len(found) == count
    assert {position for _, position in found} == {0}
    assert [term.encode().hex() for term, _ in found[:4]] == first.split()


def test_sketches_of_like_texts_are_alike() -> None:
    text = "the quick brown fox jumps over the lazy dog and runs through the old forest to the river"

    def sketch(of: str) -> list[str]:
        return [term for term, _ in terms(of, "lowercase", "min_hash")]

    assert len(sketch(text)) == 512
    assert sketch(text) == sketch(text.upper())
    equal = [
        one == other for one, other in zip(sketch(text), sketch(text.replace("fox", "cat")), strict=True)
    ]
    assert 256 < sum(equal) < 512
    assert sketch("") == []
    with pytest.raises(SearchError, match="makes more than"):
        terms("a", {"type": "min_hash", "hash_count": 1000, "bucket_count": 1000})
