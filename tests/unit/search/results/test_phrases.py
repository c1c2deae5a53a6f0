"""The suggester `phrase`, with the search for its best corrections against one that tries them all."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.results import SearchOptions
from graphdb.search.results.phrase_suggester import Candidate, best_corrections
from tests.unit.search.results.index import Index

TITLES = ["noble peace prize", "nobel prize", "nobel prize winner", "the nobel peace prize", "price of peace"]
TITLES += ["peace prize for a nobel winner", "nobel prize in physics", "prize"]
PROPERTIES = {
    "t": {"type": "text"},
    "k": {"type": "keyword"},
    "n": {"type": "long"},
    "typed": {"type": "search_as_you_type"},
}


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, [{"t": title, "k": title, "typed": title} for title in TITLES])


def options(index: Index, text: str, **phrase: Any) -> list[dict[str, Any]]:
    generators = [{"field": "t", "suggest_mode": "always", "max_term_freq": 100, "prefix_length": 1}]
    inner = {"field": "t", "direct_generator": generators, **phrase}
    found = index.search({"size": 0, "suggest": {"text": text, "x": {"phrase": inner}}})["suggest"]["x"]
    assert [(entry["text"], entry["offset"], entry["length"]) for entry in found] == [(text, 0, len(text))]
    answer: list[dict[str, Any]] = found[0]["options"]
    return answer


def texts(index: Index, text: str, **phrase: Any) -> list[str]:
    return [option["text"] for option in options(index, text, **phrase)]


def test_a_word_that_is_wrong(index: Index) -> None:
    assert texts(index, "nobel prixe")[0] == "nobel prize"
    assert texts(index, "nobel prize") == []
    assert texts(index, "nobel prize", confidence=0)[0] == "nobel prize"
    found = options(index, "nobel prixe", highlight={"pre_tag": "<em>", "post_tag": "</em>"})
    assert found[0]["highlighted"] == "nobel <em>prize</em>"


def test_errors_and_neighbours_in_a_highlight(index: Index) -> None:
    assert "nobel prize" not in texts(index, "nobal prixe")
    assert texts(index, "nobal prixe", max_errors=2)[0] == "nobel prize"
    tags = {"pre_tag": "[", "post_tag": "]"}
    found = options(index, "the nobal prixe", max_errors=0.6, highlight=tags)
    assert found[0]["highlighted"] == "the [nobel prize]"


def test_the_score_is_that_of_the_model(index: Index) -> None:
    """Of pairs of words, as shingles of the field's own would have them."""
    assert len(index.searcher.leaves) > 1  # so not the terms are counted, as in Lucene, but the documents
    total = sum(len(title.split()) for title in TITLES) + len(TITLES)
    found = options(index, "prixe", size=1)
    likely = 0.8 * (1 + sum(title.split().count("prize") for title in TITLES)) / total
    assert found == [{"text": "prize", "score": pytest.approx(math.exp(math.log10(likely)), rel=1e-6)}]


@pytest.mark.parametrize(
    "smoothing",
    [
        {"stupid_backoff": {"discount": 0.3}},
        {"laplace": {"alpha": 0.7}},
        {"linear_interpolation": {"trigram_lambda": 0.5, "bigram_lambda": 0.3, "unigram_lambda": 0.2}},
        {"linear": {"trigram_lambda": 0.5, "bigram_lambda": 0.3, "unigram_lambda": 0.2}},
    ],
)
def test_smoothings(index: Index, smoothing: Any) -> None:
    found = texts(index, "peace prixe winner", smoothing=smoothing, gram_size=3, confidence=0)
    assert "peace prize winner" in found


