"""Synonyms of several words in queries, and query strings, beside what Elasticsearch 8.19 answered.

`graph_answers.json` has the documents, the mapping and each query with its hits. They are those of a node
with Lucene's SynonymGraphFilter and SynonymFilter.
"""

import cProfile
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.analysis.token import Token
from graphdb.search.analysis.token_graph import TokenGraph, flattened
from graphdb.search.errors import SearchError
from graphdb.search.query import parse_query
from tests.unit.search.query.corpus import Corpus

FACTS = json.loads(Path(__file__).with_name("graph_answers.json").read_text())


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(FACTS["documents"], FACTS["mappings"], 3, analysis=FACTS["analysis"])


@pytest.mark.parametrize(("query", "hits"), FACTS["answers"], ids=lambda value: json.dumps(value)[:80])
def test_hits_and_scores_are_elasticsearchs(corpus: Corpus, query: Any, hits: dict[str, float]) -> None:
    assert dict(corpus.hits(query)) == pytest.approx(hits, abs=2e-5)


def test_scores_are_explained(corpus: Corpus) -> None:
    for kind in ("match", "match_phrase", "match_phrase_prefix"):
        query = {kind: {"g": "ny hotel"}}
        explained = {key: value for key, value in corpus.explained(query).items() if value is not None}
        assert explained == pytest.approx(dict(corpus.hits(query)), rel=1e-6)


Edge = tuple[int, int]


@st.composite
def graphs(draw: st.DrawFn) -> list[Token]:
    """Tokens by position; some positions are empty, and some lengths lead nowhere."""
    tokens, position = [], -1
    for number in range(draw(st.integers(1, 7))):
        step = draw(st.sampled_from([0, 1, 1, 1, 2] if number else [1, 1, 2]))
        position += step
        tokens.append(Token(str(number), 0, 0, "word", position, draw(st.sampled_from([1, 1, 2, 3]))))
    return tokens


def every_path(tokens: Sequence[Token]) -> list[list[tuple[str, int]]]:
    """All ways to the last node, by trying every token after every other one."""
    starts: dict[int, set[int]] = {}  # of a position: the ends that no token before it goes on from
    for token in tokens:
        earlier = [other for other in tokens if other.position < token.position]
        ends = {0} | {other.position + other.position_length for other in earlier}
        behind = max((other.position for other in earlier), default=-1)
        free = {end for end in ends if behind < end <= token.position}
        starts[token.position] = free or {max(end for end in ends if end <= token.position)}
    last = max(token.position + token.position_length for token in tokens)

    def onwards(node: int) -> list[list[tuple[str, int]]]:
        if node == last:
            return [[]]
        return [
            [(token.term, token.position - node), *rest]
            for token in tokens
            if node in starts[token.position]
            for rest in onwards(token.position + token.position_length)
        ]

    return onwards(0)


@given(graphs())
def test_paths_of_a_graph(tokens: list[Token]) -> None:
    graph, expected = TokenGraph(tokens), every_path(tokens)
    found = [[(step.term, step.gap) for step in path] for path in graph.whole().paths()]
    assert sorted(found) == sorted(expected)
    joined: list[list[tuple[str, int]]] = [[]]
    for section in graph.sections():
        own = [[(step.term, step.gap) for step in path] for path in section.paths()]
        if section.terms is not None:
            assert list(section.terms) == [path[0][0] for path in own]
            assert {len(path) for path in own} == {1}
        else:
            assert len(own) > 1
        joined = [[*path, *more] for path in joined for more in own]
    assert sorted(joined) == sorted(expected)


def test_a_graph_of_too_many_paths_is_refused(corpus: Corpus) -> None:
    text = " ".join(["ny"] * 12)
    with pytest.raises(SearchError, match="maxClauseCount is set to 4096"):
        parse_query({"match_phrase": {"g": {"query": text, "slop": 1}}}, corpus.context)
    assert corpus.hits({"match_phrase": {"g": text}}) == []


def test_what_a_long_text_costs(corpus: Corpus) -> None:
    """About as much for each word, however long the text is."""

    def calls(words: int) -> int:
        """That are made, those of what is built in among them."""
        tokens = [Token("a", 0, 1, "word", 2 * place, 1 + place % 3) for place in range(words)]  # with holes
        line = [Token("a", 0, 1, "word", place) for place in range(words)]
        profile = cProfile.Profile()
        with profile:
            TokenGraph(tokens).sections()
            flattened(tokens)
            (path,) = TokenGraph([*line, Token("b", 0, 1, "word", words, 2)]).whole().paths()
        assert len(path) == words + 1
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(40_000) < 11 * calls(4_000)
    with pytest.raises(SearchError, match="maxClauseCount"):
        parse_query({"match_phrase": {"g": {"query": "ny " + "cat " * 60_000, "slop": 1}}}, corpus.context)


