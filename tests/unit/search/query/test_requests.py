"""What bodies mean: what each clause finds, and Elasticsearch's words for those that mean nothing."""

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.query import matched_queries, parse_query, rewritten_text, with_inner_hits
from graphdb.search.query.clause import minimum_should_match
from tests.unit.search.query.corpus import Corpus

MAPPING = {
    "properties": {
        "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "tag": {"type": "keyword"},
        "n": {"type": "long"},
        "f": {"type": "float"},
        "d": {"type": "date"},
        "ip": {"type": "ip"},
        "b": {"type": "boolean"},
        "loc": {"type": "geo_point"},
        "also": {"type": "alias", "path": "tag"},
        "kids": {
            "type": "nested",
            "properties": {
                "name": {"type": "keyword"},
                "age": {"type": "integer"},
                "toys": {"type": "nested", "properties": {"kind": {"type": "keyword"}}},
            },
        },
    }
}
DOCUMENTS: list[dict[str, Any]] = [
    {
        "title": "The quick brown fox",
        "tag": ["a", "b"],
        "n": 1,
        "f": 1.5,
        "d": "2020-01-01",
        "ip": "10.0.0.1",
        "b": True,
        "loc": {"lat": 52.5, "lon": 13.4},
        "kids": [{"name": "joe", "age": 5, "toys": {"kind": "car"}}, {"name": "ann", "age": 9}],
    },
    {
        "title": "quick quick dog",
        "tag": "a",
        "n": 5,
        "d": "2021-06-01T12:00:00Z",
        "ip": "10.0.1.1",
        "b": False,
        "loc": [179.5, 0],
    },
    {
        "title": "lazy brown dog jumps over the fox",
        "tag": "Cat",
        "n": [7, 9],
        "kids": {"name": "joe", "age": 12, "toys": [{"kind": "doll"}, {"kind": "ball"}]},
    },
    {"title": "nothing here", "tag": "dog"},
]


@pytest.fixture(scope="module", params=[1, 3])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return Corpus(DOCUMENTS, MAPPING, request.param)


def _match(text: str, **options: Any) -> dict[str, Any]:
    return {"match": {"title": {"query": text, **options}}}


def _nested(query: Any, **options: Any) -> dict[str, Any]:
    return {"nested": {"path": "kids", "query": query, **options}}


JOE = {"term": {"kids.name": "joe"}}