def test_suggestions_that_find_nothing_are_left_out_or_marked(index: Index) -> None:
    both = texts(index, "nobel prixe", confidence=0)
    assert {"nobel prize", "nobel price"} <= set(both)
    query: dict[str, Any] = {"source": {"match_phrase": {"{{field}}": "{{suggestion}}"}}}
    collate = {"query": query, "params": {"field": "t"}}
    kept = texts(index, "nobel prixe", confidence=0, collate=collate)
    assert "nobel prize" in kept
    assert "nobel price" not in kept
    marked = options(index, "nobel prixe", confidence=0, collate={**collate, "prune": True})
    assert [option["text"] for option in marked] == both
    assert {option["text"] for option in marked if option["collate_match"]} == set(kept)
    text = '{"match": {"t": {"query": "{{suggestion}}", "operator": "and"}}}'
    assert "nobel prize" in texts(index, "nobel prixe", collate={"query": {"source": text}})


def test_how_many_corrections_there_are(index: Index) -> None:
    few = texts(index, "nobel prixe", confidence=0, shard_size=1)
    assert few == texts(index, "nobel prixe", confidence=0, size=1)
    exact = {"field": "t", "suggest_mode": "always", "max_term_freq": 100, "accuracy": 0.9}
    assert texts(index, "nobel prixe", direct_generator=[exact]) == []


def test_frames(index: Index) -> None:
    body = {"size": 0, "suggest": {"x": {"text": "prixe", "phrase": {"field": "t"}}}}
    typed = index.search(body, SearchOptions(typed_keys=True))["suggest"]
    assert [option["text"] for option in typed["phrase#x"][0]["options"]] == ["prize", "price"]
    assert texts(index, " ".join(["prixe"] * 10)) == []  # token_limit
    assert texts(index, " ".join(["prixe"] * 2), token_limit=2) == []
    assert texts(index, " ".join(["prixe"] * 2), token_limit=3) != []
    assert texts(index, "...") == []
    assert texts(Index(PROPERTIES, [{"n": 1}]), "prixe") == []


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ({"field": "no"}, "no mapping found"),
        ({"field": "n"}, "has no terms"),
        ({"field": "t", "gram_size": 4}, "gram_size must be at most"),
        ({"field": "t", "size": 101}, "size must be positive"),
        ({"field": "t", "max_errors": 0}, "max_error must be"),
        ({"field": "t", "confidence": -1}, "confidence must be"),
        ({"field": "t", "real_word_error_likelihood": 2}, "real_word_error_likelihood"),
        ({"field": "t", "token_limit": 1_000}, "token_limit"),
        ({"field": "t", "collate": {"query": {}}}, "needs the .source."),
        ({"field": "t", "collate": {"query": {"source": "{"}}}, "no JSON"),
        ({"field": "t", "collate": {"query": {"source": {"x": {}}}}}, "unknown query"),
        ({"field": "t", "shard_size": 0}, "shard_size must be"),
        ({"field": "t", "smoothing": {"x": {}}}, "smoothing"),
        ({"field": "t", "smoothing": {"laplace": {"alpha": -1}}}, "must be positive"),
        ({"field": "t", "smoothing": {"linear_interpolation": {"trigram_lambda": 1}}}, "must be positive"),
        ({"field": "t", "highlight": {"pre_tag": "x"}}, "Pre and post tag"),
        ({"field": "t", "direct_generator": [{"field": "t", "size": 21}]}, "at most"),
        ({"field": "t", "direct_generator": [{"field": "t"}] * 11}, "at most"),
        ({"field": "t", "direct_generator": [{"field": "t", "pre_filter": "no"}]}, "has not been configured"),
        ({"field": "t", "no": 1}, "unknown field"),
    ],
)
def test_refused(index: Index, phrase: Any, reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        index.search({"suggest": {"text": "prixe", "x": {"phrase": phrase}}})


chosen_places = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    chosen_places, st.integers(0, 3), st.integers(1, 6), st.integers(1, 3), st.randoms(use_true_random=False)
)
def test_the_best_corrections_are_the_best_of_all(
    counts: list[int], errors: int, size: int, gram_size: int, random: Any
) -> None:
    places = [
        [Candidate(f"{at}{n}", 1.0 if n == 0 else 0.8) for n in range(count)]
        for at, count in enumerate(counts)
    ]
    table: dict[tuple[Candidate, ...], float] = {}

    def score(words: tuple[Candidate, ...]) -> float:
        return table.setdefault(words, random.choice([0.1, 0.01, 0.5, random.random(), 0.0]))

    def whole(chosen: tuple[int, ...]) -> float:
        words = [places[at][number] for at, number in enumerate(chosen)]
        cost = 0.0
        for at in range(len(words)):
            probability = score(tuple(words[max(0, at + 1 - gram_size) : at + 1]))
            cost += -math.log10(probability) if probability else math.inf
        return math.exp(-cost)

    every = [
        chosen
        for chosen in itertools.product(*(range(count) for count in counts))
        if sum(number > 0 for number in chosen) <= errors
    ]
    expected = sorted((whole(chosen) for chosen in every), reverse=True)[:size]
    found = best_corrections(places, errors, size, gram_size, score)
    assert [value for value, _ in found] == pytest.approx(expected)
    assert [whole(chosen) for _, chosen in found] == pytest.approx(expected)
    assert len({chosen for _, chosen in found}) == len(found)