def test_shingles_are_no_graph() -> None:
    """As in Elasticsearch: of shingles beside words the positions are a line."""
    made = Analyzers.of(
        {
            "filter": {"two": {"type": "shingle", "output_unigrams": False}},
            "analyzer": {
                "with_words": {"tokenizer": "standard", "filter": ["shingle"]},
                "alone": {"tokenizer": "standard", "filter": ["two"]},
                "graph": {"tokenizer": "standard", "filter": ["word_delimiter_graph"]},
                "both": {"tokenizer": "standard", "filter": ["word_delimiter_graph", "shingle"]},
            },
        }
    )
    flags = {name: made.analyzer(name).makes_graphs for name in ("with_words", "alone", "graph", "both")}
    assert flags == {"with_words": False, "alone": False, "graph": True, "both": False}


# Token streams, as Elasticsearch 8.19 gave them with Lucene's filters.

RULES = ["ny, new york, big red apple", "wifi, wi fi", "usa, united states", "tv => television set"]
STREAMS: dict[tuple[str, str], list[tuple[str, int, int, int, int]]] = {
    ("flat", "ny red"): [
        ("ny", 0, 1, 0, 2), ("new", 0, 1, 0, 2), ("big", 0, 1, 0, 2), ("red", 1, 1, 3, 6),
        ("york", 1, 1, 3, 6), ("red", 1, 1, 3, 6), ("apple", 2, 1, 3, 6),
    ],
    ("flat", "big red apple"): [
        ("big", 0, 1, 0, 3), ("ny", 0, 3, 0, 13), ("new", 0, 1, 0, 3), ("red", 1, 1, 4, 7),
        ("york", 1, 1, 4, 7), ("apple", 2, 1, 8, 13),
    ],
    ("flat", "the tv television the"): [
        ("the", 0, 1, 0, 3), ("television", 1, 1, 4, 6), ("television", 2, 1, 7, 17), ("set", 2, 1, 7, 17),
        ("the", 3, 1, 18, 21),
    ],
    ("graph", "the new york tv"): [
        ("the", 0, 1, 0, 3), ("ny", 1, 4, 4, 12), ("big", 1, 1, 4, 12), ("new", 1, 3, 4, 7),
        ("red", 2, 1, 4, 12), ("apple", 3, 2, 4, 12), ("york", 4, 1, 8, 12), ("television", 5, 1, 13, 15),
        ("set", 6, 1, 13, 15),
    ],
    ("stopped", "york of wifi usa"): [
        ("york", 0, 1, 0, 4), ("wi", 1, 1, 8, 12), ("wifi", 1, 2, 8, 12), ("fi", 2, 1, 8, 12),
        ("united", 3, 1, 13, 16), ("usa", 3, 2, 13, 16), ("states", 4, 1, 13, 16),
    ],
    ("flattened", "wi york new york"): [
        ("wi", 0, 1, 0, 2), ("york", 1, 1, 3, 7), ("ny", 2, 3, 8, 16), ("big", 2, 1, 8, 11),
        ("new", 2, 1, 8, 11), ("red", 3, 1, 12, 16), ("york", 3, 2, 12, 16), ("apple", 4, 1, 12, 16),
    ],
    ("flattened", "hotel apple the of red cat"): [
        ("hotel", 0, 1, 0, 5), ("apple", 1, 1, 6, 11), ("red", 3, 1, 19, 22), ("cat", 4, 1, 23, 26),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), STREAMS)
def test_streams_are_lucenes(name: str, text: str) -> None:
    chains = {
        "flat": ["flat"],
        "graph": ["graph"],
        "stopped": ["stop", "graph"],
        "flattened": ["graph", "stop", "flatten_graph"],
    }
    made = Analyzers.of(
        {
            "filter": {
                "flat": {"type": "synonym", "synonyms": RULES},
                "graph": {"type": "synonym_graph", "synonyms": RULES},
            },
            "analyzer": {key: {"tokenizer": "standard", "filter": chain} for key, chain in chains.items()},
        }
    )
    found = [
        (token.term, token.position, token.position_length, token.start_offset, token.end_offset)
        for token in made.analyzer(name).detailed(text)
    ]
    assert found == STREAMS[name, text]


def test_phrases_may_have_an_analyzer_of_their_own() -> None:
    analysis = {"analyzer": {"whole": {"tokenizer": "standard", "filter": ["lowercase"]}}}
    text = {"type": "text", "analyzer": "whole", "search_analyzer": "stop", "search_quote_analyzer": "whole"}
    documents = [{"t": "to be or not to be", "u": "to be"}, {"t": "be not", "u": "be"}]
    mapping = {"properties": {"t": text, "u": {"type": "text", "analyzer": "whole"}}}
    corpus = Corpus(documents, mapping, 1, analysis=analysis)
    assert corpus.ids({"match": {"t": "to be"}}) == []
    assert corpus.ids({"match_phrase": {"t": "to be"}}) == ["0"]
    assert corpus.ids({"match_phrase_prefix": {"t": "not t"}}) == ["0"]
    assert corpus.ids({"query_string": {"query": '"to be"', "fields": ["t"]}}) == ["0"]
    assert corpus.ids({"query_string": {"query": "to be", "fields": ["t"]}}) == []
    quoted = {"query": '"to be"', "fields": ["t", "u"], "quote_analyzer": "stop"}
    assert corpus.ids({"query_string": quoted}) == []
