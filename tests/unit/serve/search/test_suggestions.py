"""Suggesters and analyzers of languages over HTTP, by the official client."""

from collections.abc import Iterator

import pytest
from elasticsearch import BadRequestError, Elasticsearch

from tests.support.timing import HANG_S

SONGS = {
    "s": {"type": "completion", "contexts": [{"name": "kind", "type": "category"}]},
    "t": {"type": "text", "analyzer": "french", "fields": {"s": {"type": "completion"}}},
    "typed": {"type": "search_as_you_type"},
    "count": {"type": "token_count", "analyzer": "standard"},
}


@pytest.fixture
def es(url: str) -> Iterator[Elasticsearch]:
    """The index `songs`; `films`, where t.s is completed too; `keys`, where it is a keyword."""
    with Elasticsearch(url, request_timeout=HANG_S) as client:
        client.indices.create(index="songs", mappings={"properties": SONGS})
        client.indices.create(index="films", mappings={"properties": {"t": SONGS["t"]}})
        keyword = {"type": "text", "fields": {"s": {"type": "keyword"}}}
        client.indices.create(index="keys", mappings={"properties": {"t": keyword}})
        song = {"input": ["Les chevaux", "Chevaux"], "weight": 5, "contexts": {"kind": "song"}}
        client.index(
            index="songs", id="1", document={"s": song, "t": "les chevaux sauvages", "typed": "Les chevaux"}
        )
        client.index(index="films", id="2", document={"t": "les choristes"})
        client.index(index="keys", id="3", document={"t": "les clés"})
        client.indices.refresh()
        yield client


def test_completions_of_several_indexes(es: Elasticsearch) -> None:
    suggest = {"x": {"prefix": "les", "completion": {"field": "t.s"}}}
    (entry,) = es.search(index="songs,films,keys", suggest=suggest, size=0)["suggest"]["x"]
    found = [(option["_index"], option["_id"], option["text"]) for option in entry["options"]]
    assert found == [("songs", "1", "les chevaux sauvages"), ("films", "2", "les choristes")]


def test_contexts_and_typed_keys(es: Elasticsearch) -> None:
    suggest = {"x": {"prefix": "che", "completion": {"field": "s", "contexts": {"kind": "song"}}}}
    answer = es.search(index="songs", suggest=suggest, typed_keys=True, source=False)
    (option,) = answer["suggest"]["completion#x"][0]["options"]
    assert option == {
        "text": "Chevaux",
        "_index": "songs",
        "_id": "1",
        "_score": 5.0,
        "contexts": {"kind": ["song"]},
    }


def test_the_mapping_shows_the_defaults_of_completions(es: Elasticsearch) -> None:
    defaults = {
        "type": "completion",
        "analyzer": "simple",
        "preserve_separators": True,
        "preserve_position_increments": True,
        "max_input_length": 50,
    }
    contexts = [{"name": "kind", "type": "CATEGORY"}]
    shown = SONGS | {
        "t": {"type": "text", "analyzer": "french", "fields": {"s": defaults}},
        "s": defaults | {"contexts": contexts},
    }
    assert es.indices.get_mapping(index="songs")["songs"]["mappings"]["properties"] == shown
    assert es.terms_enum(index="songs", field="s", string="c")["terms"] == []
    assert not es.field_caps(index="songs", fields="s")["fields"]["s"]["completion"]["aggregatable"]


def test_a_language(es: Elasticsearch) -> None:
    assert es.search(index="songs", query={"match": {"t": "cheval"}})["hits"]["total"]["value"] == 1
    assert es.search(index="songs", query={"match": {"t": "les"}})["hits"]["total"]["value"] == 0
    query = {"multi_match": {"query": "les chev", "type": "bool_prefix", "fields": ["typed", "typed._2gram"]}}
    assert es.search(index="songs", query=query)["hits"]["total"]["value"] == 1
    tokens = es.indices.analyze(index="songs", field="typed._2gram", text="Les chevaux sauvages")["tokens"]
    assert [token["token"] for token in tokens] == ["les chevaux", "chevaux sauvages"]
    detail = es.indices.analyze(analyzer="turkish", text="İstanbul'da", explain=True)["detail"]
    assert [token["token"] for token in detail["analyzer"]["tokens"]] == ["istanbul"]


def test_phrases(es: Elasticsearch) -> None:
    phrase = {"field": "typed", "direct_generator": [{"field": "typed", "min_word_length": 3}]}
    suggest = {"x": {"text": "les chevawx", "phrase": phrase}}
    (entry,) = es.search(index="songs", suggest=suggest)["suggest"]["x"]
    assert [option["text"] for option in entry["options"]] == ["les chevaux"]


def test_errors(es: Elasticsearch) -> None:
    with pytest.raises(BadRequestError, match="analyzer \\[none\\] has not been configured in mappings"):
        es.indices.create(index="bad", mappings={"properties": {"t": {"type": "text", "analyzer": "none"}}})
    with pytest.raises(BadRequestError, match="Missing mandatory contexts"):
        es.search(index="songs", suggest={"x": {"prefix": "c", "completion": {"field": "s"}}})
    with pytest.raises(BadRequestError, match="Contexts are mandatory"):
        es.index(index="songs", document={"s": "x"})


def test_a_field_to_suggest_from_in_the_address(es: Elasticsearch) -> None:
    es.index(index="songs", id="4", document={"typed": "les cheveux"}, refresh=True)
    answer = es.search(
        index="songs",
        size=0,
        suggest_field="typed",
        suggest_mode="always",
        suggest_size=1,
        suggest_text="chevaux",
    )
    (entry,) = answer["suggest"]["typed"]
    assert [option["text"] for option in entry["options"]] == ["cheveux"]
    beside = es.search(index="songs", q="cheveux", df="typed", suggest_field="typed", suggest_mode="missing")
    assert [hit["_id"] for hit in beside["hits"]["hits"]] == ["4"]
    assert beside["suggest"]["typed"][0]["text"] == "cheveux"
    with pytest.raises(BadRequestError, match="suggest_field"):
        es.search(index="songs", suggest_text="x")


def test_collations_over_several_shards(es: Elasticsearch) -> None:
    two = {"number_of_shards": 2}
    es.indices.create(index="two", settings=two, mappings={"properties": {"t": {"type": "text"}}})
    for number, text in enumerate(("red apple", "red ample", "green apple", "blue ample")):
        es.index(index="two", id=str(number), document={"t": text})
    es.indices.refresh(index="two")
    query = {"source": {"match_phrase": {"t": "{{suggestion}}"}}}
    phrase = {"field": "t", "confidence": 0, "collate": {"query": query}, "shard_size": 20}
    answer = es.search(index="two", size=0, suggest={"x": {"text": "green axple", "phrase": phrase}})
    assert [option["text"] for option in answer["suggest"]["x"][0]["options"]] == ["green apple"]
