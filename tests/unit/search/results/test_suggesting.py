"""`suggest`: terms that are like the words of a text."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.results import SearchOptions
from tests.unit.search.results.index import Index

TEXTS = ["amsterdam", "rotterdam", "amsterdam harbour", "damsterdam", "amsterdom amsterdam", "the amsterda"]


@pytest.fixture(scope="module")
def index() -> Index:
    properties = {"t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "long"}}
    return Index(properties, [{"t": text, "k": text, "n": 1} for text in TEXTS])


def suggested(index: Index, text: str, **term: Any) -> list[dict[str, Any]]:
    body = {"size": 0, "suggest": {"text": text, "x": {"term": {"field": "t", **term}}}}
    options: list[dict[str, Any]] = index.search(body)["suggest"]["x"]
    return options


def terms(index: Index, text: str, **term: Any) -> list[str]:
    return [option["text"] for word in suggested(index, text, **term) for option in word["options"]]


def test_a_word_that_no_document_has(index: Index) -> None:
    assert suggested(index, "the amsterdma") == [
        {"text": "the", "offset": 0, "length": 3, "options": []},
        {
            "text": "amsterdma",
            "offset": 4,
            "length": 9,
            "options": [
                {"text": "amsterdam", "score": pytest.approx(8 / 9, rel=1e-6), "freq": 3},
                {"text": "amsterda", "score": 0.875, "freq": 1},
                {"text": "amsterdom", "score": pytest.approx(7 / 9, rel=1e-6), "freq": 1},
            ],
        },
    ]


def test_which_words_and_which_terms(index: Index) -> None:
    assert terms(index, "amsterdom") == []  # a document has it
    assert terms(index, "amsterdom", suggest_mode="always", max_term_freq=0.5)[0] == "amsterdam"
    assert terms(index, "amsterdom", suggest_mode="popular", max_term_freq=0.5) == ["amsterdam"]
    assert terms(index, "amsterdom", suggest_mode="always", max_term_freq=0.0) == []
    assert terms(index, "amsterdma", max_edits=1, size=1) == ["amsterdam"]
    assert terms(index, "amsterdma", min_doc_freq=2) == ["amsterdam"]
    assert terms(index, "xamsterdam") == []  # the first character has to be the same
    assert terms(index, "xamsterdam", prefix_length=0)[:2] == ["damsterdam", "amsterdam"]
    # as in Lucene, two edits spare the first character whatever is said
    assert "amsterdam" not in terms(index, "xxmsterdam", prefix_length=0)
    assert terms(index, "amsterdma", accuracy=0.88) == ["amsterdam"]
    assert terms(index, "amsterdma", accuracy=1) == []
    assert terms(index, "amsterdma", shard_size=1) == ["amsterdam"]
    assert terms(index, "amsterdma", shard_size=2, sort="frequency") == ["amsterdam", "amsterda"]
    assert terms(index, "teh") == []  # shorter than min_word_length
    assert terms(index, "teh", min_word_length=3) == ["the"]
    assert (
        terms(index, "amsterda harbour", sort="frequency", suggest_mode="always", max_term_freq=9)[0]
        == "amsterdam"
    )


def test_beside_hits_and_with_types(index: Index) -> None:
    body = {
        "query": {"match": {"t": "harbour"}},
        "suggest": {
            "a": {"text": "harbor", "term": {"field": "t"}},
            "b": {"text": "rotterdm", "term": {"field": "k"}},
        },
    }
    answer = index.search(body, SearchOptions(typed_keys=True))
    assert answer["hits"]["total"]["value"] == 1
    found = {
        name: [option["text"] for option in words[0]["options"]] for name, words in answer["suggest"].items()
    }
    assert found == {"term#a": ["harbour"], "term#b": ["rotterdam"]}


@pytest.mark.parametrize(
    ("distance", "score"),
    [("internal", 8 / 9), ("levenshtein", 7 / 9), ("jaro_winkler", 0.989), ("ngram", 0.833)],
)
def test_distances(index: Index, distance: str, score: float) -> None:
    found = suggested(index, "amsterdma", string_distance=distance)[0]["options"]
    (score_of,) = [option["score"] for option in found if option["text"] == "amsterdam"]
    assert score_of == pytest.approx(score, abs=0.001)


@pytest.mark.parametrize(
    ("suggest", "reason"),
    [
        ({"a": {"term": {"field": "t"}}}, "text option is missing"),
        ({"text": "x", "a": {"term": {}}}, "field option is missing"),
        ({"text": "x", "a": {"term": {"field": "no"}}}, "no mapping found for field"),
        ({"text": "x", "a": {"term": {"field": "n"}}}, "has no terms"),
        ({"text": "x", "a": {}}, "needs one suggester"),
        ({"text": "x", "a": {"words": {}}}, "unknown field"),
        ({"text": "x", "a": {"term": {"field": "t", "string_distance": "no"}}}, "Illegal distance option"),
        ({"text": "x", "a": {"term": {"field": "t", "max_edits": 3}}}, "between 1 and 2"),
        ({"text": "x", "a": {"term": {"field": "t", "accuracy": 2}}}, "accuracy must be between 0 and 1"),
        ({"text": "x", "a": {"term": {"field": "t", "max_inspections": -1}}}, "maxInspections must be"),
        ({"text": "x", "a": {"term": {"field": "t", "suggest_mode": "no"}}}, "No enum constant"),
        ({"text": "x", "a": {"term": {"field": "t", "sort": "no"}}}, "Illegal suggest sort"),
        ({"text": "x", "a": {"term": {"field": "t", "size": 0}}}, "size must be positive"),
        ({"text": "x", "a": {"term": {"field": "t", "max_term_freq": 1.5}}}, "a frequency is"),
        ({"text": "x " * 1_001, "a": {"term": {"field": "t"}}}, "takes at most"),
        ([], "Unknown key for a START_ARRAY in .suggest."),
    ],
)
def test_refused(index: Index, suggest: Any, reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        index.search({"suggest": suggest})