FOUND: dict[str, tuple[dict[str, Any], str]] = {
    "match_all": ({"match_all": {}}, "0123"),
    "match_none": ({"match_none": {}}, ""),
    "match any word": (_match("quick fox"), "012"),
    "match all words": (_match("quick fox", operator="AND"), "0"),
    "match two of three": (_match("lazy brown fox", minimum_should_match=2), "02"),
    "match more than there are": (_match("lazy fox", minimum_should_match=3), ""),
    "match of nothing": (_match("!"), ""),
    "match of nothing, all": (_match("!", zero_terms_query="all"), "0123"),
    "match fuzzy": (_match("qiuck", fuzziness="AUTO"), "01"),
    "match fuzzy without swaps": (_match("qiuck", fuzziness=1, fuzzy_transpositions=False), ""),
    "match fuzzy with a prefix": (_match("xuick", fuzziness=1, prefix_length=1), ""),
    "match on a number": ({"match": {"n": "5"}}, "1"),
    "match lenient": ({"match": {"n": {"query": "five", "lenient": True}}}, ""),
    "match on an unknown field": ({"match": {"nope": "x"}}, ""),
    "match on an alias": ({"match": {"also": "a"}}, "01"),
    "phrase": ({"match_phrase": {"title": "brown fox"}}, "0"),
    "phrase, other order": ({"match_phrase": {"title": {"query": "fox brown", "slop": 1}}}, ""),
    "phrase, other order, slop": ({"match_phrase": {"title": {"query": "fox brown", "slop": 2}}}, "0"),
    "phrase of a word twice": ({"match_phrase": {"title": "quick quick"}}, "1"),
    "phrase of a word twice, slop": ({"match_phrase": {"title": {"query": "quick quick", "slop": 9}}}, "1"),
    "phrase prefix": ({"match_phrase_prefix": {"title": "brown d"}}, "2"),
    "phrase prefix of one word": ({"match_phrase_prefix": {"title": "qu"}}, "01"),
    "bool prefix": ({"match_bool_prefix": {"title": "here jum"}}, "23"),
    "best fields": ({"multi_match": {"query": "dog", "fields": ["title", "tag"]}}, "123"),
    "wildcard fields": ({"multi_match": {"query": "dog", "fields": ["t*"]}}, "123"),
    "cross fields": (
        {
            "multi_match": {
                "query": "quick a",
                "fields": ["title", "title.raw"],
                "type": "cross_fields",
                "operator": "and",
            }
        },
        "",
    ),
    "phrase in fields": ({"multi_match": {"query": "brown dog", "fields": ["title"], "type": "phrase"}}, "2"),
    "term": ({"term": {"tag": "a"}}, "01"),
    "term in any case": ({"term": {"tag": {"value": "cAT", "case_insensitive": True}}}, "2"),
    "term on text is as it is": ({"term": {"title": "Quick"}}, ""),
    "term of a number": ({"term": {"n": 9}}, "2"),
    "term of a fraction": ({"term": {"n": 5.5}}, ""),
    "term of a boolean": ({"term": {"b": "false"}}, "1"),
    "term of a day": ({"term": {"d": "2021-06-01"}}, "1"),
    "term of a network": ({"term": {"ip": "10.0.0.0/24"}}, "0"),
    "term of an id": ({"term": {"_id": "2"}}, "2"),
    "term of an index": ({"term": {"_index": "i"}}, "0123"),
    "terms": ({"terms": {"tag": ["b", "dog"]}}, "03"),
    "terms of numbers": ({"terms": {"n": [1, 7, 2.5]}}, "02"),
    "terms of networks": ({"terms": {"ip": ["10.0.0.1", "10.0.1.0/24"]}}, "01"),
    "range": ({"range": {"n": {"gt": 1, "lte": 7}}}, "12"),
    "range of no number": ({"range": {"n": {"gt": 9}}}, ""),
    "range of fractions": ({"range": {"f": {"gt": 1.4, "lt": 1.6}}}, "0"),
    "range of dates": ({"range": {"d": {"gte": "2020", "lt": "2021"}}}, "0"),
    "range of dates, math": ({"range": {"d": {"gte": "2021-06-02||-1d/d"}}}, "1"),
    "range of dates, zone": ({"range": {"d": {"lt": "2020-01-01", "time_zone": "-01:00"}}}, "0"),
    "range of addresses": ({"range": {"ip": {"gt": "10.0.0.1"}}}, "1"),
    "range of terms": ({"range": {"tag": {"gte": "b", "lt": "dog"}}}, "0"),
    "bool": ({"bool": {"must": _match("quick"), "must_not": [{"term": {"n": 5}}]}}, "0"),
    "bool of should": ({"bool": {"should": [{"term": {"n": 5}}, {"term": {"n": 7}}]}}, "12"),
    "bool of should beside filter": (
        {"bool": {"filter": {"exists": {"field": "n"}}, "should": {"term": {"n": 5}}}},
        "012",
    ),
    "bool, only must_not": ({"bool": {"must_not": {"term": {"tag": "a"}}}}, "23"),
    "bool, the deprecated name": (
        {"bool": {"mustNot": [{"term": {"tag": "a"}}], "must_not": {"term": {"n": 5}}}},
        "23",
    ),
    "bool of nothing": ({"bool": {}}, "0123"),
    "exists": ({"exists": {"field": "d"}}, "01"),
    "exists by pattern": ({"exists": {"field": "l*"}}, "01"),
    "prefix": ({"prefix": {"tag": "d"}}, "3"),
    "prefix in any case": ({"prefix": {"tag": {"value": "cA", "case_insensitive": True}}}, "2"),
    "wildcard": ({"wildcard": {"title": "?u*k"}}, "01"),
    "wildcard in any case": ({"wildcard": {"tag": {"value": "C?T", "case_insensitive": True}}}, "2"),
    "regexp": ({"regexp": {"title": "qu[a-z]+|f.x"}}, "012"),
    "regexp, all of it": ({"regexp": {"title": "qui"}}, ""),
    "fuzzy": ({"fuzzy": {"title": "quikc"}}, "01"),
    "ids": ({"ids": {"values": ["1", 3]}}, "13"),
    "dis_max": ({"dis_max": {"queries": [{"term": {"n": 1}}, {"term": {"n": 5}}]}}, "01"),
    "nested": (_nested({"bool": {"must": [JOE, {"range": {"kids.age": {"gt": 6}}}]}}), "2"),
    "nested in nested": (
        _nested({"nested": {"path": "kids.toys", "query": {"term": {"kids.toys.kind": "car"}}}}),
        "0",
    ),
    "nested, deeper at once": ({"nested": {"path": "kids.toys", "query": {"match_all": {}}}}, "02"),
    "nested fields need nested": (JOE, ""),
    "nested, unmapped": ({"nested": {"path": "x", "query": {"match_all": {}}, "ignore_unmapped": True}}, ""),
    "distance": ({"geo_distance": {"distance": "20km", "loc": "52.4,13.3"}}, "0"),
    "distance over the date line": (
        {"geo_distance": {"distance": 200, "unit": "km", "loc": [-179.5, 0]}},
        "1",
    ),
    "box over the date line": (
        {"geo_bounding_box": {"loc": {"top": 1, "left": 179, "bottom": -1, "right": -179}}},
        "1",
    ),
    "query string": ({"query_string": {"query": "title:(quick AND fox) OR tag:d*"}}, "03"),
    "query string, range": ({"query_string": {"query": "n:[2 TO 6} OR n:>8"}}, "12"),
    "query string, not": ({"query_string": {"query": "+quick -dog", "default_field": "title"}}, "0"),
    "query string, phrase": ({"query_string": {"query": '"brown fox" "dog lazy"~3'}}, "02"),
    "query string, fuzzy": ({"query_string": {"query": "quikc~", "fields": ["title"]}}, "01"),
    "query string, exists": ({"query_string": {"query": "_exists_:f"}}, "0"),
    "query string, all": ({"query_string": {"query": "*:*"}}, "0123"),
    "query string, regexp": ({"query_string": {"query": "title:/jum.*/"}}, "2"),
    "simple, and or not": (
        {"simple_query_string": {"query": "quick + -fox | lazy", "fields": ["title"]}},
        "12",
    ),
    "simple, broken": ({"simple_query_string": {"query": '"quick (', "fields": ["title"]}}, "01"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(corpus: Corpus, name: str) -> None:
    body, expected = FOUND[name]
    assert "".join(corpus.ids(body)) == expected
    query = parse_query(body, corpus.context)
    for leaf in corpus.searcher.leaves:
        found = query.matches(leaf, corpus.searcher)
        assert query.mask(leaf, corpus.searcher).tolist() == found.mask.tolist()


REFUSED: dict[str, tuple[object, str, str]] = {
    "no object": ([], "parsing_exception", "[_na] query malformed, must start with start_object"),
    "nothing": ({}, "illegal_argument_exception", "query malformed, empty clause found at [1:1]"),
    "unknown": ({"boool": {}}, "parsing_exception", "unknown query [boool] did you mean [bool]?"),
    "absent": (
        {"bool": {"must": {"rule": {}}}},
        "parsing_exception",
        "unknown query [rule]: there are no query rules: use [pinned]",
    ),
    "script": (
        {"script": {}},
        "parsing_exception",
        "script must be provided with a [script] query",
    ),
    "no body": (
        {"match": "x"},
        "parsing_exception",
        "[match] query malformed, no start_object after query name",
    ),
    "two clauses": (
        {"match_all": {}, "term": {}},
        "parsing_exception",
        "[match_all] malformed query, expected [END_OBJECT] but found [FIELD_NAME]",
    ),
    "two fields": (
        {"term": {"a": 1, "b": 2}},
        "parsing_exception",
        "[term] query doesn't support multiple fields, found [a] and [b]",
    ),
    "unknown member": (
        {"match": {"a": {"query": "x", "foo": 1}}},
        "parsing_exception",
        "[match] query does not support [foo]",
    ),
    "an array": (
        {"term": {"tag": ["x"]}},
        "parsing_exception",
        "[term] unknown token [START_ARRAY] after [tag]",
    ),
    "no number": (
        {"term": {"n": "x"}},
        "query_shard_exception",
        'failed to create query: For input string: "x"',
    ),
    "negative boost": (
        {"match": {"title": {"query": "x", "boost": -1}}},
        "illegal_argument_exception",
        "negative [boost] are not allowed in [match], use a value between 0 and 1 to deboost",
    ),
    "no nested path": (
        {"nested": {"path": "x", "query": {"match_all": {}}}},
        "query_shard_exception",
        "failed to create query: [nested] failed to find nested object under path [x]",
    ),
    "unknown analyzer": (
        {"match": {"title": {"query": "x", "analyzer": "nope"}}},
        "illegal_argument_exception",
        "",
    ),
    "long expression": ({"regexp": {"tag": "a" * 1001}}, "illegal_argument_exception", ""),
    "many terms": ({"terms": {"n": [1] * 65_537}}, "query_shard_exception", ""),
    "lookup": (
        {"terms": {"tag": {"index": "i", "id": "1", "path": "tag"}}},
        "illegal_argument_exception",
        "[terms] query lookup is not supported here",
    ),
    "script score": (
        {"function_score": {"script_score": {"script": {"source": "1", "lang": "groovy"}}}},
        "illegal_argument_exception",
        "script_lang not supported [groovy]",
    ),
    "many clauses": (
        {"bool": {"should": [{"term": {"tag": "a"}}] * 4097}},
        "too_many_nested_clauses",
        "Query contains too many nested clauses; maxClauseCount is set to 4096",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(corpus: Corpus, name: str) -> None:
    body, kind, reason = REFUSED[name]
    with pytest.raises(SearchError) as refused:
        parse_query(body, corpus.context)
    assert refused.value.kind == kind
    assert refused.value.status == 400
    assert reason in ("", refused.value.reason)


@pytest.mark.parametrize(("depth", "allowed"), [(29, True), (30, False)])
def test_depth_is_bounded(corpus: Corpus, depth: int, allowed: bool) -> None:
    body: dict[str, Any] = {"match_all": {}}
    for _ in range(depth):
        body = {"bool": {"must": body}}
    if allowed:
        assert len(corpus.hits(body)) == 4
    else:
        with pytest.raises(SearchError, match="The nested depth of the query exceeds"):
            parse_query(body, corpus.context)


@pytest.mark.parametrize(
    ("clauses", "text", "expected"),
    [
        (4, "3", 3), (4, "-1", 3), (4, "75%", 3), (5, "75%", 3), (4, "-25%", 3), (5, "-25%", 4),
        (2, "2<75%", 2), (4, "2<75%", 3), (3, "3<90%", 3), (2, "2<-25% 9<-3", 2), (5, "2<-25% 9<-3", 4),
        (12, "2<-25% 9<-3", 9), (3, "9", 9), (3, "-9", 0), (3, " 2 < 2 ", 2),
    ],
)  # fmt: skip
def test_minimum_should_match(clauses: int, text: str, expected: int) -> None:
    assert minimum_should_match(clauses, text) == expected


@pytest.mark.parametrize(
    "pattern", ["(a|aa)+b", "(a*)*b", "((a?){30}){30}c", "(.*a){20}", "~(a*b)&.*c", "@&~(a)"]
)
def test_no_expression_burns_time(pattern: str) -> None:
    corpus = Corpus([{"tag": "a" * 400 + str(number)} for number in range(20)], MAPPING)
    with contextlib.suppress(SearchError):
        corpus.ids({"regexp": {"tag": pattern}})
    assert corpus.ids({"wildcard": {"tag": "*a" * 200 + "b"}}) == []


def test_names_and_inner_hits_are_remembered(corpus: Corpus) -> None:
    body = {
        "bool": {
            "should": [
                {"term": {"tag": {"value": "a", "_name": "A"}}},
                {"match": {"title": {"query": "quick dog", "_name": "M"}}},
                _nested({"match_all": {}}, inner_hits={"size": 1}),
            ]
        }
    }
    query = parse_query(body, corpus.context)
    names = []
    for leaf in corpus.searcher.leaves:
        docs = leaf.roots.nonzero()[0]
        names += [set(found) for found in matched_queries(query, leaf, corpus.searcher, docs)]
    assert names == [{"A", "M"}, {"A", "M"}, {"M"}, set()]
    assert list(with_inner_hits(query)) == ["kids"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"term": {"tag": "a"}}, "tag:a"),
        ({"bool": {"must": _match("x y"), "filter": {"term": {"tag": "d"}}}}, "+(title:x title:y) #tag:d"),
        ({"match_phrase": {"title": {"query": "x y", "slop": 2}}}, 'title:"x y"~2'),
        ({"range": {"n": {"gte": 1, "lt": 3}}}, "n:[1 TO 2]"),
        ({"match": {"title": {"query": "x", "boost": 2}}}, "(title:x)^2.0"),
        ({"match_all": {}}, "*:*"),
    ],
)
def test_how_a_query_is_printed(corpus: Corpus, body: dict[str, Any], text: str) -> None:
    assert rewritten_text(parse_query(body, corpus.context)) == text


def test_terms_are_looked_up(corpus: Corpus) -> None:
    asked = []

    def look_up(*where: object) -> list[str]:
        asked.append(where)
        return ["dog"]

    context = replace(corpus.context, terms_lookup=look_up)
    query = parse_query({"terms": {"tag": {"index": "i", "id": "1", "path": "p"}}}, context)
    assert str(query) == "tag:(dog)"
    assert asked == [("i", "1", "p", None)]