# Fields that are typed into, and counts of tokens.


def test_search_as_you_type(index: Index) -> None:
    fields = ["typed", "typed._2gram", "typed._3gram"]

    def found(text: str) -> list[str]:
        query = {"multi_match": {"query": text, "type": "bool_prefix", "fields": fields, "operator": "and"}}
        return sorted(TITLES[int(name)] for name in index.ids(query=query, size=20))

    assert found("nobel pri") == sorted(title for title in TITLES if "nobel" in title and " pri" in title)
    assert found("phys") == ["nobel prize in physics"]
    one = index.ids(query={"match_bool_prefix": {"typed._3gram": "nobel peace pri"}})
    assert [TITLES[int(name)] for name in one] == ["the nobel peace prize"]
    prefixed = index.ids(query={"term": {"typed._index_prefix": "nobel peace pr"}})
    assert [TITLES[int(name)] for name in prefixed] == ["the nobel peace prize"]
    assert index.ids(query={"term": {"typed._index_prefix": "winn"}}, size=20) == ["2", "5"]
    assert index.ids(query={"match_phrase_prefix": {"typed": "peace prize f"}}) == ["5"]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 20, 21, 25])
def test_a_prefix_of_what_is_typed_may_span_words(index: Index, length: int) -> None:
    """Up to as many words as shingles have, and as many characters as are indexed of a beginning."""
    for start in ("nobel prize in physics", "winners", "the nobel peace prize"):
        prefix = start[:length]
        expected = {
            number
            for number, title in enumerate(TITLES)
            for place in range(len(title.split()))
            if " ".join(title.split()[place : place + 3]).startswith(prefix)
        }
        if length > 20:  # then the words by themselves are looked at
            expected = set()
        found = index.ids(query={"prefix": {"typed": prefix}}, size=20)
        assert set(map(int, found)) == expected, prefix


def test_token_count() -> None:
    count = {"type": "token_count", "analyzer": "standard"}
    bare = {"type": "token_count", "analyzer": "stop", "enable_position_increments": False}
    stopped = {"type": "token_count", "analyzer": "stop"}
    fields = {"count": count, "bare": bare, "stopped": stopped}
    index = Index({"t": {"type": "text", "fields": fields}}, [{"t": "one two of"}, {"t": ["a", "b c d"]}])
    assert index.ids(query={"term": {"t.count": 3}}) == ["0", "1"]
    assert index.ids(query={"term": {"t.bare": 2}}) == ["0"]
    assert index.hits(fields=["t.*"])[0]["fields"] == {"t.count": [3], "t.bare": [2], "t.stopped": [3]}
    assert index.ids(query={"term": {"t.stopped": 3}}) == ["0", "1"]
    with pytest.raises(SearchError, match=r"Field \[analyzer\] is required"):
        Index({"n": {"type": "token_count"}}, [])
